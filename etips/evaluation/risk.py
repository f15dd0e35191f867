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
from etips.evaluation.inference.checks import (
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
from etips.evaluation.inference.estimate import Estimate, effective_size
from etips.evaluation.inference.evidence import Bounds, Evidence, Exposure, expose, ratio_of
from etips.evaluation.inference.intervals import DEFAULT, Interval

UNIT: Bounds = (0.0, 1.0)


@dataclass(frozen=True)
class Case:
    """Checked arrays of one call of an estimator.

    Args:
        weight: Policy probability over propensity, shape (n,).
        count: How many times each decision counts, shape (n,); None for once.
    """

    loss: Floats
    weight: Floats
    clusters: Clusters
    count: Floats | None

    @property
    def bounds(self) -> Bounds | None:
        """Where a risk must lie: in 0..1 if all losses do."""
        return UNIT if self.loss.min() >= 0 and self.loss.max() <= 1 else None

    @cached_property
    def sizes(self) -> Floats:
        """Decisions in each cluster: the denominator of every mean, so counted once."""
        return self.clusters.sums(np.ones(self.loss.size) if self.count is None else self.count)

    @cached_property
    def exposure(self) -> Exposure | None:
        """How the losses enter a risk that is made with these weights."""
        return expose(self.loss, self.weight, self.count, self.clusters, self.bounds)

    def mean(self, values: Floats, bounds: Bounds | None = None) -> Evidence:
        """The mean of `values` (n,) over decisions."""
        totals = self.clusters.sums(values if self.count is None else values * self.count)
        columns = totals[:, None], self.sizes[:, None]
        return Evidence(*columns, np.ones(1), self.clusters.ids, bounds, self.exposure)

    def ratio(self, terms: list[tuple[Floats, Floats]], bounds: Bounds | None = None) -> Evidence:
        """Sum of the ratios of totals of each (numerator, denominator), shape (n,) each."""
        sign = (1.0,) * len(terms)
        evidence = ratio_of(self.clusters, terms, count=self.count, sign=sign, bounds=bounds)
        return replace(evidence, exposure=self.exposure)

    def estimate(self, estimator: str, evidence: Evidence, interval: Interval) -> Estimate:
        """The value of `evidence` with an interval around it."""
        return Estimate.of(
            estimator, evidence, weight=self.weight, count=self.count, interval=interval
        )


def make_case(
    loss: ArrayLike, weight: ArrayLike | None, cluster: ClusterLike, count: ArrayLike | None
) -> Case:
    """Check the arrays of a call; without `weight` every decision weighs 1."""
    losses = check_numbers("loss", loss)
    n = losses.size
    weights = np.ones(n) if weight is None else check_weights("weight", weight, n=n)
    return Case(losses, weights, code_clusters(cluster, n=n), check_counts(count, n=n))


def check_model(predicted: ArrayLike, predicted_policy: ArrayLike, n: int) -> tuple[Floats, Floats]:
    """Predicted losses of the logged action and of the policy, shape (n,) each."""
    return (
        check_numbers("predicted", predicted, n=n),
        check_numbers("predicted_policy", predicted_policy, n=n),
    )


class Formula:
    """A formula that is called with plain arrays, under its own name."""

    def __init__(self, formula: Callable[..., Evidence]) -> None:
        self.formula, self.__name__, self.__doc__ = formula, formula.__name__, formula.__doc__


class Weighted(Formula):
    """An estimator that needs weights alone; `risk` says what its arguments are."""

    def __call__(
        self,
        loss: ArrayLike,
        weight: ArrayLike,
        cluster: ClusterLike,
        *,
        count: ArrayLike | None = None,
        interval: Interval = DEFAULT,
    ) -> Estimate:
        """Estimate the risk from weights."""
        case = make_case(loss, weight, cluster, count)
        return case.estimate(self.__name__, self.formula(case), interval)


class Modelled(Formula):
    """An estimator that needs an outcome model too; `risk` says what its arguments are."""

    def __call__(
        self,
        loss: ArrayLike,
        weight: ArrayLike,
        cluster: ClusterLike,
        predicted: ArrayLike,
        predicted_policy: ArrayLike,
        *,
        count: ArrayLike | None = None,
        interval: Interval = DEFAULT,
    ) -> Estimate:
        """Estimate the risk from weights and predicted losses."""
        case = make_case(loss, weight, cluster, count)
        model = check_model(predicted, predicted_policy, case.loss.size)
        return case.estimate(self.__name__, self.formula(case, *model), interval)


QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
"""Of the positive weights, tried as limits beside no limit at all."""


@dataclass(frozen=True)
class Tuned:
    """A tuned value, the root of its estimated squared error, and the evidence without tuning."""

    value: float
    error: float
    setting: float
    plain: Evidence


def tune(
    name: str, given: float | None, limits: list[float], build: Callable[[float], Evidence]
) -> Tuned:
    """The given setting, or the one with the smallest estimated squared error.

    That is the squared standard error plus the squared distance from the estimate without tuning.
    """
    if given is not None and not given >= 0:
        raise SettingError(name, "must be zero or more")
    plain = build(np.inf)

    def at(setting: float) -> Tuned:
        evidence = plain if np.isinf(setting) else build(setting)
        bias = evidence.value - plain.value
        return Tuned(evidence.value, float(np.hypot(evidence.std_error, bias)), setting, plain)

    settings = [np.inf, *limits] if given is None else [float(given)]
    return min((at(setting) for setting in settings), key=lambda tuned: tuned.error)


def weight_limits(weight: Floats) -> list[float]:
    """Candidate limits: quantiles of the positive weights."""
    positive = weight[weight > 0]
    if positive.size == 0:
        return []
    return [float(limit) for limit in np.unique(np.quantile(positive, QUANTILES))]


def tuned_estimate(
    case: Case, estimator: str, tuned: Tuned, interval: Interval, *, weight: Floats
) -> Estimate:
    """The tuned value between the limits of the untuned one, widened to hold it."""
    plain = case.estimate(estimator, tuned.plain, interval)
    return replace(
        plain,
        risk=tuned.value,
        std_error=tuned.error,
        low=min(plain.low, tuned.value),
        high=max(plain.high, tuned.value),
        effective_n=effective_size(weight, count=case.count),
        tuning=tuned.setting,
    )


def weigh(probabilities: ArrayLike, action: ArrayLike, propensity: ArrayLike) -> Floats:
    """Policy probability over propensity of the logged action, shape (n,).

    Args:
        probabilities: The policy's distribution at each decision, shape (n, n_actions).
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
    case = make_case(loss, None, cluster, count)
    return case.estimate("logged", case.mean(case.loss, case.bounds), interval)


def matching_factor(
    weight: ArrayLike,
    cluster: ClusterLike,
    *,
    count: ArrayLike | None = None,
    interval: Interval = DEFAULT,
) -> Estimate:
    """Mean weight (the paper's TMF): 1 in expectation when the propensities are right."""
    case = make_case(np.zeros(np.shape(weight)), weight, cluster, count)
    weights = replace(case.mean(case.weight), exposure=None)  # no losses are in it
    return case.estimate("matching_factor", weights, interval)


@Weighted
def ips(case: Case) -> Evidence:
    """Inverse propensity risk, paper eq. (3): unbiased, and not translation-equivariant."""
    return case.mean(case.loss * case.weight)


@Weighted
def snips(case: Case) -> Evidence:
    """Self-normalised inverse propensity risk, paper eq. (4).

    The standard error carries the noise of the denominator, so a constant loss has none.
    """
    return case.ratio([(case.loss * case.weight, case.weight)], case.bounds)


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
    case = make_case(loss, weight, cluster, count)

    def build(limit: float) -> Evidence:
        return case.mean(case.loss * np.minimum(case.weight, limit))

    tuned = tune("clip", clip, weight_limits(case.weight), build)
    kept = np.minimum(case.weight, tuned.setting)
    return tuned_estimate(case, "clipped_ips", tuned, interval, weight=kept)


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
    case = make_case(model, None, cluster, count)
    return case.estimate("dm", case.mean(model, case.bounds), interval)


@Modelled
def dr(case: Case, model: Floats, model_policy: Floats) -> Evidence:
    """Doubly robust risk: right when either the propensities or the outcome model are."""
    return case.mean(model_policy + case.weight * (case.loss - model), case.bounds)


@Modelled
def sndr(case: Case, model: Floats, model_policy: Floats) -> Evidence:
    """Doubly robust risk whose correction is divided by the sum of the weights."""
    correction = (case.weight * (case.loss - model), case.weight)
    return case.ratio([(model_policy, np.ones(model.size)), correction], case.bounds)


def switch_dr(
    loss: ArrayLike,
    weight: ArrayLike,
    cluster: ClusterLike,
    *,
    switch: float | None = None,
    predicted: ArrayLike,
    predicted_policy: ArrayLike,
    count: ArrayLike | None = None,
    interval: Interval = DEFAULT,
) -> Estimate:
    """Doubly robust risk that leaves decisions of weight above `switch` to the outcome model.

    Left out, `switch` is chosen by the rule of `clipped_ips`.
    """
    case = make_case(loss, weight, cluster, count)
    model, model_policy = check_model(predicted, predicted_policy, case.loss.size)

    def keep(limit: float) -> Floats:
        return np.where(case.weight <= limit, case.weight, 0.0)

    def build(limit: float) -> Evidence:
        return case.mean(model_policy + keep(limit) * (case.loss - model), case.bounds)

    tuned = tune("switch", switch, weight_limits(case.weight), build)
    return tuned_estimate(case, "switch_dr", tuned, interval, weight=keep(tuned.setting))


def dr_shrinkage(
    loss: ArrayLike,
    weight: ArrayLike,
    cluster: ClusterLike,
    *,
    shrinkage: float | None = None,
    predicted: ArrayLike,
    predicted_policy: ArrayLike,
    count: ArrayLike | None = None,
    interval: Interval = DEFAULT,
) -> Estimate:
    """Doubly robust risk with optimistically shrunk weights `s w / (w^2 + s)` (Su et al. 2020).

    `shrinkage` is `s`: 0 is the direct method, infinity plain DR. Left out, it is chosen by the
    rule of `clipped_ips` among the squares of the same limits.
    """
    case = make_case(loss, weight, cluster, count)
    model, model_policy = check_model(predicted, predicted_policy, case.loss.size)

    def shrink(amount: float) -> Floats:
        if amount == 0 or np.isinf(amount):
            return case.weight * float(amount > 0)
        return amount * case.weight / (case.weight**2 + amount)

    def build(amount: float) -> Evidence:
        return case.mean(model_policy + shrink(amount) * (case.loss - model), case.bounds)

    amounts = [limit**2 for limit in weight_limits(case.weight)]
    tuned = tune("shrinkage", shrinkage, amounts, build)
    return tuned_estimate(case, "dr_shrinkage", tuned, interval, weight=shrink(tuned.setting))
