"""What an estimate of one place would be among the patients of another.

A classifier that tells two places apart by what was visible gives the ratio of their densities: the
odds of the one place, over how many it has. Each decision of the first place counts as often as
patients like it are commoner in the second. What is then left of a difference between two places is
not their case mix, as far as it was recorded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import optimize, special

from etips.evaluation.estimators import ESTIMATORS
from etips.evaluation.inference.checks import Bools, Clusters, Floats, Rows, code_clusters
from etips.evaluation.inference.estimate import Estimate, effective_size
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, View
from etips.evaluation.risk import logged_risk
from etips.evaluation.row_models import REACH, Units, fit_trees, some_rows

N_FOLDS = 5
MOST_FIT = 20_000  # rows that one fit sees
WIDEST = 150  # columns of the straight line: those in which the places differ most
PENALTY = 5.0  # rows' worth of zero on each slope
LEAST_CHANCE = 1e-3


def tell_apart(features: Rows, inside: Bools, clusters: Clusters) -> Floats:
    """Chance that each row is from the second place, by a model that never saw its patient, (n,).

    A logistic regression and boosted trees, added up and shrunk until what they say of patients
    they have not seen is right: places that are alike are given the same chance everywhere.

    Args:
        features: What was visible, NaN where missing, shape (n, d).
    """
    target = inside.astype(np.float64)
    fold = np.random.default_rng(0).permutation(clusters.size)[clusters.code] % N_FOLDS
    logits = np.zeros((target.size, 2))
    for held in range(N_FOLDS):
        learn, ask = np.flatnonzero(fold != held), np.flatnonzero(fold == held)
        if ask.size == 0 or np.unique(target[learn]).size < 2:
            continue
        learn = some_rows(learn, MOST_FIT)
        units = Units.of(features[learn])
        gaps = np.flatnonzero(np.isnan(features[learn]).any(axis=0))
        table, asked = (
            np.hstack([units.standardised(rows), np.isnan(rows[:, gaps])])
            for rows in (features[learn], features[ask])
        )
        apart = np.abs((target[learn] - target[learn].mean()) @ table)
        kept = np.sort(np.argsort(-apart, kind="stable")[:WIDEST])
        line = _logistic(table[:, kept], target[learn], PENALTY)
        trees = fit_trees(features[learn], target[learn], classifier=True)
        logits[ask, 0] = line.decision_function(asked[:, kept])
        logits[ask, 1] = trees(features[ask])
    return _recalibrated(logits, target)


def density_ratio(chance: Floats, inside: Bools) -> Floats:
    """Density of the second place over that of the first, shape (n,)."""
    kept = np.clip(chance, LEAST_CHANCE, 1 - LEAST_CHANCE)
    return np.asarray(kept / (1 - kept) * ((~inside).sum() / max(inside.sum(), 1)))


def discrimination(chance: Floats, inside: Bools) -> float:
    """Share of pairs, one of each place, that the chance puts in order: 0.5 where none differ."""
    outside = np.sort(chance[~inside])
    below, up_to = (np.searchsorted(outside, chance[inside], side) for side in ("left", "right"))
    return float((below + up_to).mean() / 2 / outside.size)  # an equal counts by half


def _recalibrated(logits: Floats, target: Floats) -> Floats:
    """The chance with slopes of 0 to 1 and a level that fit patients the models have not seen.

    Args:
        logits: Of the line and of the trees, shape (n, 2).
    """
    centred = logits - logits.mean(axis=0)
    spread = centred.std(axis=0)
    if spread.max() < 1e-9:
        return np.full(target.size, target.mean())
    units = np.where(spread > 1e-9, spread, 1.0)
    slope = _logistic(centred / units, target, 1e-3).coef_[0] / units
    own, share = centred @ np.clip(slope, 0.0, 1.0), target.mean()
    level = optimize.brentq(lambda more: special.expit(own + more).mean() - share, -40, 40)
    return np.asarray(special.expit(own + level))


def _logistic(table: Floats, target: Floats, penalty: float) -> Any:  # noqa: ANN401  # sklearn's
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415  # as in `row_models`

    return LogisticRegression(C=1 / penalty, max_iter=200).fit(table, target)


Overlap = Literal["good", "fair", "poor"]

BEYOND = 20.0
"""Patients of the second place who are so many times rarer in the first are out of its reach."""

MOST_COUNT = 50.0  # how many times one decision may count
FEW_STAYS, LEAST_SHARE, FAIR_SHARE = 30.0, 0.05, 0.3
MOST_UNREACHED, FAIR_UNREACHED = 0.2, 0.05
MOST_TILT = 10.0  # a factor that balancing may put on a decision
MOST_FEATURES, STAYS_A_FEATURE, BEYOND_CHANCE = 10, 30, 2.5
"""Features whose means are balanced: how many at most, one for how many stays, and by how many
standard errors they must differ. With 300 patients a place a fifth of a shift was left without
them: a classifier of few patients is shrunk, and so is a prognosis."""

MOST_APART = 0.1
"""Standard deviations of the prognosis by which the two may stay apart after weighting."""


@dataclass(frozen=True)
class CaseMix:
    """How the decisions of one place count among the patients of another.

    Args:
        count: How often each decision of the first place counts, mean 1, shape (n_first,).
        effective_stays: The same of its stays, as a number of them.
        unreached: Share of the second place's decisions that are 20 times rarer in the first.
        prognosis_before: Expected loss in the second place minus that in the first.
        prognosis_after: The same with the first place's decisions counted so.
    """

    count: Floats
    effective_share: float
    effective_stays: float
    unreached: float
    discrimination: float
    prognosis_before: float
    prognosis_after: float
    overlap: Overlap


def chance_of_second(features: Rows, first: Bools, second: Bools, log: Log) -> Floats:
    """Chance that a decision of two places is from the second, shape (decisions of both,).

    One minus it is that of the first, so that both directions need one classifier.

    Args:
        features: What was visible, without the place itself, shape (n, d).
    """
    both = first | second
    clusters = code_clusters(log.cluster[both], n=int(both.sum()))
    return tell_apart(features[both], second[both], clusters)


def match_case_mix(
    features: Rows,
    prognosis: Floats,
    first: Bools,
    second: Bools,
    log: Log,
    *,
    chance: Floats | None = None,
) -> CaseMix:
    """Weigh the decisions of a first place so that their case mix is that of a second.

    The ratio of densities comes from a classifier; it is then tilted until what is to be expected
    of the patients (`prognosis`) has the second place's mean too, which is what a risk hangs on.

    Args:
        features: What was visible, without the place itself, shape (n, d).
        prognosis: Expected losses from the same features, whatever is done and by what policies
            would do, shape (n, q).
    """
    both = first | second
    inside = second[both]
    clusters = code_clusters(log.cluster[both], n=int(both.sum()))
    if chance is None:
        chance = chance_of_second(features, first, second, log)
    ratio = density_ratio(chance, inside)
    spread = np.maximum(prognosis[both].std(axis=0), 1e-12)
    functions = prognosis[both] / spread
    more = np.hstack([functions, unlike_features(features[both], inside, clusters)])
    count = _balanced(np.minimum(ratio[~inside], MOST_COUNT), (functions, more), inside)
    left = functions[inside].mean(axis=0) - count @ functions[~inside] / count.sum()
    before = float(functions[inside, 0].mean() - functions[~inside, 0].mean())
    by_stay = code_clusters(log.cluster[first], n=int(first.sum())).sums(count)
    share = effective_size(count) / count.size
    stays = effective_size(by_stay)
    unreached = float((ratio[inside] > BEYOND).mean())
    return CaseMix(
        count=count,
        effective_share=share,
        effective_stays=stays,
        unreached=unreached,
        discrimination=discrimination(chance, inside),
        prognosis_before=before * float(spread[0]),
        prognosis_after=float(left[0] * spread[0]),
        overlap=_overlap(share, stays, unreached, float(np.abs(left).max())),
    )


def _balanced(count: Floats, tables: Sequence[Floats], inside: Bools) -> Floats:
    """Counts of the first place, mean 1, tilted to each table's means in the second in turn."""
    count = count / count.mean()
    for table in tables:  # a tilt that asks too much is left out
        count = tilt(count, table[~inside], table[inside].mean(axis=0))
    return count


