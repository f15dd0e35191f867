"""How large an effect a log could show at all: asked before anything is learned.

An alternative that always takes action a is held against what was done. Its risk is the mean loss
of the decisions that took a, each weighted by one over its estimated propensity. Per cluster c the
difference to the mean logged loss L moves by

    u_c = sum over decisions i of c of  w_i (l_i - V) / sum(w)  -  (l_i - L) / n

and its standard error is sqrt(C / (C - 1) * sum of u_c^2), C clusters. A true difference of
(1.96 + 0.84) standard errors is found, at a level of 5 % on both sides, in four of five such logs.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from etips.evaluation.inference.checks import Floats, Ints, Rows
from etips.evaluation.row_models import Units, fit_ridge, fit_slope

POWER, LEVEL = 0.8, 0.05
FACTOR = NormalDist().inv_cdf(1 - LEVEL / 2) + NormalDist().inv_cdf(POWER)
"""Standard errors that a difference must have to be found: 2.80."""

LEAST_PROPENSITY = 0.01
N_FOLDS = 2
MOST_DECISIONS = 20_000  # that propensities are estimated from


@dataclass(frozen=True)
class Detectable:
    """What could be told of always taking one action.

    Args:
        effective_n: Decisions that those that took it are worth after weighting.
        std_error: Of the difference to what was done.
    """

    action: int
    share: float
    effective_n: float
    std_error: float

    @property
    def difference(self) -> float:
        """Smallest true difference of risk that four of five such logs show."""
        return FACTOR * self.std_error


def detectable_differences(
    features: Rows, action: Ints, loss: Floats, clusters: Ints, *, most: int = 3, seed: int = 0
) -> list[Detectable]:
    """The alternatives of which the log could tell most, those with the smallest error first.

    Args:
        features: What was visible at each decision, NaN where missing, shape (n, d).
        loss: Of it, NaN where not known: such decisions are left out, shape (n,).
    """
    keep = np.isfinite(loss)
    keep &= ~_beyond(clusters, keep, seed)
    whole = np.unique(clusters[np.isfinite(loss)]).size
    features, action, loss = features[keep], action[keep], loss[keep]
    _, clusters = np.unique(clusters[keep], return_inverse=True)
    n_clusters = int(clusters.max(initial=-1)) + 1
    if n_clusters < 2 * N_FOLDS:
        return []
    counts = np.bincount(action)
    usual = [int(a) for a in np.argsort(-counts, kind="stable")[:most] if counts[a]]
    found = []
    for number in usual:
        chance = _propensity(features, action == number, clusters, n_clusters, seed)
        alternative = detectable(number, action, loss, chance, clusters)
        if alternative is not None:
            smaller = np.sqrt(n_clusters / whole)
            n, error = alternative.effective_n / smaller**2, alternative.std_error * smaller
            found.append(Detectable(number, alternative.share, float(n), float(error)))
    return sorted(found, key=lambda alternative: alternative.std_error)


def detectable(
    number: int, action: Ints, loss: Floats, propensity: Floats, clusters: Ints
) -> Detectable | None:
    """What the log could show of always taking action `number`; None if hardly any stay has it.

    Args:
        propensity: Of `number` at each decision, shape (n,).
    """
    weight = (action == number) / propensity
    n_clusters, total = int(clusters.max()) + 1, weight.sum()
    if n_clusters < 2 or np.unique(clusters[action == number]).size < 2:
        return None
    moved = weight * (loss - weight @ loss / total) / total - (loss - loss.mean()) / loss.size
    by_cluster = np.bincount(clusters, moved, n_clusters)
    error = float(np.sqrt(n_clusters / (n_clusters - 1) * (by_cluster**2).sum()))
    effective = float(total**2 / (weight**2).sum())
    return Detectable(number, float((action == number).mean()), effective, error)


def _propensity(
    features: Rows, taken: NDArray[np.bool_], clusters: Ints, n_clusters: int, seed: int
) -> Floats:
    """Probability of an action given what was visible, by a model that never saw the cluster."""
    chance, share = np.zeros(taken.size), taken.mean()
    if features.shape[1] and not taken.all():
        fold = np.random.default_rng(seed).permutation(n_clusters)[clusters] % N_FOLDS
        for number in range(N_FOLDS):
            seen = fold != number
            units, target = Units.of(features[seen]), taken[seen].astype(np.float64)
            table = units.standardised(features)
            table = np.hstack([table, table**2])
            base, slope = fit_ridge(table[seen], target)
            chance[~seen] = base + table[~seen] @ slope - share
        # What it says of clusters it never saw is believed as far as it was right.
        chance *= fit_slope(chance, taken - share)
    return np.asarray(np.clip(share + chance, LEAST_PROPENSITY, 1.0))


def _beyond(clusters: Ints, known: NDArray[np.bool_], seed: int) -> NDArray[np.bool_]:
    """Decisions of clusters that are left out, so that `MOST_DECISIONS` are left."""
    n = int(known.sum())
    if n <= MOST_DECISIONS:
        return np.zeros(clusters.size, bool)
    n_clusters = int(clusters.max()) + 1
    place = np.random.default_rng(seed).permutation(n_clusters)
    return np.asarray(place[clusters] >= n_clusters * MOST_DECISIONS / n)
