"""Whole-stay risk as results hold it: had the policy decided throughout."""

from dataclasses import dataclass
from typing import Literal

from etips.results.estimate_result import DifferenceResult, EstimateResult

Outcome = Literal["sum", "last"]
"""Of a stay: the sum of its losses, or the loss of its last decision."""

ONE_DECISION = "One decision changed, the rest as logged"
THROUGHOUT = "The policy decides throughout"


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
    """

    outcome: Outcome
    estimates: tuple[EstimateResult, ...]
    clinicians: EstimateResult | None
    gain: DifferenceResult
    effective_stays: float | None
    weight_share: float | None
    n_corrected: int
    longest_stay: int
    verdict: Literal["reliable", "doubtful", "unusable"]
    reasons: tuple[str, ...]
    sentence: str
    one_decision: str
    reversal: bool = False
