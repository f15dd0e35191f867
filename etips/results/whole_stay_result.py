"""Whole-stay risk as results hold it: had the policy decided throughout."""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["sum", "last"]
"""Of a stay: the sum of its losses, or the loss of its last decision."""

ONE_DECISION = "One decision changed, the rest as logged"
THROUGHOUT = "The policy decides throughout"


@dataclass(frozen=True)
class StayRiskResult:
    """The outcome of a stay with its interval; None where there is no number.

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
class StayGainResult:
    """Outcome of a stay under the policy minus that under the clinicians.

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


@dataclass(frozen=True)
class WholeStayResult:
    """What the log says of stays in which the policy decides throughout.

    Args:
        outcome: Of a stay.
        estimates: The headline first.
        clinicians: Mean outcome of the logged stays.
        gain: Of the headline, against the clinicians.
        effective_stays: What the stays that were treated as the policy would are worth.
        weight_share: Share of the ratios at the end of stays that was used; the rest was cut off.
        n_corrected: Decisions of a stay, from its first, that the log corrects; later ones rest on
            the model alone.
        longest_stay: Decisions of the longest stay.
        verdict: On the headline and its gain.
        reasons: For it.
        sentence: What was found, for a reader.
        one_decision: What was found for one changed decision, to stand beside it.
        reversal: Whether a gain at one decision is a loss over the stay, or seems to be.
        truth: The true outcome under the policy, in worlds that know it.
    """

    outcome: Outcome
    estimates: tuple[StayRiskResult, ...]
    clinicians: StayRiskResult | None
    gain: StayGainResult
    effective_stays: float | None
    weight_share: float | None
    n_corrected: int
    longest_stay: int
    verdict: Literal["reliable", "doubtful", "unusable"]
    reasons: tuple[str, ...]
    sentence: str
    one_decision: str
    reversal: bool = False
    truth: float | None = None
