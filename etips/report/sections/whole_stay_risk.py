"""One decision or the whole stay: what a policy changes once, and what it does throughout."""

from dataclasses import dataclass

from markupsafe import Markup

from etips.disclosure import FEW
from etips.report.section import Section
from etips.report.svg import WIDTH, Scale, dot, drawing, line, polyline, text
from etips.report.wording import clean, number, percent, signed, span
from etips.results.results import GainResult, MethodResult, Results
from etips.results.whole_stay_result import (
    ONE_DECISION,
    THROUGHOUT,
    StayGainResult,
    WholeStayResult,
)

_OUTCOMES = {
    "sum": "the sum of the losses of a stay",
    "last": "the loss of the last decision of a stay",
}
_ROW = 30
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
    truth: str


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
        "with_truth": any(whole.truth is not None for _, whole in looked),
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
        truth=number(whole.truth),
    )


def _figure(method: MethodResult, whole: WholeStayResult, mean_loss: float | None) -> Markup:
    """Both gains with their intervals, as shares of the clinicians' risk."""
    once, usual = method.gain or GainResult(), whole.clinicians
    rows = [
        ("one decision", _change(once, mean_loss)),
        ("throughout", _change(whole.gain, None if usual is None else usual.risk)),
    ]
    ends = [min(max(end, -_FURTHEST), _FURTHEST) for _, own in rows if own for end in own]
    scale = Scale.around([*ends, 0.0], 104, WIDTH - 60)
    bottom = 14 + _ROW * len(rows)
    parts = []
    for value in scale.ticks(4):
        spot = scale.at(value)
        parts.append(line((spot, 10), (spot, bottom), class_="grid"))
        parts.append(text(spot, bottom + 16, percent(value), class_="tick middle"))
    parts.append(line((scale.at(0), 10), (scale.at(0), bottom), class_="guide"))
    for place, (label, own) in enumerate(rows):
        parts += _drawn(label, own, scale, 14 + _ROW * place + _ROW / 2)
    middle = (scale.start + scale.stop) / 2
    words = "change against the clinicians (left is better)"
    parts.append(text(middle, bottom + 34, words, class_="small middle"))
    spoken = f"{clean(method.name)}: gain at one decision and over the stay, {whole.verdict}"
    return drawing(bottom + 42, spoken, *parts)


def _change(gain: GainResult | StayGainResult, usual: float | None) -> Change | None:
    """A gain as a share of what it is a gain over; None where either is not known."""
    if gain.difference is None or gain.low is None or gain.high is None or not usual:
        return None
    unit = abs(usual)
    return gain.difference / unit, gain.low / unit, gain.high / unit


def _drawn(label: str, own: Change | None, scale: Scale, y: float) -> list[Markup]:
    parts = [text(4, y + 4, label, class_="tick strong")]
    if own is None:
        return [*parts, text(WIDTH - 4, y + 4, "none", class_="tick end")]
    value, low, high = own
    parts.append(line((scale.at(low), y), (scale.at(high), y), class_="error c0"))
    for beyond, x, sign in ((low < scale.low, scale.start, 1), (high > scale.high, scale.stop, -1)):
        if beyond:  # an arrow: the interval goes on there
            tip = [(x + 5 * sign, y - 4), (x, y), (x + 5 * sign, y + 4)]
            parts.append(polyline(tip, class_="error c0"))
    parts.append(dot(scale.at(value), y, 5, class_="mark c0"))
    return [*parts, text(WIDTH - 4, y + 4, percent(value), class_="tick strong end")]
