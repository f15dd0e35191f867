"""The policies: every one that was tried, each with its verdict beside its first number."""

from dataclasses import dataclass

from etips.disclosure import FEW
from etips.report import wording
from etips.report.section import Section
from etips.report.wording import NONE, number, percent, signed, span
from etips.results.conclusions import doubt_of
from etips.results.results import DataSummary, EstimateResult, MethodResult, Results
from etips.results.study_result import StudyResult

MEASURES = (
    ("Verdict", "Whether the log can carry the number: reliable, doubtful or unusable."),
    (
        "Risk",
        "Mean loss after a decision, had the policy made it and all else been as logged, with its "
        "95\u00a0% interval. Drawn: of a policy that takes its likeliest action, if it drew one "
        "from its probabilities.",
    ),
    (
        "Better?",
        "Where stays have several decisions, yes asks for a gain over the whole stay too.",
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
    verdict: str | None
    risk: str
    limits: str
    gain: str
    gain_limits: str
    better: str
    factor: str
    size: str
    drawn: str
    in_sample: bool
    truth: str


def _make(results: Results) -> dict[str, object]:
    study = results if isinstance(results, StudyResult) else None
    tables = () if study is None else study.tables
    return {
        "data": results.data,
        "outcome": results.data.provenance.get("loss"),
        "with_truth": any(method.truth is not None for method in results.methods),
        "policies": [_row(method, results.data) for method in results.methods],
        "words": [*_method_words(results, in_tables=bool(tables)), *MEASURES],
        "tables": tables,
        "marks": wording.MARKS,
    }


SECTION = Section("policies", "The policies", "policy_table.html", _make)


def _row(method: MethodResult, data: DataSummary) -> PolicyRow:
    head = method.estimates[0] if method.estimates else None
    gain = method.gain
    known = gain is not None and gain.difference is not None
    return PolicyRow(
        name=method.name,
        verdict=method.verdict,
        risk=number(head.risk if head else None),
        limits=span(head.low, head.high) if head else "",
        gain=signed(gain.difference if gain else None),
        gain_limits=f"{signed(gain.low)} to {signed(gain.high)}" if gain and known else "",
        better=_better(method, data),
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


def _better(method: MethodResult, data: DataSummary) -> str:
    gain = method.gain
    if gain is None or gain.better is None:
        return NONE
    if not (gain.better or gain.better_at_one_decision):
        return "not shown"
    if method.in_sample:
        return "in sample"
    word = "yes" if gain.better or data.one_decision else "at one decision"
    if method.verdict != "reliable":
        return f"{word}, but {method.verdict}"
    doubt = doubt_of(method, data)
    return f"{word}; {doubt}" if doubt else word


def _method_words(results: Results, *, in_tables: bool) -> list[tuple[str, str]]:
    """What the policies are, where their method is known; the study's tables have own names."""
    return [
        (
            method.name,
            f"{method.sentence} In the tables below: {method.label}."
            if in_tables and method.label
            else method.sentence,
        )
        for method in results.methods
        if method.sentence
    ]
