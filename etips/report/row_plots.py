"""Plots made of rows, as wide as there is room: intervals, and lying bars."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from etips.report.svg import Scale, dot, line, rows_drawing, share, tag, text, tick_text
from etips.report.wording import clean, number, percent
from etips.results.results import MethodResult
from etips.results.study_result import Chart

_ROW, _TOP = 24, 22
_LETTER = 6.6  # pixels of a letter beside a row, about
_COLOURS = 6  # of the style sheet: c0 to c5

Ticks = Callable[[float, Sequence[float]], str]
"""A number beside an axis, given its neighbours."""


@dataclass(frozen=True)
class Row:
    """An interval with its name.

    Args:
        label: Beside it.
        value: The point; None where there is none.
        low: Lower limit.
        high: Upper limit.
        words: Behind it.
        strong: Whether it is the one to look at.
        colour: Of the style sheet.
    """

    label: str
    value: float | None
    low: float | None
    high: float | None
    words: str
    strong: bool = False
    colour: str = "c0"


@dataclass(frozen=True)
class Axis:
    """What intervals are held against.

    Args:
        scale: From 0 to 100 per cent of the width.
        words: Below it.
        guide: A number with a dashed line.
        truth: A number with a solid line and a diamond.
        ticks: How numbers are written.
    """

    scale: Scale
    words: str
    guide: float | None = None
    truth: float | None = None
    ticks: Ticks = tick_text


def interval_rows(rows: Sequence[Row], axis: Axis, label: str) -> Markup:
    """Points with their limits, one row each; an arrow where an interval goes on.

    Args:
        rows: From above.
        axis: Below them.
        label: What it shows, for a screen reader.
    """
    scale, bottom = axis.scale, _TOP + _ROW * len(rows)
    parts = []
    ticks = scale.ticks(4)
    for value in ticks:
        place = share(scale.at(value))
        parts.append(line((place, _TOP - 2), (place, bottom), class_="grid"))
        parts.append(text(place, bottom + 16, axis.ticks(value, ticks), class_="tick middle"))
    if axis.guide is not None:
        place = share(scale.at(axis.guide))
        parts.append(line((place, _TOP - 2), (place, bottom), class_="guide"))
    if axis.truth is not None:
        place = share(scale.at(axis.truth))
        parts.append(line((place, _TOP - 2), (place, bottom), class_="truth"))
        parts.append(text(place, _TOP - 6, "◆", class_="truth-mark middle"))
    for position, row in enumerate(rows):
        parts += _interval(row, scale, _TOP + _ROW * position + _ROW / 2)
    parts.append(text("50%", bottom + 34, axis.words, class_="small middle"))
    left = _room([row.label for row in rows], 30)
    right = _room([row.words for row in rows], 24)
    return rows_drawing(bottom + 42, label, *parts, left=left, right=right)


def _interval(row: Row, scale: Scale, y: float) -> list[Markup]:
    look = "tick strong" if row.strong else "tick"
    parts = [
        text(-10, y + 4, clean(row.label, 30), class_=f"{look} end"),
        text("100%", y + 4, clean(row.words, 24), class_=look, dx=10),
    ]
    if row.value is None:
        return parts
    if row.low is not None and row.high is not None:
        ends = (share(scale.at(row.low)), y), (share(scale.at(row.high)), y)
        parts.append(line(*ends, class_=f"error {row.colour}"))
        for beyond, place, tip in (
            (row.low < scale.low, scale.start, "‹"),  # noqa: RUF001  # the interval goes on there
            (row.high > scale.high, scale.stop, "›"),  # noqa: RUF001
        ):
            if beyond:
                parts.append(text(share(place), y + 6, tip, class_=f"tip middle {row.colour}"))
    if scale.low <= row.value <= scale.high:
        size = 5 if row.strong else 4
        parts.append(dot(share(scale.at(row.value)), y, size, class_=f"mark {row.colour}"))
    return parts


def risk_scale(methods: Sequence[MethodResult], mean_loss: float | None) -> Scale:
    """One scale for all interval plots; a policy without evidence does not stretch it."""
    sound = [m for m in methods if m.verdict != "unusable"] or methods
    ends = [end for m in sound for e in m.estimates for end in (e.risk, e.low, e.high)]
    return Scale.around([*ends, mean_loss, *(m.truth for m in methods)], 0, 100)


def intervals(method: MethodResult, scale: Scale, mean_loss: float | None) -> Markup:
    """All estimates of one policy with their intervals; the truth where known."""
    rows = [
        Row(
            clean(estimate.label or estimate.estimator, 14),
            estimate.risk,
            estimate.low,
            estimate.high,
            "none" if estimate.risk is None else number(estimate.risk),
            strong=position == 0,
        )
        for position, estimate in enumerate(method.estimates)
    ]
    axis = Axis(scale, "risk (lower is better)", guide=mean_loss, truth=method.truth)
    return interval_rows(
        rows, axis, f"{clean(method.name)}: estimated risks, verdict {method.verdict}"
    )


def bars(chart: Chart, label: str, *, shares: bool) -> Markup:
    """Groups of lying bars, one group a name: names stay legible however many there are.

    Args:
        chart: What to draw.
        label: What it shows, for a screen reader.
        shares: Whether numbers are in per cent.
    """
    names = list(dict.fromkeys(str(v) for s in chart.series for v in s.x))
    values = [v for s in chart.series for v in s.y if v is not None]
    n_series = len(chart.series)
    thick = 14 if n_series == 1 else 11
    group = thick * n_series + 10
    scale = Scale(min(0.0, *values, 0.0), max(*values, 1e-9, 0.0), 0, 100)
    zero, middle = scale.at(0.0), 4 + (thick * n_series - 2) / 2
    parts = [
        text(-10, middle + group * row + 4, clean(name, 24), class_="tick end")
        for row, name in enumerate(names)
    ]
    for place, series in enumerate(chart.series):
        for name, value in zip(series.x, series.y, strict=True):
            top = 4 + group * names.index(str(name)) + thick * place
            if value is None:
                parts.append(text(share(zero), top + thick - 3, "hidden", class_="tick", dx=5))
                continue
            start, stop = sorted((zero, scale.at(value)))
            look = f"mark c{place % _COLOURS}"
            box = {"x": share(start), "width": share(max(stop - start, 0.1))}
            parts.append(tag("rect", **box, y=top, height=thick - 2, rx=2, class_=look))
            words = percent(value, 1) if shares else _short(value)
            parts.append(text(share(stop), top + thick - 3, words, class_="tick", dx=5))
    height = 8 + group * len(names)
    parts.append(line((share(zero), 2), (share(zero), height - 4), class_="axis"))
    parts += _legend(chart, height + 6)
    taller = 6 if n_series < 2 else 18 * n_series + 12
    left = _room(names, 24)
    return rows_drawing(height + taller, label, *parts, left=left, right=58)


def _legend(chart: Chart, top: float) -> list[Markup]:
    """What the colours stand for, one below the other: names may be long."""
    if len(chart.series) < 2:
        return []
    parts = []
    for place, series in enumerate(chart.series):
        y = top + 18 * place
        look = f"mark c{place % _COLOURS}"
        parts.append(tag("rect", x=0, y=y, width=12, height=12, rx=2, class_=look))
        parts.append(text(18, y + 10, clean(series.name, 40), class_="small"))
    return parts


def _room(words: Sequence[str], most: int) -> float:
    """Pixels that the longest of some names takes beside a row."""
    return 16 + _LETTER * max((len(clean(own, most)) for own in words), default=0)


def _short(value: float) -> str:
    return number(value, 0 if abs(value) >= 100 else 3 if abs(value) < 1 else 2)
