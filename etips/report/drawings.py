"""Drawings made of rows or of cells: HTML that the style sheet lays out, as wide as there is room.

Places along a row are in per cent of it, so that letters keep their size on every screen.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from etips.report.section import fill
from etips.report.wording import MINUS, PERCENT, clean, number, percent
from etips.results.exhibits import DoseGrid, FeatureBalance, Share
from etips.results.study_result import Chart

COLOURS = 6
"""Of the style sheet: c0 to c5."""

_MAX_RANGE = 14  # letters of a range beside a map; longer ones are numbered
_MAX_LEVEL = 7  # letters below a cell; longer ones stand upright


@dataclass(frozen=True)
class Scale:
    """Numbers from `low` to `high` along a row."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float | None]) -> "Scale":
        """A scale that holds the values, with some room at both ends."""
        known = [value for value in values if value is not None and math.isfinite(value)]
        low, high = (min(known), max(known)) if known else (0.0, 1.0)
        room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
        return cls(low - room, high + room)

    def at(self, value: float) -> float:
        """Place of a number in per cent; those beyond the ends stand at them."""
        share = (value - self.low) / (self.high - self.low)
        return 100 * min(max(share, 0.0), 1.0)

    def ticks(self, n: int = 4) -> list[float]:
        """About `n` round numbers on the scale."""
        raw = (self.high - self.low) / n
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(unit * power for unit in (1, 2, 2.5, 5, 10) if unit * power >= raw * 0.999)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [k * step + 0.0 for k in range(first, last + 1)]


def tick_text(value: float, ticks: Sequence[float]) -> str:
    """A number beside an axis: no more decimals than its neighbours need."""
    if abs(value) >= 1000:
        return f"{value / 1000:g}k"
    step = min((b - a for a, b in pairwise(ticks)), default=1.0)
    digits = max(0, min(6, math.ceil(-math.log10(step) - 1e-9))) if step > 0 else 0
    if round(step, digits) != round(step, digits + 1):
        digits += 1
    return f"{value:.{digits}f}".replace("-", MINUS)


@dataclass(frozen=True)
class Mark:
    """A point, or a line or bar from `start` to `stop`; `look` is its class in the style sheet."""

    look: str
    start: float
    stop: float | None = None


@dataclass(frozen=True)
class Row:
    """A name, what is drawn beside it, and words behind it."""

    label: str
    words: str
    marks: Sequence[Mark] = ()
    strong: bool = False


@dataclass(frozen=True)
class Axis:
    """What rows are held against.

    Args:
        scale: Of all rows.
        words: Below it; without any there are no ticks either.
        lines: Drawn behind every row.
        ticks: How a number is written, given all that are.
    """

    scale: Scale
    words: str
    lines: Sequence[Mark] = ()
    ticks: Callable[[float, Sequence[float]], str] = tick_text


def interval(
    label: str,
    figures: tuple[Share, Share, Share],
    words: str,
    *,
    strong: bool = False,
    colour: str = "c0",
) -> Row:
    """A point with its lower and upper limit, where there are such."""
    value, low, high = figures
    marks = []
    if value is not None and low is not None and high is not None:
        marks.append(Mark(f"error {colour}", low, high))
    if value is not None:
        marks.append(Mark(f"dot {colour}", value))
    return Row(label, words, marks, strong)


def rows(
    drawn: Sequence[Row], axis: Axis, label: str, legend: Sequence[tuple[str, str]] = ()
) -> Markup:
    """Rows above their axis; an arrow where a line goes on beyond it.

    The label is what a screen reader reads, the legend look and meaning of marks.
    """
    ticks = axis.scale.ticks() if axis.words else []
    behind = [*(Mark("grid", tick) for tick in ticks), *axis.lines]
    context = {
        "rows": [(row, _placed((*behind, *row.marks), axis.scale)) for row in drawn],
        "above": [axis.scale.at(own.start) for own in axis.lines if own.look == "truth"],
        "ticks": [(axis.scale.at(tick), axis.ticks(tick, ticks)) for tick in ticks],
        "words": axis.words,
        "label": label,
        "legend": legend,
    }
    return fill("rows.html", context)


def _placed(marks: Sequence[Mark], scale: Scale) -> list[tuple[str, str]]:
    """Class and place of what is drawn; points beyond the scale are not."""
    placed = []
    for mark in marks:
        if mark.stop is None:
            if scale.low <= mark.start <= scale.high:
                placed.append((mark.look, f"left:{scale.at(mark.start):.2f}%"))
            continue
        low, high = sorted((mark.start, mark.stop))
        start, width = scale.at(low), scale.at(high) - scale.at(low)
        placed.append((mark.look, f"left:{start:.2f}%;width:{max(width, 0.1):.2f}%"))
        if mark.look.startswith("error"):
            colour = mark.look.removeprefix("error ")
            placed += [(f"tip less {colour}", "left:0")] if low < scale.low else []
            placed += [(f"tip more {colour}", "left:100%")] if high > scale.high else []
    return placed


