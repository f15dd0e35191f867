"""The result of an estimator: a risk, its error and the evidence behind it."""

from dataclasses import dataclass, field
from typing import Self

from etips.evaluation.inference.checks import Floats
from etips.evaluation.inference.evidence import Evidence
from etips.evaluation.inference.intervals import Interval


@dataclass(frozen=True)
class Estimate:
    """A risk (or matching factor) with its interval.

    Args:
        estimator: Name of the formula.
        risk: The point estimate; NaN when the policy never matches the log.
        std_error: Clustered standard error; infinite when one cluster carries all the weight. Of a
            tuned estimator, the root of its estimated squared error, bias included.
        low: Lower limit. Of a tuned estimator, that of its untuned form: the bias that tuning adds
            cannot be seen in the sample, so no shorter interval would be valid.
        high: Upper limit, likewise.
        n_decisions: Decisions in the log.
        n_clusters: Clusters in the log.
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
