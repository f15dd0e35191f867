"""Results as a small table inside a notebook: coloured by finding and verdict, with the reasons."""

from collections.abc import Mapping

from markupsafe import Markup, escape

from etips.report.wording import FOUND_MARKS, LONG, NONE, clean, count, name, number, signed, span
from etips.results.conclusions import Conclusion, Kind, conclude
from etips.results.results import DataSummary, MethodResult, Results

COLOURS: Mapping[Kind, tuple[str, str]] = {
    "better": ("#00694e", "#e2f3ec"),
    "partly": ("#00558a", "#e1eefa"),
    "none": ("#4a545d", "#e9edf0"),
    "worse": ("#7d2468", "#f7e6f3"),
    "doubtful": ("#8a4600", "#fdeedb"),
    "unusable": ("#a31621", "#fce6e6"),
    "unknown": ("#4a545d", "#e9edf0"),
}
"""Letters and ground of each finding: a notebook may be light or dark, so both are said."""

_CELL = "padding:.35em .8em;text-align:left;vertical-align:top;white-space:normal"
_HEADINGS = ("Policy", "Finding", "Risk", "Against the clinicians", "Why")


def show_policies(results: Results) -> str:
    """A table of the policies; names are text, whatever they hold."""
    heads = Markup("").join(
        Markup('<th scope="col" style="{}">{}</th>').format(_CELL, title) for title in _HEADINGS
    )
    rows = Markup("").join(_row(method, results.data) for method in results.methods)
    return str(
        Markup(
            '<table class="etips-results"><caption style="text-align:left">{}</caption>'
            "<thead><tr>{}</tr></thead><tbody>{}</tbody></table>"
        ).format(_caption(results.data), heads, rows)
    )


def _caption(data: DataSummary) -> str:
    return (
        f"{count(data.n_decisions)} decisions; the clinicians' risk is {number(data.mean_loss)}, "
        "lower is better. For research, not for clinical use."
    )


def _row(method: MethodResult, data: DataSummary) -> Markup:
    head = method.estimates[0] if method.estimates else None
    gain = method.gain
    known = gain is not None and gain.difference is not None
    cells = (
        Markup("<b>{}</b>").format(name(method.name)),
        _badge(conclude(method, data), method.verdict or "no verdict"),
        _figure(number(head.risk), span(head.low, head.high)) if head else escape(NONE),
        _figure(signed(gain.difference), f"{signed(gain.low)} to {signed(gain.high)}")
        if gain is not None and known
        else escape(NONE),
        Markup("<br>").join(clean(reason, LONG) for reason in method.reasons),
    )
    inside = Markup("").join(Markup('<td style="{}">{}</td>').format(_CELL, c) for c in cells)
    return Markup("<tr>{}</tr>").format(inside)


def _figure(value: str, limits: str) -> Markup:
    shape = Markup('<span style="white-space:nowrap">{}<br><small>{}</small></span>')
    return shape.format(value, limits)


def _badge(conclusion: Conclusion, verdict: str) -> Markup:
    ink, ground = COLOURS[conclusion.kind]
    look = f"background:{ground};color:{ink};border-radius:1em;padding:.1em .7em;font-weight:600"
    shape = Markup('<span style="{};white-space:nowrap">{} {}</span>')
    badge = shape.format(look, FOUND_MARKS[conclusion.kind], conclusion.words)
    if verdict in conclusion.words:
        return badge
    return badge + Markup("<br><small>verdict: {}</small>").format(verdict)
