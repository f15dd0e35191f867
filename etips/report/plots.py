"""Plots of numbers against numbers: the generic chart, and the band of hidden confounding."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from etips.report.row_plots import bars
from etips.report.svg import (
    Scale,
    diamond,
    dot,
    drawing,
    line,
    polyline,
    square,
    tag,
    text,
    tick_text,
    triangle,
)
from etips.report.wording import clean
from etips.results.results import GammaBound
from etips.results.study_result import Chart, Series

_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 348, 24, 210
_HEIGHT = 254
_COLOURS = 6  # of the style sheet: c0 to c5
_SHAPES = (dot, square, triangle)  # the next round of colours has the next shape


@dataclass(frozen=True)
class Guides:
    """What a chart of the page shows beside its series.

    Args:
        across: A number with a label, drawn as a line from side to side.
        diagonal: Both axes run from 0 to 1, and a line shows where they agree.
        hollow: Places of points of the first series to be drawn hollow.
        chosen: Place of the one to be marked.
        shares: Bars are labelled in per cent.
    """

    across: tuple[float, str] | None = None
    diagonal: bool = False
    hollow: Sequence[int] = ()
    chosen: int | None = None
    shares: bool = False


_PLAIN = Guides()


def plot(chart: Chart, guides: Guides = _PLAIN) -> Markup:
    """A chart as the page draws it; numbers that are missing are left out."""
    if chart.kind == "bars" or _in_words(chart):
        return bars(chart, _spoken(chart), shares=guides.shares)
    across = guides.across
    every = [v for s in chart.series for v in _numbers(s.x)]
    x = Scale.around(every, _LEFT + 6, _RIGHT - 6, pad=0.03)
    heights = [v for s in chart.series for v in (*s.y, *_ends(s))]
    y = Scale.around([*heights, *([across[0]] if across else [])], _BOTTOM, _TOP, pad=0.08)
    if guides.diagonal:
        x = y = Scale(0.0, 1.0, _LEFT, _RIGHT)
        y = Scale(0.0, 1.0, _BOTTOM, _TOP)
    parts = [_axes(chart.x, chart.y if chart.y != chart.title else "", x, y)]
    if guides.diagonal:
        parts.append(line((x.at(0), y.at(0)), (x.at(1), y.at(1)), class_="guide"))
    if across:
        height = y.at(across[0])
        parts.append(line((_LEFT, height), (_RIGHT, height), class_="guide"))
        parts.append(text(_RIGHT, height - 5, clean(across[1], 40), class_="small end over"))
    for place, series in enumerate(chart.series):
        own = guides if place == 0 else _PLAIN
        parts.append(_series(series, place, x, y, own, joined=chart.kind == "lines"))
    return drawing(_HEIGHT + _legend_height(chart), _spoken(chart), *parts, _legend(chart))


def _series(
    series: Series, place: int, x: Scale, y: Scale, guides: Guides, *, joined: bool
) -> Markup:
    colour = _colour(place)
    spots = [
        (x.at(a), y.at(b)) if a is not None and b is not None else None
        for a, b in zip(_numbers(series.x), series.y, strict=True)
    ]
    parts = []
    if joined:
        drawn = [spot for spot in spots if spot is not None]
        parts.append(polyline(drawn, class_=f"stroke {colour}"))
    for spot, middle, error in zip(spots, series.y, _errors(series), strict=True):
        if spot is not None and middle is not None and error is not None:
            ends = (spot[0], y.at(middle - error)), (spot[0], y.at(middle + error))
            parts.append(line(*ends, class_=f"error {colour}"))
    for number_, spot in enumerate(spots):
        if spot is None:
            continue
        if number_ == guides.chosen:
            parts.append(diamond(*spot, 8, class_=f"mark {colour}"))
        else:
            look = "hollow" if number_ in guides.hollow else "mark"
            parts.append(_shape(place)(*spot, class_=f"{look} {colour}"))
    return Markup("").join(parts)


def _axes(x_label: str, y_label: str, x: Scale, y: Scale) -> Markup:
    parts = []
    levels, columns = y.ticks(4), x.ticks(5)
    for value in levels:
        parts.append(line((_LEFT, y.at(value)), (_RIGHT, y.at(value)), class_="grid"))
        parts.append(text(_LEFT - 6, y.at(value) + 4, tick_text(value, levels), class_="tick end"))
    for value in columns:
        parts.append(
            text(x.at(value), _BOTTOM + 18, tick_text(value, columns), class_="tick middle")
        )
    parts.append(line((_LEFT, _BOTTOM), (_RIGHT, _BOTTOM), class_="axis"))
    middle = (_LEFT + _RIGHT) / 2
    parts.append(text(middle, _BOTTOM + 38, clean(x_label, 44), class_="small middle"))
    if y_label:
        parts.append(text(4, 12, clean(y_label, 50), class_="small"))
    return Markup("").join(parts)


def _legend(chart: Chart) -> Markup:
    if len(chart.series) < 2:
        return Markup("")
    parts = []
    for place, series in enumerate(chart.series):
        x, y = 12 + 170 * (place % 2), _HEIGHT + 18 * (place // 2)
        parts.append(_shape(place)(x + 6, y + 6, class_=f"mark {_colour(place)}"))
        parts.append(text(x + 18, y + 10, clean(series.name, 24), class_="small"))
    return Markup("").join(parts)


def _colour(place: int) -> str:
    return f"c{place % _COLOURS}"


def _shape(place: int) -> Callable[..., Markup]:
    return _SHAPES[place // _COLOURS % len(_SHAPES)]


def _legend_height(chart: Chart) -> int:
    n = len(chart.series)
    return 0 if n < 2 else 18 * ((n + 1) // 2) + 6


def _errors(series: Series) -> Sequence[float | None]:
    return series.error or [None] * len(series.y)


def _ends(series: Series) -> list[float]:
    pairs = zip(series.y, _errors(series), strict=True)
    known = [(y, error) for y, error in pairs if y is not None and error is not None]
    return [end for y, error in known for end in (y - error, y + error)]


def _numbers(values: Sequence[str | float | None]) -> list[float | None]:
    """Along an axis of numbers."""
    return [None if isinstance(value, str) else value for value in values]


def _in_words(chart: Chart) -> bool:
    return any(isinstance(value, str) for series in chart.series for value in series.x)


def _spoken(chart: Chart) -> str:
    names = ", ".join(clean(series.name, 40) for series in chart.series)
    return clean(f"{chart.title}: {chart.y} against {chart.x}; {names}", 300)


def band(bounds: Sequence[GammaBound], mean_loss: float | None, label: str) -> Markup:
    """Least and greatest risk against the strength of hidden confounding."""
    known = [(b.gamma, b.low, b.high) for b in bounds if b.low is not None and b.high is not None]
    x = Scale(1.0, max([gamma for gamma, _, _ in known], default=2.0), _LEFT + 6, _RIGHT - 6)
    ends = [end for _, low, high in known for end in (low, high)]
    y = Scale.around([*ends, mean_loss], _BOTTOM, _TOP)
    parts = [_axes("strength of hidden confounding (odds ratio)", "possible risk", x, y)]
    lower = [(x.at(gamma), y.at(low)) for gamma, low, _ in known]
    upper = [(x.at(gamma), y.at(high)) for gamma, _, high in known]
    points = " ".join(f"{a:.2f},{b:.2f}" for a, b in [*upper, *reversed(lower)])
    parts.append(tag("polygon", points=points, class_="area c0"))
    for spots in (lower, upper):
        parts += [line(a, b, class_="stroke c0") for a, b in pairwise(spots)]
        parts += [dot(*spot, 3, class_="mark c0") for spot in spots]
    if mean_loss is not None:
        height = y.at(mean_loss)
        parts.append(line((_LEFT, height), (_RIGHT, height), class_="guide"))
        parts.append(text(_RIGHT, height - 5, "clinicians", class_="small end over"))
    return drawing(_HEIGHT, label, *parts)