def bars(chart: Chart, label: str, *, shares: bool = False) -> Markup:
    """Groups of lying bars, one group a name: names stay legible however many there are."""
    heights = [dict(zip(map(str, own.x[::-1]), own.y[::-1], strict=True)) for own in chart.series]
    drawn = []
    for name in dict.fromkeys(str(value) for series in chart.series for value in series.x):
        for place, own in enumerate(heights):
            value = own.get(name)
            words, marks = "hidden", []
            if value is not None:
                digits = 0 if abs(value) >= 100 else 3 if abs(value) < 1 else 2
                words = percent(value, 1) if shares else number(value, digits)
                marks.append(Mark(f"bar c{place % COLOURS}", 0.0, value))
            drawn.append(Row("" if place else clean(name, 24), words, marks))
    values = [value for series in chart.series for value in series.y if value is not None]
    axis = Axis(Scale(min(0.0, *values, 0.0), max(*values, 1e-9, 0.0)), "", [Mark("zero", 0.0)])
    many = chart.series if len(chart.series) > 1 else ()
    legend = [(f"bar c{k % COLOURS}", clean(series.name, 40)) for k, series in enumerate(many)]
    return rows(drawn, axis, label, legend)


def balance_plot(features: Sequence[FeatureBalance], threshold: float) -> Markup:
    """Standardised differences before (hollow) and after weighting (filled), feature by feature."""
    known = [v for f in features for v in (f.before, f.after) if v is not None]
    reach = 1.06 * max([1.5 * threshold, *(abs(value) for value in known)])
    drawn = []
    for own in features:
        marks = []
        if own.before is not None and own.after is not None:
            marks.append(Mark("link", own.before, own.after))
        looks = (("dot hollow c1", own.before), ("dot c0", own.after))
        marks += [Mark(look, value) for look, value in looks if value is not None]
        drawn.append(Row(clean(own.name, 24), "", marks))
    legend = [("dot hollow c1", "before"), ("dot c0", "after")]
    zone = [Mark("zone", -threshold, threshold)]
    axis = Axis(Scale(-reach, reach), "difference, in standard deviations", zone)
    return rows(drawn, axis, "Balance of features before and after weighting", legend)


@dataclass(frozen=True)
class Cell:
    """A coloured square.

    Args:
        strength: Of its colour, from 0 to 1.
        look: Classes of the style sheet: its colour, `thin` for hatched, `ring-c0` and others.
        words: Inside it.
        tip: Shown where a mouse rests on it.
    """

    strength: float
    look: str = "c0"
    words: str = ""
    tip: str | None = None

    @property
    def shade(self) -> int:
        """Number of the shade in the style sheet.

        There is none on which neither dark nor light letters reach a contrast of 4.5.
        """
        if self.strength <= 0.5:
            return round(10 * self.strength)
        return 6 if self.strength <= 0.675 else 7 if self.strength <= 0.85 else 8


def cell_map(
    drawn: Sequence[tuple[str, Sequence[Cell]]],
    levels: Sequence[str],
    label: str,
    axes: tuple[str, str] = ("", ""),
) -> Markup:
    """Rows of coloured squares: their name and squares, from above, and the columns' names below.

    The label is what a screen reader reads; axes say what lies upwards, and what to the right.
    """
    upright = max(map(len, levels), default=0) > _MAX_LEVEL
    context = {"rows": drawn, "levels": levels, "upright": upright, "label": label, "axes": axes}
    return fill("map.html", context)


def dose_map(
    values: Sequence[Share],
    grid: DoseGrid,
    label: str,
    *,
    thin: Sequence[bool] = (),
    signed: bool = False,
    rings: Sequence[tuple[int, str]] = (),
) -> Markup:
    """Shares by dose class as coloured cells, the highest row on top.

    Args:
        values: One share an action; None is hidden.
        thin: Actions that the log hardly holds; they are hatched.
        signed: Below and above zero have colours of their own.
        rings: Actions with a line around them, and its colour in the style sheet.
    """
    most = max((abs(value) for value in values if value is not None), default=0.0) or 1.0
    cells = []
    for action, value in enumerate(values):
        looks = ["c1" if signed and value is not None and value < 0 else "c0"]
        looks += ["thin"] if len(thin) and thin[action] else []
        looks += [f"ring-{colour}" for own, colour in rings if own == action]
        strength = math.sqrt(abs(value or 0.0) / most)
        cells.append(Cell(strength, " ".join(looks), _dose_share(value, signed=signed)))
    width, names = grid.n_columns, _levels(grid.n_rows, grid.row_levels)
    drawn = [(name, cells[row * width : (row + 1) * width]) for row, name in enumerate(names)]
    axes = f"{clean(grid.row, 20)} dose class", f"{clean(grid.column, 20)} dose class"
    return cell_map(drawn[::-1], _levels(width, grid.column_levels), label, axes)


def _levels(n_levels: int, levels: Sequence[str]) -> list[str]:
    """Dose classes beside a map: their ranges if they are known and short enough."""
    ranges = [level.partition(" (")[0] for level in levels]
    for word, sign in {"up to ": "\u2264", "over ": ">", "-": "\u2013"}.items():
        ranges = [level.replace(word, sign) for level in ranges]
    if ranges and max(map(len, ranges)) <= _MAX_RANGE:
        return [clean(level) for level in ranges]
    return ["none", *map(str, range(1, n_levels))]


def _dose_share(value: Share, *, signed: bool) -> str:
    if value is None:
        return "hid."
    if value == 0:
        return "0"
    if abs(value) < 0.0005:
        return "~0"
    size = percent(abs(value), 0 if abs(value) >= 0.0995 else 1).removesuffix(PERCENT)
    return size if not signed else f"+{size}" if value > 0 else f"{MINUS}{size}"
