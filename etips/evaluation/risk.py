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

QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
"""Of the positive weights, tried as limits beside no limit at all."""


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

    @classmethod
    def of(
        cls,
        loss: ArrayLike,
        weight: ArrayLike | None,
        cluster: ClusterLike,
        count: ArrayLike | None,
    ) -> "Case":
        """Check the arrays of a call; without `weight` every decision weighs 1."""
        losses = check_numbers("loss", loss)
        n = losses.size
        weights = np.ones(n) if weight is None else check_weights("weight", weight, n=n)
        return cls(losses, weights, code_clusters(cluster, n=n), check_counts(count, n=n))

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

    def model(self, predicted: ArrayLike, predicted_policy: ArrayLike) -> tuple[Floats, Floats]:
        """Predicted losses of the logged action and of the policy, checked, shape (n,) each."""
        n = self.loss.size
        return (
            check_numbers("predicted", predicted, n=n),
            check_numbers("predicted_policy", predicted_policy, n=n),
        )

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

    def tuned(
        self,
        estimator: str,
        setting: tuple[str, float | None],
        limited: Callable[[float], Floats],
        risk: Callable[[Floats], Evidence],
        interval: Interval,
        power: int = 1,
    ) -> Estimate:
        """The risk by limited weights, between the limits of the untuned one, widened to hold it.

        Args:
            setting: Its name, and the one that was given. Left out, it is that quantile of the
                positive weights, or no limit at all, with the smallest estimated squared error: the
                squared standard error plus the squared distance from the estimate without tuning.
            limited: The weights under a setting, shape (n,).
            risk: The estimate from weights.
            power: Of the quantiles, to make settings of them.
        """
        name, given = setting
        if given is not None and not given >= 0:
            raise SettingError(name, "must be zero or more")
        plain, settings = risk(self.weight), [np.inf if given is None else float(given)]
        positive = self.weight[self.weight > 0]
        if given is None and positive.size:
            settings += [float(q) ** power for q in np.unique(np.quantile(positive, QUANTILES))]

        def error(evidence: Evidence) -> float:
            return float(np.hypot(evidence.std_error, evidence.value - plain.value))

        tried = [plain if np.isinf(own) else risk(limited(own)) for own in settings]
        best = min(range(len(tried)), key=lambda place: error(tried[place]))
        untuned, value = self.estimate(estimator, plain, interval), tried[best].value
        return replace(
            untuned,
            risk=value,
            std_error=error(tried[best]),
            low=min(untuned.low, value),
            high=max(untuned.high, value),
            effective_n=effective_size(limited(settings[best]), count=self.count),
            tuning=settings[best],
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
    case = Case.of(loss, None, cluster, count)
    return case.estimate("logged", case.mean(case.loss, case.bounds), interval)


def matching_factor(
    weight: ArrayLike,
    cluster: ClusterLike,
    *,
    count: ArrayLike | None = None,
    interval: Interval = DEFAULT,
) -> Estimate:
    """Mean weight (the paper's TMF): 1 in expectation when the propensities are right."""
    case = Case.of(np.zeros(np.shape(weight)), weight, cluster, count)
    weights = replace(case.mean(case.weight), exposure=None)  # no losses are in it
    return case.estimate("matching_factor", weights, interval)


def ips(
    loss: ArrayLike,
    weight: ArrayLike,
    cluster: ClusterLike,
    *,
    count: ArrayLike | None = None,
    interval: Interval = DEFAULT,
) -> Estimate:
    """Inverse propensity risk, paper eq. (3): unbiased, and not translation-equivariant."""
    case = Case.of(loss, weight, cluster, count)
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
    case = Case.of(loss, weight, cluster, count)
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

    Left out, `clip` is chosen as in `Case.tuned`. The limits are those without clip, see
    `Estimate`.
    """
    case = Case.of(loss, weight, cluster, count)
    return case.tuned(
        "clipped_ips",
        ("clip", clip),
        lambda limit: np.minimum(case.weight, limit),
        lambda weights: case.mean(case.loss * weights),
        interval,
    )


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
    case = Case.of(model, None, cluster, count)
    return case.estimate("dm", case.mean(model, case.bounds), interval)


def dr(
    loss: ArrayLike,
    weight: ArrayLike,
    cluster: ClusterLike,
    predicted: ArrayLike,
    predicted_policy: ArrayLike,
    *,
    count: ArrayLike | None = None,
    interval: Interval = DEFAULT,
) -> Estimate:
    """Doubly robust risk: right when either the propensities or the outcome model are."""
    case = Case.of(loss, weight, cluster, count)
    model, model_policy = case.model(predicted, predicted_policy)
    corrected = model_policy + case.weight * (case.loss - model)
    return case.estimate("dr", case.mean(corrected, case.bounds), interval)


def sndr(
    loss: ArrayLike,
    weight: ArrayLike,
    cluster: ClusterLike,
    predicted: ArrayLike,
    predicted_policy: ArrayLike,
    *,
    count: ArrayLike | None = None,
    interval: Interval = DEFAULT,
) -> Estimate:
    """Doubly robust risk whose correction is divided by the sum of the weights."""
    case = Case.of(loss, weight, cluster, count)
    model, model_policy = case.model(predicted, predicted_policy)
    correction = (case.weight * (case.loss - model), case.weight)
    evidence = case.ratio([(model_policy, np.ones(model.size)), correction], case.bounds)
    return case.estimate("sndr", evidence, interval)


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
    case = Case.of(loss, weight, cluster, count)
    model, model_policy = case.model(predicted, predicted_policy)
    return case.tuned(
        "switch_dr",
        ("switch", switch),
        lambda limit: np.where(case.weight <= limit, case.weight, 0.0),
        lambda weights: case.mean(model_policy + weights * (case.loss - model), case.bounds),
        interval,
    )


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
    case = Case.of(loss, weight, cluster, count)
    model, model_policy = case.model(predicted, predicted_policy)

    def shrunk(amount: float) -> Floats:
        if amount == 0 or np.isinf(amount):
            return case.weight * float(amount > 0)
        return amount * case.weight / (case.weight**2 + amount)

    return case.tuned(
        "dr_shrinkage",
        ("shrinkage", shrinkage),
        shrunk,
        lambda weights: case.mean(model_policy + weights * (case.loss - model), case.bounds),
        interval,
        power=2,
    )
