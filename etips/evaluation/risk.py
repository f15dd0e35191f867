"""Risk of a policy from logged decisions: arrays in, `Estimate` out. Lower is better.

Shared arguments, all of shape (n,), one entry a decision:

* `loss`: loss of the logged action.
* `weight`: policy probability over propensity of the logged action (`weigh`).
* `cluster`: the stay or patient the decision belongs to; the unit of every standard error.
* `predicted`: an outcome model's loss for the logged action.
* `predicted_policy`: the same model's loss averaged over the policy's actions.
* `count`: how many times a decision counts; once if left out.

The outcome model must not have seen the decisions it predicts: fit it on other stays, or cross-fit
it by stay. When all losses lie in 0..1 the risk is taken to lie there too.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from etips.errors import SettingError
from etips.evaluation.checks import (
    ClusterLike,
    Clusters,
    Floats,
    check_actions,
    check_counts,
    check_numbers,
    check_probabilities,
    check_propensity,
    check_weights,
    code_clusters,
    weigh_logged,
)
from etips.evaluation.estimate import Estimate, effective_size
from etips.evaluation.evidence import Bounds, Evidence, ratio_of
from etips.evaluation.intervals import DEFAULT, Interval

__all__ = [
    "Estimate",
    "clipped_ips",
    "dm",
    "dr",
    "dr_shrinkage",
    "ips",
    "logged_risk",
    "matching_factor",
    "sndr",
    "snips",
    "switch_dr",
    "weigh",
]

UNIT: Bounds = (0.0, 1.0)
TUNING_QUANTILES = (
    0.5,
    0.75,
    0.9,
    0.95,
    0.99,
    0.999,
)  # of the positive weights; and no limit at all


def weigh(probabilities: ArrayLike, action: ArrayLike, propensity: ArrayLike) -> Floats:
    """Policy probability over propensity of the logged action, shape (n,).

    Args:
        probabilities: The policy's distribution at each decision, shape (n, n_actions).
        action: Logged actions, shape (n,).
        propensity: Probability of the logged action, shape (n,).
    """
    n = np.shape(action)[0] if np.ndim(action) else 0
    table = check_probabilities("probabilities", probabilities, n=n)
    taken = check_actions(action, n=n, n_actions=table.shape[1])
    return weigh_logged(table[np.arange(n), taken], check_propensity(propensity, n=n))


def logged_risk(
    loss: ArrayLike,
    cluster: ClusterLike,
    *,
    count: ArrayLike | None = None,
    interval: Interval = DEFAULT,
) -> Estimate:
    """Mean logged loss: the risk of what the clinicians did."""
    case = _case(loss, None, cluster, count)
    return case.estimate("logged", case.mean(case.loss, case.bounds), interval)


def matching_factor(
    weight: ArrayLike,
    cluster: ClusterLike,
    *,
    count: ArrayLike | None = None,
    interval: Interval = DEFAULT,
) -> Estimate:
    """Mean weight (the paper's TMF): 1 in expectation when the propensities are right."""
    case = _case(np.zeros(np.shape(weight)), weight, cluster, count)
    return case.estimate("matching_factor", case.mean(case.weight), interval)


def ips(
    loss: ArrayLike,
    weight: ArrayLike,
    cluster: ClusterLike,
    *,
    count: ArrayLike | None = None,
    interval: Interval = DEFAULT,
) -> Estimate:
    """Inverse propensity risk, paper eq. (3): unbiased, and not translation-equivariant."""
    case = _case(loss, weight, cluster, count)
    return case.estimate("ips", case.mean(case.loss * case.weight), interval)


def snips(
    loss: ArrayLike,
    weight: ArrayLike,
    cluster: ClusterLike,
    *,
    count: ArrayLike | None = None,
    interval: Interval = DEFAULT,
) -> Estimate:
    """Self-normalised inverse propensity risk, paper eq. (4).

    The standard error carries the noise of the denominator, so a constant loss has none.
    """
    case = _case(loss, weight, cluster, count)
    evidence = case.ratio([(case.loss * case.weight, case.weight)], case.bounds)
    return case.estimate("snips", evidence, interval)


def clipped_ips(
    loss: ArrayLike,
    weight: ArrayLike,
    cluster: ClusterLike,
    *,
    clip: float | None = None,
    count: ArrayLike | None = None,
    interval: Interval = DEFAULT,
) -> Estimate:
    """Inverse propensity risk with weights cut at `clip`: less noise, biased towards zero.

    Left out, `clip` is the quantile of the weights, or no limit at all, with the smallest estimated
    squared error: the squared standard error plus the squared distance from the unclipped estimate.
    The limits are those without clip, see `Estimate`.
    """
    case = _case(loss, weight, cluster, count)

    def build(limit: float) -> Evidence:
        return case.mean(case.loss * np.minimum(case.weight, limit))

    tuned = _tune("clip", clip, _limits(case.weight), build)
    kept = np.minimum(case.weight, tuned.setting)
    return case.tuned_estimate("clipped_ips", tuned, interval, weight=kept)


def dm(
    predicted_policy: ArrayLike,
    cluster: ClusterLike,
    *,
    count: ArrayLike | None = None,
    interval: Interval = DEFAULT,
) -> Estimate:
    """Direct method: the outcome model's word for it.

    The interval knows the noise of the sample, not the error of the model.
    """
    model = check_numbers("predicted_policy", predicted_policy)
    case = _case(model, None, cluster, count)
    return case.estimate("dm", case.mean(model, case.bounds), interval)


def dr(
    loss: ArrayLike,
    weight: ArrayLike,
    cluster: ClusterLike,
    *,
    predicted: ArrayLike,
    predicted_policy: ArrayLike,
    count: ArrayLike | None = None,
    interval: Interval = DEFAULT,
) -> Estimate:
    """Doubly robust risk: right when either the propensities or the outcome model are."""
    case = _case(loss, weight, cluster, count)
    model, model_policy = _model(predicted, predicted_policy, case.loss.size)
    corrected = model_policy + case.weight * (case.loss - model)
    return case.estimate("dr", case.mean(corrected, case.bounds), interval)


def sndr(
    loss: ArrayLike,
    weight: ArrayLike,
    cluster: ClusterLike,
    *,
    predicted: ArrayLike,
    predicted_policy: ArrayLike,
    count: ArrayLike | None = None,
    interval: Interval = DEFAULT,
) -> Estimate:
    """Doubly robust risk whose correction is divided by the sum of the weights."""
    case = _case(loss, weight, cluster, count)
    model, model_policy = _model(predicted, predicted_policy, case.loss.size)
    correction = (case.weight * (case.loss - model), case.weight)
    evidence = case.ratio([(model_policy, np.ones(model.size)), correction], case.bounds)
    return case.estimate("sndr", evidence, interval)


def switch_dr(
    loss: ArrayLike,
    weight: ArrayLike,
    cluster: ClusterLike,
    *,
    predicted: ArrayLike,
    predicted_policy: ArrayLike,
    switch: float | None = None,
    count: ArrayLike | None = None,
    interval: Interval = DEFAULT,
) -> Estimate:
    """Doubly robust risk that leaves decisions of weight above `switch` to the outcome model.

    Left out, `switch` is chosen by the rule of `clipped_ips`.
    """
    case = _case(loss, weight, cluster, count)
    model, model_policy = _model(predicted, predicted_policy, case.loss.size)

    def keep(limit: float) -> Floats:
        return np.where(case.weight <= limit, case.weight, 0.0)

    def build(limit: float) -> Evidence:
        return case.mean(model_policy + keep(limit) * (case.loss - model), case.bounds)

    tuned = _tune("switch", switch, _limits(case.weight), build)
    return case.tuned_estimate("switch_dr", tuned, interval, weight=keep(tuned.setting))


def dr_shrinkage(
    loss: ArrayLike,
    weight: ArrayLike,
    cluster: ClusterLike,
    *,
    predicted: ArrayLike,
    predicted_policy: ArrayLike,
    shrinkage: float | None = None,
    count: ArrayLike | None = None,
    interval: Interval = DEFAULT,
) -> Estimate:
    """Doubly robust risk with optimistically shrunk weights `s w / (w^2 + s)` (Su et al. 2020).

    `shrinkage` is `s`: 0 is the direct method, infinity plain DR. Left out, it is chosen by the
    rule of `clipped_ips` among the squares of the same limits.
    """
    case = _case(loss, weight, cluster, count)
    model, model_policy = _model(predicted, predicted_policy, case.loss.size)

    def shrink(amount: float) -> Floats:
        if amount == 0 or np.isinf(amount):
            return case.weight * float(amount > 0)
        return amount * case.weight / (case.weight**2 + amount)

    def build(amount: float) -> Evidence:
        return case.mean(model_policy + shrink(amount) * (case.loss - model), case.bounds)

    amounts = [limit**2 for limit in _limits(case.weight)]
    tuned = _tune("shrinkage", shrinkage, amounts, build)
    return case.tuned_estimate("dr_shrinkage", tuned, interval, weight=shrink(tuned.setting))


@dataclass(frozen=True)
class _Case:
    """Checked arrays of one call."""

    loss: Floats
    weight: Floats
    clusters: Clusters
    count: Floats | None

    @property
    def bounds(self) -> Bounds | None:
        return UNIT if self.loss.min() >= 0 and self.loss.max() <= 1 else None

    @cached_property
    def sizes(self) -> Floats:
        """Decisions in each cluster: the denominator of every mean, so counted once."""
        return self.clusters.sums(np.ones(self.loss.size) if self.count is None else self.count)

    def mean(self, values: Floats, bounds: Bounds | None = None) -> Evidence:
        totals = self.clusters.sums(values if self.count is None else values * self.count)
        columns = totals[:, None], self.sizes[:, None]
        return Evidence(*columns, np.ones(1), self.clusters.ids, bounds)

    def ratio(self, terms: list[tuple[Floats, Floats]], bounds: Bounds | None = None) -> Evidence:
        sign = (1.0,) * len(terms)
        return ratio_of(self.clusters, terms, count=self.count, sign=sign, bounds=bounds)

    def estimate(self, estimator: str, evidence: Evidence, interval: Interval) -> Estimate:
        return Estimate.of(
            estimator, evidence, weight=self.weight, count=self.count, interval=interval
        )

    def tuned_estimate(
        self, estimator: str, tuned: "_Tuned", interval: Interval, *, weight: Floats
    ) -> Estimate:
        plain = self.estimate(estimator, tuned.plain, interval)
        return replace(
            plain,
            risk=tuned.value,
            std_error=tuned.error,
            low=min(plain.low, tuned.value),
            high=max(plain.high, tuned.value),
            effective_n=effective_size(weight, count=self.count),
            tuning=tuned.setting,
        )


def _case(
    loss: ArrayLike, weight: ArrayLike | None, cluster: ClusterLike, count: ArrayLike | None
) -> _Case:
    losses = check_numbers("loss", loss)
    n = losses.size
    weights = np.ones(n) if weight is None else check_weights("weight", weight, n=n)
    return _Case(losses, weights, code_clusters(cluster, n=n), check_counts(count, n=n))


def _model(predicted: ArrayLike, predicted_policy: ArrayLike, n: int) -> tuple[Floats, Floats]:
    return (
        check_numbers("predicted", predicted, n=n),
        check_numbers("predicted_policy", predicted_policy, n=n),
    )


@dataclass(frozen=True)
class _Tuned:
    """A tuned value, the root of its estimated squared error, and the evidence without tuning."""

    value: float
    error: float
    setting: float
    plain: Evidence


def _tune(
    name: str, given: float | None, limits: list[float], build: Callable[[float], Evidence]
) -> _Tuned:
    """The given setting, or the one with the smallest estimated squared error."""
    if given is not None and not given >= 0:
        raise SettingError(name, "must be zero or more")
    plain = build(np.inf)

    def at(setting: float) -> _Tuned:
        evidence = plain if np.isinf(setting) else build(setting)
        bias = evidence.value - plain.value
        return _Tuned(evidence.value, float(np.hypot(evidence.std_error, bias)), setting, plain)

    settings = [np.inf, *limits] if given is None else [float(given)]
    return min((at(setting) for setting in settings), key=lambda tuned: tuned.error)


def _limits(weight: Floats) -> list[float]:
    """Candidate limits: quantiles of the positive weights."""
    positive = weight[weight > 0]
    if positive.size == 0:
        return []
    return [float(limit) for limit in np.unique(np.quantile(positive, TUNING_QUANTILES))]
