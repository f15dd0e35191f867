"""Differences of two risks, estimated in pairs on the same clusters."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from etips.evaluation.inference.checks import (
    ClusterLike,
    check_actions,
    check_numbers,
    check_probabilities,
    code_clusters,
)
from etips.evaluation.inference.estimate import Estimate
from etips.evaluation.inference.evidence import Evidence, ratio_of
from etips.evaluation.inference.exposure import expose
from etips.evaluation.inference.intervals import DEFAULT, Interval, p_of_zero


@dataclass(frozen=True)
class Contrast:
    """A first risk minus a second; below zero the first is better.

    Args:
        name: What is compared.
        difference: First minus second.
        std_error: Clustered standard error of the paired difference.
        low: Lower limit.
        high: Upper limit.
        p_value: Of "the first risk is not below the second": the two-sided p-value of the very
            interval where the difference is below zero, else 1. So it is at most 0.05 just where a
            95 % interval lies below zero.
        n_clusters: Clusters behind both.
        evidence: Cluster totals behind the difference.
    """

    name: str
    difference: float
    std_error: float
    low: float
    high: float
    p_value: float
    n_clusters: int
    evidence: Evidence = field(repr=False, compare=False, kw_only=True)


@dataclass(frozen=True)
class MatchedContrast:
    """Mean loss of matched minus unmatched decisions (ATENP), with the size of both groups."""

    difference: float
    std_error: float
    low: float
    high: float
    n_matched: int
    n_unmatched: int
    n_clusters: int


def difference(first: Estimate, second: Estimate, *, interval: Interval = DEFAULT) -> Contrast:
    """Risk of `first` minus that of `second`, paired by cluster.

    Take `logged_risk` as `second` for the gain over the clinicians. What the two share cancels, so
    the error is usually smaller than either's own. A tuned estimator enters untuned, as its limits
    do.
    """
    evidence = first.evidence.minus(second.evidence)
    low, high = interval(evidence)
    return Contrast(
        name=f"{first.estimator} - {second.estimator}",
        difference=evidence.value,
        std_error=evidence.std_error,
        low=low,
        high=high,
        p_value=p_of_zero(interval, evidence) if evidence.value < 0 else 1.0,
        n_clusters=evidence.n_clusters,
        evidence=evidence,
    )


def atenp(
    loss: ArrayLike,
    action: ArrayLike,
    probabilities: ArrayLike,
    cluster: ClusterLike,
    *,
    interval: Interval = DEFAULT,
) -> MatchedContrast:
    """Mean loss where the logged action is the policy's likeliest one, minus the mean elsewhere.

    A description, not an estimate of effect: patients who were treated as the policy says differ
    from the others. NaN when either group is empty.

    Args:
        loss: Loss of the logged action, shape (n,).
        action: Logged actions, shape (n,).
        probabilities: The policy's distribution at each decision, shape (n, n_actions).
        cluster: Stay or patient of each decision, shape (n,).
        interval: How the limits are made.
    """
    losses = check_numbers("loss", loss)
    n = losses.size
    table = check_probabilities("probabilities", probabilities, n=n)
    taken = check_actions(action, n=n, n_actions=table.shape[1])
    matched = (taken == table.argmax(axis=1)).astype(np.float64)
    terms = [(matched * losses, matched), ((1 - matched) * losses, 1 - matched)]
    clusters = code_clusters(cluster, n=n)
    evidence = ratio_of(clusters, terms, sign=(1.0, -1.0))
    bounds = (0.0, 1.0) if losses.min() >= 0 and losses.max() <= 1 else None
    own = expose(losses, matched, None, clusters, bounds)
    other = expose(losses, 1 - matched, None, clusters, bounds)
    if own is not None and other is not None:
        evidence = replace(evidence, exposure=own.minus(other))
    low, high = interval(evidence)
    n_matched = int(matched.sum())
    return MatchedContrast(
        evidence.value,
        evidence.std_error,
        low,
        high,
        n_matched=n_matched,
        n_unmatched=n - n_matched,
        n_clusters=evidence.n_clusters,
    )
