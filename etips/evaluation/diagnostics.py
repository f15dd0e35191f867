"""How far a log can speak about a policy: weights, overlap, calibration, balance."""

import math
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from etips.errors import DataError
from etips.evaluation.calibration import Calibration, calibration, misplaced_weight
from etips.evaluation.expected_weights import ExpectedWeights, expect_weights
from etips.evaluation.inference.checks import Floats, Ints, check_table, totals
from etips.evaluation.inference.contrast import Contrast, difference
from etips.evaluation.inference.estimate import Estimate, effective_size
from etips.evaluation.inference.evidence import divide
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, View
from etips.evaluation.prognosis_balance import PrognosisBalances, balance_prognosis
from etips.evaluation.reweighting.moved_risk import moved_by_balancing, weights_before
from etips.evaluation.risk import logged_risk, matching_factor, snips

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
        weighted_events: Kish's size of the weighted losses, or of what they leave of 1 if that is
            less: about how many stays with the rarer outcome the estimate hangs on; None where
            losses do not lie in 0..1.
        max_weight: Largest weight.
        largest_shares: Share of the whole weight of the five heaviest decisions, falling.
        heaviest_cluster: Share of the whole weight in the heaviest cluster.
        clipped_share: Decisions whose propensity was raised to the floor.
        headline: Name of the estimator that is judged.
        known: Whether the propensities are known by design.
        visible: Whether the log holds what was visible at a decision.
        lag: 1 if that leaves out the decision's own step.
        logged_spread: Standard deviation of all logged losses.
        half_width: Of the headline's interval, or of the gain's if that is less.
        expected: Moments of the weights if the propensities of all actions are right.
        even_error: Standard error of `uniform_factor`, likewise.
        unsupported: Policy probability on actions with propensity under 0.01.
        calibration: Stated against observed propensities.
        misplaced: Share of the weight on the wrong actions or patients.
        prognosis: Whether weighting leaves the patients' prognosis as it is.
        moved: How far balancing the propensities moved the headline, over the half-width.
        prognosis_before: As `prognosis`, with the weights before they were balanced.
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
    largest_shares: tuple[float, ...]
    heaviest_cluster: float
    clipped_share: float
    weighted_events: float | None = None
    headline: str = "snips"
    known: bool = False
    visible: bool = False
    lag: int = 0
    logged_spread: float = math.nan
    half_width: float = math.nan
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
    """Measure how well `log` supports an estimate of `policy`.

    Args:
        log: The decisions.
        policy: The policy, seen through them.
        interval: How limits are made.
        headline: The estimate that is judged; SNIPS if left out.
    """
    weight, n = policy.weight, log.n_decisions
    judged = headline or snips(log.loss, weight, log.clusters, interval=interval)
    by_cluster = log.clusters.sums(weight)
    total = float(by_cluster.sum())
    largest = np.sort(np.partition(weight, -min(N_LARGEST, n))[-N_LARGEST:])[::-1]
    size = effective_size(weight)
    even, even_error = _even(log)
    half_width = _half_width(log, judged, interval)
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
        weighted_events=_weighted_events(log, weight),
        headline=judged.estimator,
        known=log.known,
        visible=log.features is not None,
        breadth=log.breadth,
        lag=log.lag,
        even_error=even_error,
        logged_spread=float(log.loss.std()),
        half_width=half_width,
        prognosis=balance_prognosis(log, policy, judged, half_width),
        moved=moved_by_balancing(log, policy, judged, half_width),
        prognosis_before=_balance_before(log, policy, judged, half_width),
        **_from_table(log, policy),
    )


def _balance_before(
    log: Log, policy: View, headline: Estimate, half_width: float
) -> PrognosisBalances | None:
    """The balance of the prognosis as networks alone would leave it; None if they are alone."""
    fitted = weights_before(log, policy)
    if fitted is None and log.unblended is None:
        return None
    before = policy if fitted is None else replace(policy, weight=fitted)
    return balance_prognosis(log.as_networks_predicted, before, headline, half_width)


def _half_width(log: Log, headline: Estimate, interval: Interval) -> float:
    """Of the risk or of the gain, whichever is known better: a bias matters against that."""
    own = gain(log, headline, interval=interval)
    widths = headline.high - headline.low, own.high - own.low
    return min((width for width in widths if width > 0), default=0.0) / 2


class _FromTable(TypedDict):
    expected: ExpectedWeights | None
    unsupported: float | None
    calibration: Calibration | None
    misplaced: float | None


def _from_table(log: Log, policy: View) -> _FromTable:
    """What only the propensities of all actions tell."""
    table = log.propensities
    if table is None:
        return _FromTable(expected=None, unsupported=None, calibration=None, misplaced=None)
    speaks = 1.0 if policy.abstains is None else ~policy.abstains[:, None]
    return _FromTable(
        expected=expect_weights(
            policy.probabilities,
            table,
            log.clusters,
            floor=log.propensity_floor,
            abstains=policy.abstains,
        ),
        unsupported=_unsupported(policy.probabilities * speaks, table),
        calibration=calibration(log),
        misplaced=misplaced_weight(log, policy),
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


def _unsupported(probabilities: Floats, propensities: Floats) -> float:
    return float((probabilities * (propensities < RARE)).sum() / probabilities.shape[0])