def _overlap(share: float, stays: float, unreached: float, apart: float) -> Overlap:
    if stays < FEW_STAYS or share < LEAST_SHARE or unreached > MOST_UNREACHED:
        return "poor"
    if apart > MOST_APART:
        return "poor"
    return "fair" if share < FAIR_SHARE or unreached > FAIR_UNREACHED else "good"


def unlike_features(features: Rows, inside: Bools, clusters: Clusters) -> Floats:
    """The features in which two places differ beyond chance, in standard deviations, (n, few).

    At most one for every `STAYS_A_FEATURE` stays of the smaller place, those that differ most.

    Args:
        features: What was visible, NaN where missing, shape (n, d).
    """
    stays = [np.unique(clusters.code[side]).size for side in (inside, ~inside)]
    known = ~np.isnan(features)
    count = np.maximum(known.sum(axis=0), 1)
    centre = np.where(known, features, 0.0).sum(axis=0) / count
    filled = np.where(known, features, centre)
    spread = filled.std(axis=0)
    varies = spread > 1e-9 * (1 + np.abs(centre))
    scaled = np.clip((filled - centre) / np.where(varies, spread, 1.0), -REACH, REACH)
    apart = np.abs(scaled[inside].mean(axis=0) - scaled[~inside].mean(axis=0))
    chance = np.sqrt(1 / stays[0] + 1 / stays[1])
    few = min(MOST_FEATURES, min(stays) // STAYS_A_FEATURE)
    ranked = np.argsort(-np.where(varies, apart, 0.0), kind="stable")[:few]
    return np.asarray(scaled[:, ranked[apart[ranked] > BEYOND_CHANCE * chance]], np.float64)


def tilt(count: Floats, functions: Floats, wanted: Floats) -> Floats:
    """Counts nearest to these (in entropy) under which the functions have the wanted means, (n,).

    The counts themselves where no bearable tilt gets there.

    Args:
        count: Mean 1, shape (n,).
        functions: In units of their spread, shape (n, q).
        wanted: Shape (q,).
    """
    centred = functions - wanted
    theta = np.zeros(wanted.size)
    tilted = count
    for _ in range(30):
        tilted = count * np.exp(np.clip(centred @ theta, -20, 20))
        tilted /= tilted.mean()
        mean = tilted @ centred / tilted.size
        if np.abs(mean).max() < 1e-6:
            break
        spread = (centred * tilted[:, None]).T @ centred / tilted.size - np.outer(mean, mean)
        step = np.linalg.lstsq(spread + 1e-6 * np.eye(theta.size), mean, rcond=None)[0]
        theta = theta - step * min(1.0, 1.0 / max(float(np.abs(step).max()), 1e-12))
    factor = tilted / np.maximum(count, 1e-300)
    typical = float(np.median(factor))
    bearable = factor.max() <= MOST_TILT * typical and factor.min() >= typical / MOST_TILT
    return tilted if bearable and np.isfinite(tilted).all() else count


def transported(
    estimator: str,
    log: Log,
    policy: View | None,
    case_mix: CaseMix,
    *,
    interval: Interval = DEFAULT,
) -> Estimate:
    """The risk in the first place, had it the case mix of the second.

    The counts are taken as given; that they are estimated makes the true error smaller rather than
    larger, as with fitted propensities.
    """
    if policy is None:
        return logged_risk(log.loss, log.clusters, count=case_mix.count, interval=interval)
    return ESTIMATORS[estimator].estimate(log, policy, interval=interval, count=case_mix.count)
