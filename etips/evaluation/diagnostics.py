"""How far a log can speak about a policy: weights, overlap, calibration, balance."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from etips.errors import DataError
from etips.evaluation.inference.checks import Clusters, Floats, Ints, check_table, totals
from etips.evaluation.inference.contrast import Contrast, difference
from etips.evaluation.inference.estimate import Estimate, effective_size
from etips.evaluation.inference.evidence import divide
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, View
from etips.evaluation.risk import logged_risk, matching_factor

RARE = 0.01  # a propensity below one in a hundred: the weight of a single decision exceeds 100
N_LARGEST = 5


@dataclass(frozen=True)
class Diagnostics:
    """What the verdict looks at. Shares lie in 0..1; None where the log lacks what it takes.

    Args:
        matching_factor: Mean weight; 1 in expectation.
        uniform_factor: Mean of 1 / (n_actions * propensity), the matching factor of a policy that
            draws actions evenly, over what the propensities lead to expect of it: 1 where every
            action has a chance, less where some have none or were raised to the floor.
        n_decisions: Decisions.
        n_clusters: Clusters.
        n_matched: Decisions whose logged action is the policy's likeliest one.
        effective_sample_size: Kish's, of the decisions' weights.
        effective_clusters: Kish's, of the clusters' total weights.
        effective_share: Effective sample size over decisions.
        effective_events: Effective clusters over the kurtosis of the loss: about the number of
            deaths, or survivors if fewer, that the evidence is worth; 0 when the loss never varies.
        max_weight: Largest weight.
        largest_shares: Share of the whole weight of the five heaviest decisions, falling.
        heaviest_cluster: Share of the whole weight in the heaviest cluster.
        clipped_share: Decisions whose propensity was raised to the floor.
        expected_share: Effective share expected from the propensities of all actions.
        unsupported: Policy probability on actions with propensity under 0.01.
        calibration_gap: Largest gap between stated and observed propensity that is not noise.
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
    largest_shares: tuple[float, ...]
    heaviest_cluster: float
    clipped_share: float
    expected_share: float | None = None
    unsupported: float | None = None
    calibration_gap: float | None = None


def diagnose(log: Log, policy: View, *, interval: Interval = DEFAULT) -> Diagnostics:
    """Measure how well `log` supports an estimate of `policy`."""
    weight, n = policy.weight, log.n_decisions
    even = 1 / (log.n_actions * log.propensity) / _expected_even(log)
    by_cluster = log.clusters.sums(weight)
    total = float(by_cluster.sum())
    largest = np.sort(np.partition(weight, -min(N_LARGEST, n))[-N_LARGEST:])[::-1]
    size = effective_size(weight)
    table = log.propensities
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
        max_weight=float(largest[0]),
        largest_shares=tuple(float(w) / total if total else 0.0 for w in largest),
        heaviest_cluster=float(by_cluster.max()) / total if total else 0.0,
        clipped_share=float((log.propensity <= log.propensity_floor).mean()),
        expected_share=None if table is None else _expected_share(policy.probabilities, table),
        unsupported=None if table is None else _unsupported(policy.probabilities, table),
        calibration_gap=None if table is None else calibration(log).gap,
    )


@dataclass(frozen=True)
class ActionOverlap:
    """How the log and the policy use each action, shape (n_actions,) each; see also `grid`.

    Args:
        n_logged: Decisions at which it was taken.
        logged_share: The same as a share.
        policy_share: How often the policy would take it.
        effective_n: Kish's effective size of the weights where it was taken.
        least_propensity: Smallest propensity with which it was taken; NaN where it never was.
    """

    n_logged: Ints
    logged_share: Floats
    policy_share: Floats
    effective_n: Floats
    least_propensity: Floats

    def grid(self, *, n_fluid: int = 5, n_vasopressor: int = 5) -> "ActionOverlap":
        """The same by dose class, shape (n_fluid, n_vasopressor) each; fluid is the slow index."""
        if self.n_logged.size != n_fluid * n_vasopressor:
            raise DataError("action", f"must have {n_fluid} x {n_vasopressor} levels for this grid")
        shape = (n_fluid, n_vasopressor)
        return ActionOverlap(**{name: column.reshape(shape) for name, column in vars(self).items()})


