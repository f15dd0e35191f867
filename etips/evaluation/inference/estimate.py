"""Estimates of a risk, their differences by cluster, and which policies are safely better."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from etips.errors import DataError, require
from etips.evaluation.inference.checks import (
    ClusterLike,
    Floats,
    check_actions,
    check_numbers,
    check_probabilities,
    check_share,
    code_clusters,
)
from etips.evaluation.inference.evidence import Evidence, expose, ratio_of
from etips.evaluation.inference.intervals import DEFAULT, Interval, p_of_zero


@dataclass(frozen=True)
class Estimate:
    """A risk (or matching factor) with its interval.

    Args:
        risk: The point estimate; NaN when the policy never matches the log.
        std_error: Clustered standard error; infinite when one cluster carries all the weight. Of a
            tuned estimator, the root of its estimated squared error, bias included.
        low: Lower limit. Of a tuned estimator, that of its untuned form: the bias that tuning adds
            cannot be seen in the sample, so no shorter interval would be valid.
        high: Upper limit, likewise.
        effective_n: Decisions of equal weight that would be worth as much (Kish).
        tuning: The clip, switch or shrinkage used; infinite for none; None for other estimators.
        evidence: Cluster totals behind the limits, for paired differences and other intervals.
    """

    estimator: str
    risk: float
    std_error: float
    low: float
    high: float
    n_decisions: int
    n_clusters: int
    effective_n: float
    tuning: float | None = None
    evidence: Evidence = field(repr=False, compare=False, kw_only=True)

    @classmethod
    def of(
        cls,
        estimator: str,
        evidence: Evidence,
        *,
        weight: Floats,
        count: Floats | None,
        interval: Interval,
    ) -> Self:
        """The value of `evidence` with an interval around it."""
        low, high = interval(evidence)
        return cls(
            estimator=estimator,
            risk=evidence.value,
            std_error=evidence.std_error,
            low=low,
            high=high,
            n_decisions=weight.size,
            n_clusters=evidence.n_clusters,
            effective_n=effective_size(weight, count=count),
            evidence=evidence,
        )


def effective_size(weight: Floats, *, count: Floats | None = None) -> float:
    """Kish's effective sample size of `weight` (n,); 0 when all weights are."""
    counted = weight if count is None else weight * count
    squares = float(counted @ weight)
    total = float(counted.sum())
    return total * total / squares if squares > 0 else 0.0


@dataclass(frozen=True)
class Contrast:
    """A first risk minus a second; below zero the first is better.

    Args:
        p_value: Of "the first risk is not below the second": the two-sided p-value of the very
            interval where the difference is below zero, else 1. So it is at most 0.05 just where a
            95 % interval lies below zero.
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
        probabilities: The policy's distribution at each decision, shape (n, n_actions).
        cluster: Stay or patient of each decision, shape (n,).
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
    first = expose(losses, matched, None, clusters, bounds)
    other = expose(losses, 1 - matched, None, clusters, bounds)
    if first is not None and other is not None:
        evidence = replace(evidence, exposure=first.minus(other))
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


@dataclass(frozen=True)
class Improvement:
    """The answer for one policy of a study.

    Args:
        difference: Its risk minus the clinicians'.
        p_value: For this policy alone, see `Contrast`.
        adjusted_p: The same after Holm's correction for all policies of the study.
        better: Whether "its risk is below the clinicians'" holds at the study's level.
    """

    policy: str
    difference: float
    p_value: float
    adjusted_p: float
    better: bool


def safe_improvement(
    gains: Mapping[str, Contrast], *, alpha: float = 0.05
) -> tuple[Improvement, ...]:
    """Which policies have a risk below the clinicians', at most `alpha` chance of any false yes.

    Pass every policy that was tried, not the winners only: Holm's correction counts them. The gains
    must come from stays that took no part in learning or selection (`require_unseen`).

    Args:
        gains: For each policy, `difference(estimate, logged_risk(...))`.
        alpha: Chance of one or more false yeses in the whole study.
    """
    check_share("alpha", alpha)
    if not gains:
        raise DataError("gains", "must hold at least one policy")
    names = list(gains)
    p_values = np.array([gains[name].p_value for name in names])
    adjusted = holm(p_values)
    return tuple(
        Improvement(name, gains[name].difference, float(p), float(a), bool(a <= alpha))
        for name, p, a in zip(names, p_values, adjusted, strict=True)
    )


def holm(p_values: ArrayLike) -> Floats:
    """Holm's step-down adjustment of p-values, shape (m,); valid under any dependence."""
    raw = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(raw, kind="stable")
    stepped = raw[order] * (raw.size - np.arange(raw.size))
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return adjusted


def require_unseen(cluster: ArrayLike, selected_on: ArrayLike) -> None:
    """Refuse an evaluation on stays that were used to learn or select the policy.

    Args:
        cluster: Stay or patient of each decision of the evaluation, shape (n,).
        selected_on: Stays or patients used before, any number.
    """
    require(
        "cluster",
        "must not have been used for selection",
        np.isin(np.asarray(cluster), np.asarray(selected_on), invert=True),
        fix="Evaluate on held-out stays.",
    )
