"""One decision or the whole stay: what a policy changes once, and what it does throughout."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from etips.disclosure import FEW
from etips.report.row_plots import Axis, Row, interval_rows
from etips.report.section import Section
from etips.report.svg import Scale
from etips.report.wording import clean, number, percent, signed, span
from etips.results.estimate_result import DifferenceResult
from etips.results.results import GainResult, MethodResult, Results
from etips.results.whole_stay_result import ONE_DECISION, THROUGHOUT, WholeStayResult

_OUTCOMES = {
    "sum": "the sum of the losses of a stay",
    "last": "the loss of the last decision of a stay",
}
_FURTHEST = 2.0  # changes beyond twice the clinicians' risk are drawn as arrows

Change = tuple[float, float, float]
"""A gain with its limits, as a share of the clinicians' risk."""


@dataclass(frozen=True)
class StayRow:
    """A policy over whole stays, in words; see the template for what stands where."""

    method: MethodResult
    whole: WholeStayResult
    risk: str
    clinicians: str
    gain: str
    better: str
    size: str
    reach: str


def stay_warning(method: MethodResult) -> str | None:
    """What must be read first: a gain at one decision that is a loss over the stay."""
    whole = method.whole_stay
    if whole is None or not whole.reversal:
        return None
    surely = whole.gain.low is not None and whole.gain.low > 0
    return (
        "A gain at one decision that "
        + ("is a loss over the whole stay. " if surely else "looks like a loss over the stay. ")
        + whole.sentence
    )


def _make(results: Results) -> dict[str, object] | None:
    looked = [(m, m.whole_stay) for m in results.methods if m.whole_stay is not None]
    if not looked:
        return None
    return {
        "outcome": _OUTCOMES[looked[0][1].outcome],
        "one_decision": ONE_DECISION,
        "throughout": THROUGHOUT,
        "figures": [(m, w, _figure(m, w, results.data.mean_loss)) for m, w in looked],
        "rows": [_row(method, whole) for method, whole in looked],
        "formulas": [(e.label or e.estimator, e.sentence or "") for e in looked[0][1].estimates],
    }


SECTION = Section("whole-stay", "One decision, or the whole stay", "whole_stay_risk.html", _make)


def _row(method: MethodResult, whole: WholeStayResult) -> StayRow:
    head, gain = whole.estimates[0], whole.gain
    risk = f"{number(head.risk)} ({span(head.low, head.high)})"
    known = gain.difference is not None
    corrected = whole.n_corrected >= whole.longest_stay
    return StayRow(
        method=method,
        whole=whole,
        risk=risk,
        clinicians=number(whole.clinicians.risk if whole.clinicians else None),
        gain=f"{signed(gain.difference)} ({signed(gain.low)} to {signed(gain.high)})"
        if known
        else "not shown",
        better="not known" if gain.better is None else "yes" if gain.better else "not shown",
        size=FEW if whole.effective_stays is None else number(whole.effective_stays, 0),
        reach="to the end" if corrected else f"the first {whole.n_corrected}",
    )


def _figure(method: MethodResult, whole: WholeStayResult, mean_loss: float | None) -> Markup:
    """Both gains with their intervals, as shares of the clinicians' risk."""
    once, usual = method.gain or GainResult(), whole.clinicians
    changes = {
        "one decision": _change(once, mean_loss),
        "throughout": _change(whole.gain, None if usual is None else usual.risk),
    }
    ends = [min(max(end, -_FURTHEST), _FURTHEST) for own in changes.values() if own for end in own]
    rows = [_drawn(label, own) for label, own in changes.items()]
    words = "change against the clinicians (left is better)"
    axis = Axis(Scale.around([*ends, 0.0], 0, 100), words, guide=0.0, ticks=_in_per_cent)
    spoken = f"{clean(method.name)}: gain at one decision and over the stay, {whole.verdict}"
    return interval_rows(rows, axis, spoken)


def _in_per_cent(value: float, _: Sequence[float]) -> str:
    return percent(value)


def _drawn(label: str, own: Change | None) -> Row:
    if own is None:
        return Row(label, None, None, None, "none", strong=True)
    return Row(label, *own, percent(own[0]), strong=True)


def _change(gain: DifferenceResult, usual: float | None) -> Change | None:
    """A gain as a share of what it is a gain over; None where either is not known."""
    if gain.difference is None or gain.low is None or gain.high is None or not usual:
        return None
    unit = abs(usual)
    return gain.difference / unit, gain.low / unit, gain.high / unit
