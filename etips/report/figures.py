"""Charts by matplotlib: as files for papers and slides, and inside a page, in its colours.

A chart of a page is 360 units wide, the width of a phone, so that letters keep their size there.
Its lines take their colours from the style sheet, so that they follow a light or dark screen.
"""

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Literal
from xml.etree import ElementTree

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from etips.errors import SettingError
from etips.report.drawings import bars
from etips.report.wording import clean
from etips.results.records import GammaBound
from etips.results.study_result import Chart, Series

Format = Literal["svg", "png"]
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7a5c00", "#444444")
"""Okabe and Ito's, told apart by colour-blind eyes; darkened where white would swallow them."""

MARKS = ("o", "s", "^")
"""Of points: a study has more methods than there are colours, and the next round is squares."""

_MAX_INSIDE = 4  # names of series that a legend inside the axes has room for
_NAMES = ("c0", "c1", "c2", "c3", "c4", "c5", "soft", "line", "card")
_INKS = {name: f"#0101{number:02x}" for number, name in enumerate(_NAMES)}
"""What stands for a colour of the style sheet while matplotlib draws."""

# Names are the user's own: a dollar sign in them begins no formula.
_ALWAYS: Any = {"svg.hashsalt": "etips", "text.parse_math": False}
_FILE: Any = {"svg.fonttype": "path", "font.size": 9, "figure.dpi": 100}
_PAGE: Any = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), _INKS["soft"]),
    **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor"), _INKS["soft"]),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "axes.spines.left"), False),
    **dict.fromkeys(("xtick.bottom", "ytick.left"), False),
    "svg.fonttype": "none",
    "font.size": 11.5,
    "figure.dpi": 72,
    "axes.facecolor": "none",
    "axes.axisbelow": True,
    "grid.color": _INKS["line"],
}
_WIDTH, _HEIGHT = 360, 254  # of a chart of the page; a legend comes below it
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 348, 24, 210  # of its axes
_DRAWING = Lock()  # matplotlib's settings are those of the process, and the service has threads


@contextmanager
def style(settings: Any) -> Iterator[None]:  # noqa: ANN401  # matplotlib's
    """Draw with these settings, one thread at a time, and leave matplotlib's own as they were."""
    with _DRAWING, matplotlib.rc_context(_ALWAYS | settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a name may be in any script
        yield


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


def draw(chart: Chart, format: Format = "svg") -> bytes:  # noqa: A002  # matplotlib's word
    """Draw a chart on white; the same chart gives the same bytes. Letters are drawn as shapes.

    Args:
        chart: What to draw.
        format: "svg", or "png" at 200 dots an inch.
    """
    if format not in ("svg", "png"):
        raise SettingError("format", "must be svg or png")
    if chart.kind not in ("scatter", "bars", "lines"):
        raise SettingError("chart", "kind must be scatter, bars or lines")
    with style(_FILE):
        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        axes = figure.add_subplot()
        every = [value for series in chart.series for value in series.x]
        worded = any(isinstance(value, str) for value in every)
        places = list(dict.fromkeys(map(str, every))) if worded else []
        for number, series in enumerate(chart.series):
            _add(axes, chart, series, number, places, COLOURS)
        axes.set_title(clean(chart.title, 80), loc="left")
        axes.set_xlabel(clean(chart.x, 80))
        axes.set_ylabel(clean(chart.y, 80))
        if places:
            short = [clean(place, 24) for place in places]
            axes.set_xticks(range(len(places)), short, rotation=30, ha="right")
        if len(chart.series) > 1:
            beside: Any = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
            many = len(chart.series) > _MAX_INSIDE  # whose names would hide points
            axes.legend(frameon=False, **(beside if many else {}))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.25)
        file = io.BytesIO()
        metadata = {"Date": None, "Creator": None} if format == "svg" else {"Software": None}
        figure.savefig(file, format=format, dpi=200, metadata=metadata)
    return file.getvalue()


def plot(chart: Chart, guides: Guides | None = None) -> Markup:
    """A chart as the page shows it; numbers that are missing are left out."""
    guides = guides or Guides()
    names = ", ".join(clean(series.name, 40) for series in chart.series)
    label = clean(f"{chart.title}: {chart.y} against {chart.x}; {names}", 300)
    if chart.kind == "bars" or any(isinstance(v, str) for s in chart.series for v in s.x):
        return bars(chart, label, shares=guides.shares)
    many = len(chart.series) > 1
    room = 18 * ((len(chart.series) + 1) // 2) + 6 if many else 0
    with style(_PAGE):
        figure, axes = _page_axes(chart.x, chart.y if chart.y != chart.title else "", room)
        inks = [_INKS[f"c{number}"] for number in range(len(COLOURS))]
        for number, series in enumerate(chart.series):
            own = guides if number == 0 else replace(guides, hollow=(), chosen=None)
            _add(axes, chart, series, number, [], inks, own)
        if guides.across:
            _across(axes, *guides.across)
        if guides.diagonal:
            axes.plot([0, 1], [0, 1], linestyle="--", linewidth=1.4, color=_INKS["soft"])
            axes.set(xlim=(0, 1), ylim=(0, 1))
        else:
            axes.margins(0.05, 0.1)
        if many:
            figure.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 0), ncols=2)
        return _inline(figure, label)


