"""The balance of the prognosis as results hold it: two numbers and a sentence."""

from etips.evaluation.assessment import Assessment
from etips.evaluation.prognosis_balance import PrognosisBalances
from etips.files.json_documents import finite
from etips.results.prognosis_result import PrognosisResult

SAME = 0.0005  # what rounds to nothing


def summarize_prognosis(assessment: Assessment, *, hidden: bool) -> PrognosisResult | None:
    """How well off the weighted patients were to begin with; None where nobody can tell.

    Args:
        assessment: Of the policy.
        hidden: Whether the mean loss must not be worked out.
    """
    found = assessment.diagnostics.prognosis
    if found is None or hidden:
        return None
    return PrognosisResult(
        finite(found.plain.difference),
        finite(found.plain.std_error),
        _sentence(found, assessment.gain.difference),
    )


def _sentence(found: PrognosisBalances, gain: float) -> str:
    difference = found.plain.difference
    if not abs(difference) >= SAME:
        return "The weighted patients had the same prognosis as all patients."
    word = "better" if difference < 0 else "worse"
    told = f"The weighted patients had a prognosis {abs(difference):.3f} {word} than all patients"
    if found.rest is not None:
        left = abs(found.rest.difference)
        return f"{told}; the predicted losses make up for all but {left:.3f} of it."
    if gain < 0 and difference <= gain:
        return f"{told}: that alone would explain the gain."
    return f"{told}."
