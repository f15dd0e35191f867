"""Estimates and differences as results hold them, of one decision or of whole stays."""

from dataclasses import dataclass


@dataclass(frozen=True)
class EstimateResult:
    """A risk with its interval; None where there is no number.

    Args:
        estimator: Name of the formula.
        risk: The point estimate.
        std_error: Clustered standard error.
        low: Lower limit.
        high: Upper limit.
        label: What a page calls the formula.
        sentence: What it does, for a reader.
    """

    estimator: str
    risk: float | None
    std_error: float | None
    low: float | None
    high: float | None
    label: str | None = None
    sentence: str | None = None


@dataclass(frozen=True)
class DifferenceResult:
    """An outcome under a policy minus that under the clinicians; None where there is no number.

    Args:
        difference: Below zero is better.
        std_error: Of it.
        low: Lower limit.
        high: Upper limit.
        better: Whether the interval lies below zero, allowing for all policies looked at.
    """

    difference: float | None = None
    std_error: float | None = None
    low: float | None = None
    high: float | None = None
    better: bool | None = None