def band(bounds: Sequence[GammaBound], mean_loss: float | None, label: str) -> Markup:
    """Least and greatest risk against the strength of hidden confounding."""
    rows = [
        (own.gamma, own.risk_low, own.risk_high)
        for own in bounds
        if own.gamma is not None and own.risk_low is not None and own.risk_high is not None
    ]
    gamma, low, high = ([row[place] for row in rows] for place in range(3))
    with style(_PAGE):
        figure, axes = _page_axes("strength of hidden confounding (odds ratio)", "possible risk", 0)
        axes.fill_between(gamma, low, high, color=_INKS["c0"], alpha=0.16, linewidth=0)
        for ends in (low, high):
            axes.plot(gamma, ends, "o-", color=_INKS["c0"], markersize=5, linewidth=2)
        if mean_loss is not None:
            _across(axes, mean_loss, "clinicians")
        return _inline(figure, label)


def _add(
    axes: Axes,
    chart: Chart,
    series: Series,
    number: int,
    places: Sequence[str],
    colours: Sequence[str],
    guides: Guides | None = None,
) -> None:
    """Draw the points, lines or bars of a series; `number` is its place in the chart.

    Args:
        places: Names along the axis, if it holds names and not numbers.
        guides: On a page, which points look otherwise.
    """
    errors = series.error or [None] * len(series.y)
    points = [
        (places.index(str(x)) if places else x, y, error or 0.0, place)
        for place, (x, y, error) in enumerate(zip(series.x, series.y, errors, strict=True))
        if x is not None and y is not None
    ]
    if not points:
        return
    x, y, error, _ = (list(column) for column in zip(*points, strict=True))
    colour, label = colours[number % len(colours)], clean(series.name, 40)
    if label[:1] in ("", "_"):
        label = f" {label}"  # matplotlib leaves out a name that is empty or starts so
    spread = error if any(error) else None
    mark = MARKS[number // len(colours) % len(MARKS)]
    if chart.kind == "bars":
        n = len(chart.series)
        left = [place + 0.8 * (number - (n - 1) / 2) / n for place in x]
        axes.bar(left, y, 0.8 / n, yerr=spread, color=colour, label=label)
        return
    form: Any = {"markersize": 4, "capsize": 2}
    if guides is not None:
        form = {"markersize": 8 - 2 * (mark != "o"), "capsize": 0, "linewidth": 2}
    look = f"{mark}-" if chart.kind == "lines" else mark
    axes.errorbar(x, y, yerr=spread, fmt=look, color=colour, label=label, **form)
    if guides is None:
        return
    for a, b, _, place in points:
        if place == guides.chosen:
            axes.plot(a, b, "D", color=colour, markersize=11, zorder=3)
        elif place in guides.hollow:
            hollow: Any = {"markersize": 8, "markerfacecolor": _INKS["card"], "zorder": 3}
            axes.plot(a, b, mark, color=colour, **hollow)


def _page_axes(x: str, y: str, room: float) -> tuple[Figure, Axes]:
    """Axes of a chart of the page, with so much room below for a legend."""
    height = _HEIGHT + room
    figure = Figure(figsize=(_WIDTH / 72, height / 72), facecolor="none")
    low, high = room + _HEIGHT - _BOTTOM, room + _HEIGHT - _TOP
    place = _LEFT / _WIDTH, low / height, (_RIGHT - _LEFT) / _WIDTH, (high - low) / height
    axes = figure.add_axes(place)
    axes.grid(axis="y")
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    axes.set_xlabel(clean(x, 44))
    if y:
        figure.text(4 / _WIDTH, 1 - 12 / height, clean(y, 50))
    return figure, axes


def _across(axes: Axes, height: float, words: str) -> None:
    axes.axhline(height, linestyle="--", linewidth=1.4, color=_INKS["soft"])
    place: Any = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points"}
    axes.annotate(clean(words, 40), (1, height), (0, 5), ha="right", gid="over", **place)


def _inline(figure: Figure, label: str) -> Markup:
    """A drawing as SVG inside a page: its colours and letters are those of the style sheet."""
    file = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(file, format="svg", metadata=nothing)
    root = ElementTree.fromstring(file.getvalue())  # noqa: S314  # matplotlib wrote it
    space, view = root.tag.removesuffix("svg"), root.get("viewBox")
    for style_sheet in root.findall(f"{space}defs/{space}style"):
        root[0].remove(style_sheet)
    for element in root.iter():
        look = element.attrib
        element.tag = element.tag.removeprefix(space)
        if element.tag == "g" and look.pop("id", "") == "over":
            look["class"] = "over"
        look.pop("clip-path", None)
        for name in [name for name in look if name.endswith("}href")]:
            look["href"] = look.pop(name)
        properties = look.get("style", "").split("; ")
        ours = "; ".join(own for own in properties if not own.startswith("font"))
        for name, ink in _INKS.items():
            ours = ours.replace(ink, f"var(--{name})")
        if ours:
            look["style"] = ours
    inside = Markup("".join(ElementTree.tostring(part, "unicode") for part in root))  # noqa: S704
    shape = Markup('<svg viewBox="{}" role="img" aria-label="{}">{}</svg>')
    return shape.format(view, label, inside)
