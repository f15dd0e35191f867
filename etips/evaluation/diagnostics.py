"""How far a log can speak about a policy: weights, overlap, calibration, balance.

A sample shows only the weights that occurred: a policy can look well supported because its
unsupported choices never did. With the propensities of every action the moments and the tail of the
weights are computed, not sampled.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from etips.evaluation.calibration import (
    CERTAIN,
    LEAST_TAKEN,
    Calibration,
    calibration,
    misplaced_weight,
)
from etips.evaluation.inference.checks import Bools, Floats, Ints, check_table, totals
from etips.evaluation.inference.estimate import Contrast, Estimate, difference, effective_size
from etips.evaluation.inference.evidence import divide, ratio_of
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, View
from etips.evaluation.prognosis import Expected
from etips.evaluation.risk import logged_risk, matching_factor, snips

N_HEAVY = 5
"""Decisions to be expected in the tail: fewer may well be missing from a log."""

_STEPS = 50  # of the logarithm of a weight, for each unit of it


@dataclass(frozen=True)
class ExpectedWeights:
    """Moments of the weights under the stated propensities.

    Args:
        mean: Of the weights: 1, less what is never done or was raised to the floor.
        clusters: Effective number of clusters; 0 if a weight may be infinite.
        share: Effective share of the decisions: one over the mean squared weight.
        tail: Share of the policy's choices in its heaviest weights, down to where five decisions
            are to be expected.
    """

    mean: float
    std_error: float
    clusters: float
    share: float
    tail: float


def expect_weights(log: Log, policy: View) -> ExpectedWeights | None:
    """What the propensities of all actions lead to expect; None where they are not known."""
    propensities, probabilities, silent = log.propensities, policy.probabilities, policy.abstains
    if propensities is None:
        return None
    n = len(probabilities)
    used = np.maximum(propensities, log.propensity_floor)
    weight = np.where(probabilities > 0, divide(probabilities, used), 0.0)
    never = np.isnan(weight)  # the policy's choice, and never the clinicians'
    weight = np.where(never, 0.0, weight)
    square = (propensities * weight**2).sum(axis=1)
    square[never.any(axis=1)] = np.inf
    mean = (propensities * weight).sum(axis=1)
    if silent is not None:  # there the weight is 1 whatever is done
        square, mean = np.where(silent, 1.0, square), np.where(silent, 1.0, mean)
    noise = square - mean**2
    sizes = log.clusters.sums(np.ones(n))
    whole = float((sizes**2).sum() + noise.sum())
    return ExpectedWeights(
        mean=float(mean.mean()),
        std_error=float(np.sqrt(max(noise.sum(), 0.0)) / n),
        clusters=n**2 / whole,
        share=float(1 / square.mean()) if square.mean() > 0 else 0.0,
        tail=_tail(probabilities, propensities, weight, never, silent),
    )


def _tail(
    probabilities: Floats,
    propensities: Floats,
    weight: Floats,
    never: Bools,
    abstains: Bools | None,
) -> float:
    """Share of the choices with the heaviest weights, until they expect `N_HEAVY` decisions."""
    speaks = probabilities > 0
    if abstains is not None:
        speaks = speaks & ~abstains[:, None]
    unseen = float(probabilities[speaks & never].sum())
    speaks &= ~never
    if not speaks.any():
        return unseen / len(probabilities)
    heavy = np.log(weight[speaks])
    place = np.floor((heavy.max() - heavy) * _STEPS).astype(np.int64)
    expected = np.bincount(place, propensities[speaks]).cumsum()
    chosen = np.bincount(place, probabilities[speaks]).cumsum()
    reached = float(np.interp(N_HEAVY, np.append(0, expected), np.append(0, chosen)))
    return (unseen + reached) / len(probabilities)


MOST_WIDENED = 1.4
"""With right propensities and heavy weights the ratio to the sample's own error had a standard
deviation of 1.25, not 1; where the tail expects far more than that, other rules speak."""

WITHOUT_MODEL = ("snips", "ips", "clipped_ips")


@dataclass(frozen=True)
class PrognosisBalance:
    """Weighted minus plain mean of what losses were to be expected.

    Args:
        difference: In units of the loss; below zero the weighted patients had the better prognosis.
        std_error: By cluster; up to 1.4 times that where the propensities of all actions lead to
            expect more: heavy weights that did not occur leave no trace in the sample.
        z: Their ratio; 0 where both are.
        half_width_share: Size of the difference over half the width of the interval it is held
            against.
    """

    difference: float
    std_error: float
    z: float
    half_width_share: float


@dataclass(frozen=True)
class PrognosisBalances:
    """The balance of the prognosis, and of what it takes apart.

    Args:
        plain: Of the expected loss, whatever is done.
        by_action: Of the expected loss of each action, against the policy's mean of it.
        rest: As `plain`, of what the predicted losses leave; None where the headline uses none.
        rest_by_action: As `by_action`, likewise.
        selection: Largest difference between what was to be expected of the patients who got an
            action and of those who should have, as stated, over the half-width; 0 for chance. It
            is about the propensities, whatever the policy does where it speaks; None without those
            of every action.
    """

    plain: PrognosisBalance
    by_action: PrognosisBalance
    rest: PrognosisBalance | None = None
    rest_by_action: PrognosisBalance | None = None
    selection: float | None = None


def balance_prognosis(
    log: Log, policy: View, headline: Estimate, half_width: float
) -> PrognosisBalances | None:
    """Compare weighted with plain means of the prognosis; None without features or any weight.

    Args:
        half_width: Of the interval that a bias matters against.
    """
    if log.expected is None or not policy.weight.any() or not math.isfinite(half_width):
        return None
    balances = PrognosisBalances(*_both(log, policy, log.expected, half_width))
    left = None if headline.estimator in WITHOUT_MODEL else log.expected_residual
    if left is not None:
        rest, rest_by_action = _both(log, policy, left, half_width)
        balances = replace(balances, rest=rest, rest_by_action=rest_by_action)
    selection = _selection(log, policy, left or log.expected, half_width)
    return replace(balances, selection=selection)


def _selection(log: Log, policy: View, expected: Expected, half_width: float) -> float | None:
    """How unlike the stated ones those are who got an action: the worst action counts.

    A model that misses a reason for some actions is not to be trusted with the others. How far
    chance may go follows from the stated propensities.
    """
    if log.propensities is None:
        return None
    table = log.propensities
    due = table.sum(axis=0)
    mean = divide((table * expected.by_action).sum(axis=0), due)
    apart = expected.by_action - mean
    spread = np.sqrt((table * (1 - table) * apart**2).sum(axis=0))
    got = totals(log.action, apart[log.rows, log.action].astype(np.float64), log.n_actions)
    certain = (np.abs(got) > CERTAIN * spread) & (due >= LEAST_TAKEN)
    worst = float(np.abs(divide(got, due))[certain].max(initial=0.0))
    speaks = 1.0 if policy.abstains is None else 1 - float(policy.abstains.mean())
    return _share(speaks * worst, half_width)


def _share(size: float, half_width: float) -> float:
    if size == 0:
        return 0.0
    return size / half_width if half_width > 0 else math.inf


def _both(
    log: Log, policy: View, expected: Expected, half_width: float
) -> tuple[PrognosisBalance, PrognosisBalance]:
    taken = expected.by_action[log.rows, log.action].astype(np.float64)
    averaged = np.einsum("na,na->n", policy.probabilities, expected.by_action)
    if policy.abstains is not None:
        averaged = np.where(policy.abstains, taken, averaged)
    plain = expected.plain
    alike = np.broadcast_to(plain[:, None], expected.by_action.shape)
    return (
        _compare(log, policy.weight, plain, plain, half_width, _chance(log, policy, alike)),
        _compare(
            *(log, policy.weight, taken, averaged, half_width),
            _chance(log, policy, expected.by_action),
        ),
    )


def _chance(log: Log, policy: View, table: NDArray[np.floating[Any]]) -> float:
    """Standard error that the propensities of all actions lead to expect; 0 where they are not."""
    if log.propensities is None:
        return 0.0
    used = np.maximum(log.propensities, max(log.propensity_floor, np.finfo(float).tiny))
    probability = policy.probabilities
    centred = table - float((probability * table).sum(axis=1).mean())
    taken = log.propensities / used  # an action that is never taken adds nothing
    square = (taken * (probability**2 / used) * centred**2).sum(axis=1)
    noise = square - (probability * log.propensities / used * centred).sum(axis=1) ** 2
    if policy.abstains is not None:
        noise = np.where(policy.abstains, 0.0, noise)
    return float(np.sqrt(max(noise.sum(), 0.0))) / log.n_decisions


def _compare(
    log: Log, weight: Floats, weighted: Floats, plain: Floats, half_width: float, chance: float
) -> PrognosisBalance:
    terms = [(weight * weighted, weight), (plain, np.ones(plain.size))]
    evidence = ratio_of(log.clusters, terms, sign=(1.0, -1.0))
    difference, seen = evidence.value, evidence.std_error
    error = max(seen, min(chance, MOST_WIDENED * seen))
    size = abs(difference)
    if size < 1e-12:
        difference, size = 0.0, 0.0
    return PrognosisBalance(
        difference=difference,
        std_error=error,
        z=difference / error if error > 1e-12 else 0.0,
        half_width_share=_share(size, half_width),
    )


def moved_by_stacking(
    log: Log, policy: View, headline: Estimate, half_width: float
) -> float | None:
    """Weighted mean with stacked propensities less that with one model's, over the half-width.

    Of the losses, or of what the predicted losses leave where the headline uses those. None where
    the log's propensities are not of several models.
    """
    before = plain_weights(log, policy)
    if before is None or not half_width > 0 or not policy.weight.any() or not before.any():
        return None
    rest = log.loss
    if policy.predicted is not None and headline.estimator not in WITHOUT_MODEL:
        rest = log.loss - policy.predicted
    means = [float(weight @ rest / weight.sum()) for weight in (policy.weight, before)]
    return abs(means[0] - means[1]) / half_width


def plain_weights(log: Log, policy: View) -> Floats | None:
    """Weights by the propensities of one model alone, shape (n,); None where none stands alone."""
    if log.plain_propensity is None:
        return None
    weight = policy.probabilities[log.rows, log.action] / log.plain_propensity
    return weight if policy.abstains is None else np.where(policy.abstains, 1.0, weight)


RARE = 0.01  # a propensity below one in a hundred: the weight of a single decision exceeds 100


@dataclass(frozen=True)
class Diagnostics:
    """What the verdict looks at. Shares lie in 0..1; None where the log lacks what it takes.

    Args:
        uniform_factor: Mean of 1 / (n_actions * propensity), the matching factor of a policy that
            draws actions evenly, over what the propensities lead to expect of it: 1 where every
            action has a chance, less where some have none or were raised to the floor.
        effective_sample_size: Kish's, of the decisions' weights.
        effective_events: Effective clusters over the kurtosis of the loss: about the number of
            deaths, or survivors if fewer, that the evidence is worth; 0 when the loss never varies.
        weighted_events: Kish's size of the weighted losses, or of what they leave of 1 if that is
            less: about how many stays with the rarer outcome the estimate hangs on; None where
            losses do not lie in 0..1.
        heaviest_cluster: Share of the whole weight in the heaviest cluster.
        clipped_share: Decisions whose propensity was raised to the floor.
        known: Whether the propensities are known by design.
        logged_spread: Standard deviation of all logged losses.
        expected: Moments of the weights if the propensities of all actions are right.
        even_error: Standard error of `uniform_factor`, likewise.
        unsupported: Policy probability on actions with propensity under 0.01.
        prognosis: Whether weighting leaves the patients' prognosis as it is.
        moved: How far stacking models moved the headline from the network's, over the half-width.
        prognosis_before: As `prognosis`, by the network alone; None where no others are stacked.
        breadth: How many different things were visible at a decision.
    """

    matching_factor: Estimate
    uniform_factor: Estimate
    n_decisions: int
    n_clusters: int
    n_matched: int
    effective_sample_size: float
    effective_clusters: float
    effective_share: float
    effective_events: float
    max_weight: float
    heaviest_cluster: float
    clipped_share: float
    weighted_events: float | None = None
    headline: str = "snips"
    known: bool = False
    visible: bool = False
    lag: int = 0
    logged_spread: float = math.nan
    expected: ExpectedWeights | None = None
    even_error: float | None = None
    unsupported: float | None = None
    calibration: Calibration | None = None
    misplaced: float | None = None
    prognosis: PrognosisBalances | None = None
    moved: float | None = None
    prognosis_before: PrognosisBalances | None = None
    breadth: float | None = None


def diagnose(
    log: Log, policy: View, *, interval: Interval = DEFAULT, headline: Estimate | None = None
) -> Diagnostics:
    """Measure how well `log` supports an estimate of `policy`."""
    weight, n = policy.weight, log.n_decisions
    judged = headline or snips(log.loss, weight, log.clusters, interval=interval)
    by_cluster = log.clusters.sums(weight)
    total = float(by_cluster.sum())
    size = effective_size(weight)
    even, even_error = _even(log)
    apart, table = gain(log, judged, interval=interval), log.propensities
    # a bias matters against the risk or the gain, whichever is known better
    widths = judged.high - judged.low, apart.high - apart.low
    half_width = min((width for width in widths if width > 0), default=0.0) / 2
    fitted, before = plain_weights(log, policy), None
    if fitted is not None or log.plain_predicted is not None:  # as one model alone would leave it
        old = policy if fitted is None else replace(policy, weight=fitted)
        before = balance_prognosis(log.as_plainly_predicted, old, judged, half_width)
    return Diagnostics(
        matching_factor=matching_factor(weight, log.clusters, interval=interval),
        uniform_factor=matching_factor(even, log.clusters, interval=interval),
        n_decisions=n,
        n_clusters=log.clusters.size,
        n_matched=int((policy.recommended == log.action).sum()),
        effective_sample_size=size,
        effective_clusters=effective_size(by_cluster),
        effective_share=size / n,
        effective_events=effective_size(by_cluster) * _evenness(log.loss),
        max_weight=float(weight.max()),
        heaviest_cluster=float(by_cluster.max()) / total if total else 0.0,
        clipped_share=float((log.propensity <= log.propensity_floor).mean()),
        weighted_events=_weighted_events(log, weight),
        headline=judged.estimator,
        known=log.known,
        visible=log.features is not None,
        breadth=log.breadth,
        lag=log.lag,
        even_error=even_error,
        logged_spread=float(log.loss.std()),
        prognosis=balance_prognosis(log, policy, judged, half_width),
        moved=moved_by_stacking(log, policy, judged, half_width),
        prognosis_before=before,
        expected=expect_weights(log, policy),
        unsupported=None if table is None else _unsupported(policy, table),
        calibration=None if table is None else calibration(log),
        misplaced=None if table is None else misplaced_weight(log, policy),
    )


@dataclass(frozen=True)
class ActionOverlap:
    """How the log and the policy use each action, shape (n_actions,) each.

    Args:
        n_logged: Decisions at which it was taken.
        logged_share: The same as a share.
        policy_share: How often the policy would take it.
        effective_n: Kish's effective size of the weights where it was taken.
    """

    n_logged: Ints
    logged_share: Floats
    policy_share: Floats
    effective_n: Floats


def overlap_by_action(log: Log, policy: View) -> ActionOverlap:
    """Overlap of log and policy, action by action."""
    k = log.n_actions
    n_logged = np.bincount(log.action, minlength=k)
    total = totals(log.action, policy.weight, k)
    squares = totals(log.action, policy.weight**2, k)
    return ActionOverlap(
        n_logged=n_logged,
        logged_share=n_logged / log.n_decisions,
        policy_share=np.asarray(policy.probabilities.mean(axis=0)),
        effective_n=np.nan_to_num(divide(total**2, squares)),
    )


def balance(log: Log, policy: View, features: ArrayLike) -> tuple[Floats, Floats]:
    """Standardised mean differences of features before and after weighting, shape (d,) each.

    Before: decisions that match the policy's likeliest action against all. After: decisions
    weighted for the policy against all. With right propensities the second is zero in expectation;
    above 0.1 is usually called imbalance. A constant feature gives 0.

    Args:
        features: One row a decision, shape (n, d).
    """
    table = check_table("features", features, n=log.n_decisions)
    centre, scale = table.mean(axis=0), table.std(axis=0)
    matched = (policy.recommended == log.action).astype(np.float64)

    def gap(weight: Floats) -> Floats:
        mean = divide(weight @ table, np.full(table.shape[1], weight.sum()))
        return np.where(scale > 0, divide(mean - centre, scale), 0.0)

    return gap(matched), gap(policy.weight)


def gain(log: Log, estimate: Estimate, *, interval: Interval = DEFAULT) -> Contrast:
    """Risk of an estimate from `log` minus the clinicians' risk, paired."""
    return difference(estimate, logged_risk(log.loss, log.clusters), interval=interval)


