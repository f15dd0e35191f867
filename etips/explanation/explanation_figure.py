"""An explanation as a drawing: a stay on its time line, or the strongest columns."""

import io
import warnings
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from etips.errors import SettingError
from etips.explanation.explanation_parts import ExplanationParts
from etips.explanation.global_attribution import GlobalAttribution
from etips.explanation.stay_explanation import StayExplanation
from etips.explanation.time_line import TimeLine
from etips.report.figures import COLOURS
from etips.report.wording import clean

_ROWS = 15
_STYLE: Any = {"font.size": 9, "figure.dpi": 100}


def draw_explanation(parts: ExplanationParts) -> bytes:
    """A PNG at 200 dots an inch; the same explanation gives the same bytes."""
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a name may be in any script
        if parts.stay is not None:
            figure = _stay(parts.stay)
        elif parts.overall is not None:
            figure = _overall(parts.overall)
        else:
            fix = "Write .html or .json."
            raise SettingError("drawing", "is of a stay, or of the whole policy", fix=fix)
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=200, metadata={"Software": None})
    return file.getvalue()


def _stay(stay: StayExplanation) -> Figure:
    """Attribution of the strongest columns at each decision, above what was done."""
    line = TimeLine.of(stay, most=_ROWS)
    size = max(4.5, 0.42 * len(line.labels) + 2.6), 0.26 * max(len(line.columns), 3) + 2.2
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    limit = max(float(np.abs(line.values).max(initial=0.0)), 1e-12)
    image = axes.imshow(line.values.T, aspect="auto", cmap="PuOr_r", vmin=-limit, vmax=limit)
    axes.set_yticks(range(len(line.columns)), [clean(name, 28) for name in line.columns],
                    parse_math=False)  # fmt: skip
    below = [clean(text, 36) for text in line.labels]
    axes.set_xticks(range(len(below)), below, rotation=60, ha="right", parse_math=False)
    axes.set_title(f"stay {clean(stay.stay, 40)}", loc="left", parse_math=False)
    figure.colorbar(image, label=f"speaks for the recommendation ({line.unit})")
    return figure


def _overall(own: GlobalAttribution) -> Figure:
    """Mean sizes of the strongest columns with their limits."""
    columns = own.columns[:_ROWS][::-1]
    figure = Figure(figsize=(6.4, 0.26 * len(columns) + 1.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    mean = np.array([column.mean for column in columns])
    error = np.abs(
        [[m - c.low for m, c in zip(mean, columns, strict=True)],
         [c.high - m for m, c in zip(mean, columns, strict=True)]]
    )  # fmt: skip
    axes.barh(range(len(columns)), mean, xerr=error, color=COLOURS[0], capsize=2)
    names = [clean(column.name, 28) for column in columns]
    axes.set_yticks(range(len(columns)), names, parse_math=False)
    axes.set_xlabel(f"mean size of what it adds ({own.unit})")
    axes.spines[["top", "right"]].set_visible(False)
    return figure
