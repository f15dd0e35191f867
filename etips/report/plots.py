"""Plots of numbers against numbers: the generic chart, and the interval plot."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from etips.report.svg import (
    WIDTH,
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
from etips.report.wording import clean, number, percent
from etips.results.results import EstimateResult, GammaBound, MethodResult
from etips.results.study_result import Chart, Series

_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 348, 24, 210
_HEIGHT = 254
_ROW = 24
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
        return _bars(chart, shares=guides.shares)
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


def _bars(chart: Chart, *, shares: bool) -> Markup:
    """Groups of lying bars, one group a name: names stay legible however many there are."""
    labels = list(dict.fromkeys(str(v) for s in chart.series for v in s.x))
    values = [v for s in chart.series for v in s.y if v is not None]
    n_series = len(chart.series)
    thick = 14 if n_series == 1 else 11
    group = thick * n_series + 10
    left = 12 + min(130, 7 * max((len(clean(label, 18)) for label in labels), default=1))
    scale = Scale(min(0.0, *values, 0.0), max(*values, 1e-9, 0.0), left, WIDTH - 56)
    middle = 4 + (thick * n_series - 2) / 2
    parts = [
        text(left - 8, middle + group * row + 4, clean(label, 18), class_="tick end")
        for row, label in enumerate(labels)
    ]
    for place, series in enumerate(chart.series):
        for label, value in zip(series.x, series.y, strict=True):
            top = 4 + group * labels.index(str(label)) + thick * place
            if value is None:
                parts.append(text(left + 4, top + thick - 3, "hidden", class_="tick"))
                continue
            ends = sorted((scale.at(0.0), scale.at(value)))
            parts.append(
                tag(
                    "rect",
                    x=ends[0],
                    y=top,
                    width=max(ends[1] - ends[0], 0.75),
                    height=thick - 2,
                    rx=2,
                    class_=f"mark {_colour(place)}",
                )
            )
            words = percent(value, 1) if shares else _short(value)
            parts.append(text(ends[1] + 5, top + thick - 3, words, class_="tick"))
    height = 8 + group * len(labels)
    legend = _legend(chart, top=height + 6)
    parts.append(line((scale.at(0.0), 2), (scale.at(0.0), height - 4), class_="axis"))
    return drawing(height + _legend_height(chart) + 6, _spoken(chart), *parts, legend)


def _legend(chart: Chart, *, top: float = _HEIGHT) -> Markup:
    if len(chart.series) < 2:
        return Markup("")
    parts = []
    for place, series in enumerate(chart.series):
        x, y = 12 + 170 * (place % 2), top + 18 * (place // 2)
        look = f"mark {_colour(place)}"
        if chart.kind == "bars" or _in_words(chart):
            parts.append(tag("rect", x=x, y=y, width=12, height=12, rx=2, class_=look))
        else:
            parts.append(_shape(place)(x + 6, y + 6, class_=look))
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


def _short(value: float) -> str:
    return number(value, 0 if abs(value) >= 100 else 3 if abs(value) < 1 else 2)


def risk_scale(methods: Sequence[MethodResult], mean_loss: float | None) -> Scale:
    """One scale for all interval plots; a policy without evidence does not stretch it."""
    sound = [m for m in methods if m.verdict != "unusable"] or methods
    ends = [end for m in sound for e in m.estimates for end in (e.risk, e.low, e.high)]
    return Scale.around([*ends, mean_loss, *(m.truth for m in methods)], 112, 300)


def intervals(method: MethodResult, scale: Scale, mean_loss: float | None) -> Markup:
    """All estimates of one policy with their intervals; the truth where known."""
    estimates = method.estimates
    bottom = 22 + _ROW * len(estimates)
    parts = []
    ticks = scale.ticks(4)
    for value in ticks:
        parts.append(line((scale.at(value), 20), (scale.at(value), bottom), class_="grid"))
        parts.append(
            text(scale.at(value), bottom + 16, tick_text(value, ticks), class_="tick middle")
        )
    if mean_loss is not None:
        spot = scale.at(mean_loss)
        parts.append(line((spot, 20), (spot, bottom), class_="guide"))
    truth = method.truth
    if truth is not None:
        parts.append(line((scale.at(truth), 20), (scale.at(truth), bottom), class_="truth"))
        parts.append(diamond(scale.at(truth), 14, 6, class_="truth-mark"))
    for row, estimate in enumerate(estimates):
        parts.append(_interval(estimate, scale, 22 + _ROW * row + _ROW / 2, first=row == 0))
    parts.append(
        text(
            scale.at((scale.low + scale.high) / 2),
            bottom + 34,
            "risk (lower is better)",
            class_="small middle",
        )
    )
    label = f"{clean(method.name)}: estimated risks, verdict {method.verdict}"
    return drawing(bottom + 42, label, *parts)


def _interval(estimate: EstimateResult, scale: Scale, y: float, *, first: bool) -> Markup:
    label = clean(estimate.label or estimate.estimator, 14)
    look = "tick strong" if first else "tick"
    parts = [text(4, y + 4, label, class_=look)]
    low, high, risk = estimate.low, estimate.high, estimate.risk
    if risk is None:
        return Markup("").join([*parts, text(WIDTH - 4, y + 4, "none", class_="tick end")])
    if low is not None and high is not None:
        parts.append(line((scale.at(low), y), (scale.at(high), y), class_="error c0"))
        for beyond, sign in ((low < scale.low, 1), (high > scale.high, -1)):
            if beyond:  # an arrow: the interval goes on there
                x = scale.start if sign > 0 else scale.stop
                tip = [(x + 5 * sign, y - 4), (x, y), (x + 5 * sign, y + 4)]
                parts.append(polyline(tip, class_="error c0"))
    if scale.low <= risk <= scale.high:
        parts.append(dot(scale.at(risk), y, 5 if first else 4, class_="mark c0"))
    parts.append(text(WIDTH - 4, y + 4, number(risk), class_=f"{look} end"))
    return Markup("").join(parts)


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