def overlap_by_action(log: Log, policy: View) -> ActionOverlap:
    """Overlap of log and policy, action by action."""
    k = log.n_actions
    n_logged = np.bincount(log.action, minlength=k)
    total = totals(log.action, policy.weight, k)
    squares = totals(log.action, policy.weight**2, k)
    least = np.full(k, np.inf)
    np.minimum.at(least, log.action, log.propensity)
    return ActionOverlap(
        n_logged=n_logged,
        logged_share=n_logged / log.n_decisions,
        policy_share=np.asarray(policy.probabilities.mean(axis=0)),
        effective_n=np.nan_to_num(divide(total**2, squares)),
        least_propensity=np.where(np.isinf(least), np.nan, least),
    )


@dataclass(frozen=True)
class Calibration:
    """Stated against observed propensity over all actions, in bins of the stated one.

    Args:
        stated: Mean stated propensity in each bin, shape (bins,); NaN where empty.
        observed: How often the action was taken, shape (bins,).
        std_error: Clustered standard error of their difference, shape (bins,).
        n_pairs: (decision, action) pairs in each bin, shape (bins,).
        error: Expected calibration error: mean absolute difference, weighted by pairs.
        gap: Largest absolute difference among bins where it exceeds four standard errors; else 0.
    """

    stated: Floats
    observed: Floats
    std_error: Floats
    n_pairs: Ints
    error: float
    gap: float


def calibration(log: Log, *, n_bins: int = 10) -> Calibration:
    """Compare the propensities of all actions with what was done; needs `log.propensities`."""
    if log.propensities is None:
        raise DataError("propensities", "must be given for every action to check calibration")
    place = np.minimum((log.propensities * n_bins).astype(np.int64), n_bins - 1)
    taken = np.zeros(log.propensities.shape)
    taken[log.rows, log.action] = 1
    flat = place.ravel()
    n_pairs = np.bincount(flat, minlength=n_bins)
    pairs = n_pairs.astype(np.float64)
    stated = divide(totals(flat, log.propensities.ravel(), n_bins), pairs)
    observed = divide(totals(flat, taken.ravel(), n_bins), pairs)
    gap = observed - stated
    excess = _binned(log.clusters, place, taken - log.propensities, n_bins)  # (k, bins)
    k = log.clusters.size
    spread = np.sqrt(k / (k - 1) * ((excess - excess.mean(axis=0)) ** 2).sum(axis=0))
    std_error = divide(spread, pairs)
    size = np.abs(np.nan_to_num(gap))
    certain = size > 4 * np.nan_to_num(
        std_error
    )  # four: ten bins, and bins with a handful of events
    return Calibration(
        stated=stated,
        observed=observed,
        std_error=std_error,
        n_pairs=n_pairs,
        error=float((size * n_pairs).sum() / n_pairs.sum()),
        gap=float(size[certain & (n_pairs >= 50)].max(initial=0.0)),
    )


def balance(log: Log, policy: View, features: ArrayLike) -> tuple[Floats, Floats]:
    """Standardised mean differences of features before and after weighting, shape (d,) each.

    Before: decisions that match the policy's likeliest action against all. After: decisions
    weighted for the policy against all. With right propensities the second is zero in expectation;
    above 0.1 is usually called imbalance. A constant feature gives 0.

    Args:
        log: The decisions.
        policy: The policy, seen through them.
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


def _expected_share(probabilities: Floats, propensities: Floats) -> float:
    """1 / E[w^2] with the expectation over all actions, not only over those that were logged."""
    square = divide(probabilities**2, propensities)
    square[probabilities == 0] = 0
    mean = float(np.nan_to_num(square, nan=np.inf).sum(axis=1).mean())
    return 1 / mean if mean > 0 else 0.0


def _expected_even(log: Log) -> float:
    """Matching factor to expect of drawing actions evenly, if the propensities are right."""
    if log.propensities is None:
        return 1.0
    table = log.propensities
    used = np.maximum(table, max(log.propensity_floor, np.finfo(float).tiny))
    return float((table / used).mean())


def _unsupported(probabilities: Floats, propensities: Floats) -> float:
    return float((probabilities * (propensities < RARE)).sum() / probabilities.shape[0])


def _binned(clusters: Clusters, place: Ints, values: Floats, n_bins: int) -> Floats:
    cell = clusters.code[:, None] * n_bins + place
    sums = totals(cell.ravel(), values.ravel(), clusters.size * n_bins)
    return sums.reshape(clusters.size, n_bins)
