"""Results as tables: for a spreadsheet, and inside a notebook, coloured by finding."""

import csv
import io
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from etips.report.wording import FOUND_MARKS, LONG, NONE, clean, count, name, number, signed, span
from etips.results.comparison_result import Comparison
from etips.results.conclusions import Kind, conclude
from etips.results.plain_text import COLUMNS, flat_rows
from etips.results.records import NOTICE
from etips.results.results import Results

COLOURS: Mapping[Kind, tuple[str, str]] = {
    "better": ("#00694e", "#e2f3ec"),
    "partly": ("#00558a", "#e1eefa"),
    "none": ("#4a545d", "#e9edf0"),
    "worse": ("#7d2468", "#f7e6f3"),
    "doubtful": ("#8a4600", "#fdeedb"),
    "unusable": ("#a31621", "#fce6e6"),
    "unknown": ("#4a545d", "#e9edf0"),
}
"""Letters and ground of each finding: a notebook may be light or dark, so both are set."""

_CELL = "padding:.35em .8em;text-align:left;vertical-align:top;white-space:normal"
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def policies_csv(results: Results) -> str:
    """One row a policy and estimator, each with the verdict beside the number."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in flat_rows(results.methods, results.data, every_estimator=True):
        writer.writerow([guard(v) if isinstance(v, str) else v for v in row.values()])
    return file.getvalue()


def guard(text: str) -> str:
    """Text that a spreadsheet shows and never computes; control characters become spaces."""
    words = "".join(c if c.isprintable() else " " for c in text)
    computes = text.startswith(_FORMULA) or words.lstrip().startswith(_FORMULA)
    return f"'{words}" if computes else words


def show_policies(results: Results) -> str:
    """The policies inside a notebook; names are text, whatever they hold."""
    rows, data = [], results.data
    for method in results.methods:
        head = method.estimates[0] if method.estimates else None
        gain, conclusion = method.gain, conclude(method, data)
        known = gain is not None and gain.difference is not None
        rows.append(
            (
                Markup("<b>{}</b>").format(name(method.name)),
                _badge(conclusion.kind, conclusion.words, method.verdict or "no verdict"),
                _figure(number(head.risk), span(head.low, head.high)) if head else NONE,
                _difference(gain.difference, gain.low, gain.high) if gain and known else NONE,
                _lines(method.reasons),
            )
        )
    caption = (
        f"{count(data.n_decisions)} decisions; the clinicians' risk is "
        f"{number(data.mean_loss)}, lower is better. {NOTICE}"
    )
    return _table(caption, ("Policy", "Finding", "Risk", "Against the clinicians", "Why"), rows)


def show_pairs(comparison: Comparison) -> str:
    """The differences inside a notebook."""
    rows = []
    for pair in comparison.pairs:
        gap, shape = pair.difference, Markup("<b>{}</b> against <b>{}</b>")
        rows.append(
            (
                shape.format(name(pair.first), name(pair.second)),
                _badge(pair.finding, clean(pair.words, 120), pair.verdict or NONE),
                NONE if gap.value is None else _difference(gap.value, gap.low, gap.high),
                number(pair.adjusted_p),
                _lines(pair.reasons),
            )
        )
    caption = (
        f"{count(comparison.data.n_decisions)} decisions; first minus second, below zero the first "
        f"is better. {NOTICE}"
    )
    return _table(caption, ("Compared", "Finding", "Difference", "p (Holm)", "Why"), rows)


def _table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = Markup('<th scope="col" style="{}">{}</th>')
    cell = Markup('<td style="{}">{}</td>')
    heads = Markup("").join(head.format(_CELL, title) for title in columns)
    lines = (Markup("").join(cell.format(_CELL, own) for own in row) for row in rows)
    body = Markup("").join(Markup("<tr>{}</tr>").format(line) for line in lines)
    shape = Markup(
        '<table class="etips-results"><caption style="text-align:left">{}</caption>'
        "<thead><tr>{}</tr></thead><tbody>{}</tbody></table>"
    )
    return str(shape.format(caption, heads, body))


def _lines(reasons: Sequence[str]) -> Markup:
    return Markup("<br>").join(clean(reason, LONG) for reason in reasons)


def _figure(value: str, limits: str) -> Markup:
    shape = Markup('<span style="white-space:nowrap">{}<br><small>{}</small></span>')
    return shape.format(value, limits)


def _difference(value: float | None, low: float | None, high: float | None) -> Markup:
    return _figure(signed(value), f"{signed(low)} to {signed(high)}")


def _badge(kind: Kind, words: str, verdict: str) -> Markup:
    ink, ground = COLOURS[kind]
    look = f"background:{ground};color:{ink};border-radius:1em;padding:.1em .7em;font-weight:600"
    shape = Markup('<span style="{};white-space:nowrap">{} {}</span>')
    badge = shape.format(look, FOUND_MARKS[kind], words)
    if verdict in words:
        return badge
    return badge + Markup("<br><small>verdict: {}</small>").format(verdict)
