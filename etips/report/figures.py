"""Charts as files, for papers and slides: SVG or PNG by matplotlib, on white."""

import io
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from etips.errors import SettingError
from etips.report.wording import clean
from etips.results.study_result import Chart, Series

Format = Literal["svg", "png"]
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7a5c00", "#444444")
"""Okabe and Ito's, told apart by colour-blind eyes; darkened where white would swallow them."""

MARKS = ("o", "s", "^")
"""Of points: a study has more methods than there are colours, and the next round is squares."""

_ROOM = 4  # names of series that a legend inside the axes has room for

_STYLE: Any = {"svg.hashsalt": "etips", "svg.fonttype": "path", "font.size": 9, "figure.dpi": 100}


def draw(chart: Chart, format: Format = "svg") -> bytes:  # noqa: A002  # matplotlib's word
    """Draw a chart; the same chart gives the same bytes. Letters are drawn as shapes.

    Args:
        chart: What to draw.
        format: "svg", or "png" at 200 dots an inch.
    """
    if format not in ("svg", "png"):
        raise SettingError("format", "must be svg or png")
    if chart.kind not in ("scatter", "bars", "lines"):
        raise SettingError("chart", "kind must be scatter, bars or lines")
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a name may be in any script
        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        places = _places(chart.series)
        for number, series in enumerate(chart.series):
            _add(axes, chart, series, number, places)
        _label(axes, chart, places)
        file = io.BytesIO()
        metadata = {"Date": None, "Creator": None} if format == "svg" else {"Software": None}
        figure.savefig(file, format=format, dpi=200, metadata=metadata)
    return file.getvalue()


def _places(series: Sequence[Series]) -> list[str]:
    """Names along the axis, if it holds names and not numbers."""
    values = [value for s in series for value in s.x]
    if not any(isinstance(value, str) for value in values):
        return []
    return list(dict.fromkeys(str(value) for value in values))


def _add(axes: Axes, chart: Chart, series: Series, number: int, places: list[str]) -> None:
    errors = series.error or [None] * len(series.y)
    points = [
        (places.index(str(x)) if places else x, y, error or 0.0)
        for x, y, error in zip(series.x, series.y, errors, strict=True)
        if x is not None and y is not None
    ]
    if not points:
        return
    x, y, error = (list(column) for column in zip(*points, strict=True))
    colour, label = COLOURS[number % len(COLOURS)], clean(series.name, 40)
    spread = error if any(error) else None
    if chart.kind == "bars":
        n = len(chart.series)
        left = [p + 0.8 * (number - (n - 1) / 2) / n for p in x]
        axes.bar(left, y, 0.8 / n, yerr=spread, color=colour, label=label)
    else:
        joined = "-" if chart.kind == "lines" else ""
        mark = MARKS[number // len(COLOURS) % len(MARKS)]
        form = f"{mark}{joined}"
        axes.errorbar(
            x, y, yerr=spread, fmt=form, markersize=4, capsize=2, color=colour, label=label
        )


def _label(axes: Axes, chart: Chart, places: list[str]) -> None:
    axes.set_title(clean(chart.title, 80), loc="left", parse_math=False)
    axes.set_xlabel(clean(chart.x, 80), parse_math=False)
    axes.set_ylabel(clean(chart.y, 80), parse_math=False)
    if places:
        short = [clean(place, 24) for place in places]
        axes.set_xticks(range(len(places)), short, rotation=30, ha="right", parse_math=False)
    _explain(axes, len(chart.series))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)


def _explain(axes: Axes, n_series: int) -> None:
    """Name the series; many of them beside the axes, lest the names hide points."""
    if n_series < 2:
        return
    if n_series > _ROOM:
        legend = axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    else:
        legend = axes.legend(frameon=False)
    for label in legend.get_texts():
        label.set_parse_math(False)