def _evenness(loss: Floats) -> float:
    """One over the kurtosis: 1 for a coin, the risk itself for a rare event, 1/3 for a normal.

    Of all logged losses, not of the matched ones: a measure that follows the estimate's own error
    would call the samples reliable that happen to lack the rare, heavy event.
    """
    square = (loss - loss.mean()) ** 2
    spread = float(square.mean())
    return spread**2 / float((square**2).mean()) if spread > 1e-24 else 0.0


def _weighted_events(log: Log, weight: Floats) -> float | None:
    """Kish's size of the cluster totals of weighted losses, or of their complement if smaller."""
    if log.loss.min() < 0 or log.loss.max() > 1:
        return None
    return min(
        effective_size(log.clusters.sums(weight * log.loss)),
        effective_size(log.clusters.sums(weight * (1 - log.loss))),
    )


def _even(log: Log) -> tuple[Floats, float | None]:
    """Weights of drawing actions evenly, over what to expect of them, and their standard error."""
    even = 1 / (log.n_actions * log.propensity)
    if log.propensities is None:
        return even, None
    used = np.maximum(log.propensities, max(log.propensity_floor, np.finfo(float).tiny))
    drawn = np.where(log.propensities > 0, 1 / used, 0.0) / log.n_actions
    mean = (log.propensities * drawn).sum(axis=1)
    noise = (log.propensities * drawn**2).sum(axis=1) - mean**2
    expected = float(mean.mean())
    return even / expected, float(np.sqrt(max(noise.sum(), 0.0))) / log.n_decisions / expected


def _unsupported(policy: View, propensities: Floats) -> float:
    speaks = 1.0 if policy.abstains is None else ~policy.abstains[:, None]
    chosen = policy.probabilities * speaks * (propensities < RARE)
    return float(chosen.sum() / chosen.shape[0])
