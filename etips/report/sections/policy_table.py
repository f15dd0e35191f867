"""The policies: every one that was tried, each with its verdict beside its first number."""

from dataclasses import dataclass

from etips.disclosure import FEW
from etips.report.policy_words import what_it_does
from etips.report.section import Section
from etips.report.sections.study_folds import is_by_fold
from etips.report.wording import number, percent, signed, span
from etips.results.conclusions import KINDS, Conclusion, conclude, doubt_of
from etips.results.results import EstimateResult, MethodResult, Results

MEASURES = (
    ("Verdict", "Whether the log can carry the number: reliable, doubtful or unusable."),
    (
        "Risk",
        "Mean loss after a decision, had the policy made it and all else been as logged, with its "
        "95\u00a0% interval. Drawn: of a policy that takes its likeliest action, if it drew one "
        "from its probabilities.",
    ),
    (
        "Better",
        "Shown with one false yes in twenty over all policies tried. Where stays have several "
        "decisions it asks for a gain over the whole stay too.",
    ),
    (
        "Weight",
        "How much likelier the policy is to do what was done than the clinicians were.",
    ),
    (
        "Matching factor",
        "Mean weight. It should be 1; far from it, the policy does what the log does not hold.",
    ),
    (
        "Effective sample size",
        "How many equally weighted decisions would carry as much evidence.",
    ),
)
"""Words of the table, in plain language."""


@dataclass(frozen=True)
class PolicyRow:
    """A policy in words; see the template for what stands where."""

    name: str
    does: str | None
    verdict: str
    conclusion: Conclusion
    doubt: str | None
    risk: str
    limits: str
    gain: str
    gain_limits: str
    factor: str
    size: str
    drawn: str
    in_sample: bool
    truth: str


def _make(results: Results) -> dict[str, object]:
    rows = [_row(method, results) for method in results.methods]
    kinds = {row.conclusion.kind for row in rows}
    return {
        "data": results.data,
        "with_truth": any(method.truth is not None for method in results.methods),
        "policies": rows,
        "legend": [(Conclusion(k, short), means) for k, short, means in KINDS if k in kinds],
        "words": [*_method_words(results), *MEASURES],
        "folded": is_by_fold(results),
    }


SECTION = Section("policies", "The policies", "policy_table.html", _make)


def _row(method: MethodResult, results: Results) -> PolicyRow:
    head = method.estimates[0] if method.estimates else None
    gain, data = method.gain, results.data
    known = gain is not None and gain.difference is not None
    conclusion = conclude(method, data)
    return PolicyRow(
        name=method.name,
        does=what_it_does(results, method.name),
        verdict=method.verdict or "none",
        conclusion=conclusion,
        doubt=doubt_of(method, data) if conclusion.kind == "partly" else None,
        risk=number(head.risk if head else None),
        limits=span(head.low, head.high) if head else "",
        gain=signed(gain.difference if gain else None),
        gain_limits=f"{signed(gain.low)} to {signed(gain.high)}" if gain and known else "",
        factor=number(method.diagnostics.matching_factor if method.diagnostics else None, 2),
        size=_size(method, data.n_decisions),
        drawn=_drawn(method.as_probabilities),
        in_sample=method.in_sample,
        truth=number(method.truth),
    )


def _size(method: MethodResult, n_decisions: int | None) -> str:
    size = method.diagnostics.effective_sample_size if method.diagnostics else None
    if method.diagnostics is not None and size is None:
        return FEW
    share = f" ({percent(size / n_decisions)})" if size is not None and n_decisions else ""
    return number(size, 0) + share


def _drawn(estimate: EstimateResult | None) -> str:
    """The risk if actions were drawn, where the policy takes its likeliest one."""
    if estimate is None:
        return ""
    return f"drawn: {number(estimate.risk)} ({span(estimate.low, estimate.high)})"


def _method_words(results: Results) -> list[tuple[str, str]]:
    """What the policies are, where their method is known, and what the paper calls it."""
    return [
        (method.name, f"{method.sentence}{_in_the_paper(method)}")
        for method in results.methods
        if method.sentence
    ]


def _in_the_paper(method: MethodResult) -> str:
    if method.label is None or _letters(method.label).startswith(_letters(method.name)):
        return ""
    return f" The paper calls it {method.label}."


def _letters(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalpha())
