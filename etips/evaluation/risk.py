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

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from etips.evaluation.case import Case, Modelled, Weighted, check_model, make_case
from etips.evaluation.inference.checks import (
    ClusterLike,
    Floats,
    check_actions,
    check_numbers,
    check_probabilities,
    check_propensity,
    weigh_logged,
)
from etips.evaluation.inference.estimate import Estimate
from etips.evaluation.inference.evidence import Evidence
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.weight_tuning import tune, tuned_estimate, weight_limits


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
