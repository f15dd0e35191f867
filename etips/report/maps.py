"""Drawings of actions and features: dose maps, balance, small intervals inside a table."""

import math
from collections.abc import Sequence

from markupsafe import Markup

from etips.report.svg import (
    Scale,
    diamond,
    dot,
    drawing,
    line,
    rows_drawing,
    share,
    tag,
    text,
    tick_text,
)
from etips.report.wording import MINUS, PERCENT, clean, percent
from etips.results.exhibits import DoseGrid, FeatureBalance, Share

_CELL = 56
_TOP = 6
_LETTER = 6.8  # width of one beside a map
_WIDEST = 14  # letters of a range that stands there; longer ones are numbered


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
        grid: How they lie.
        label: What it shows, for a screen reader.
        thin: Actions that the log hardly holds; they are hatched.
        signed: Below and above zero have colours of their own.
        rings: Actions with a line around them, and its colour in the style sheet.
    """
    n_rows, n_columns = grid.n_rows, grid.n_columns
    cell = min(_CELL, 300 / n_columns)
    rows, columns = _levels(n_rows, grid.row_levels), _levels(n_columns, grid.column_levels)
    left = 58 + max(0.0, _LETTER * (max(map(len, rows)) - 4))
    most = max((abs(value) for value in values if value is not None), default=0.0) or 1.0
    parts = []
    for action, value in enumerate(values):
        row, column = divmod(action, n_columns)
        x, y = left + cell * column, _TOP + cell * (n_rows - 1 - row)
        hatched = bool(thin[action]) if len(thin) else False
        parts.append(_cell(x, y, cell, value, most, hatched=hatched, signed=signed))
    for place, (action, look) in enumerate(rings):
        row, column = divmod(action, n_columns)
        x, y = left + cell * column, _TOP + cell * (n_rows - 1 - row)
        parts.append(_ring(x, y, cell, 2 + 4 * place, look))
    bottom = _TOP + cell * n_rows
    for row, words in enumerate(rows):
        y = _TOP + cell * (n_rows - 1 - row) + cell / 2 + 4
        parts.append(text(left - 8, y, words, class_="tick end"))
    beneath, room = _beneath(columns, left, bottom, cell)
    middle, words = _TOP + cell * n_rows / 2, f"{clean(grid.row, 20)} dose class"
    turned = f"rotate(-90 14 {middle:g})"
    parts += [*beneath, text(14, middle, words, class_="small middle", transform=turned)]
    below, x = f"{clean(grid.column, 20)} dose class", left + cell * n_columns / 2
    parts.append(text(x, bottom + room, below, class_="small middle"))
    return drawing(bottom + room + 8, label, *parts, width=left + cell * n_columns + 8)


def _beneath(
    levels: Sequence[str], left: float, bottom: float, cell: float
) -> tuple[list[Markup], float]:
    """Classes beneath a map, aslant if they are wider than its cells, and where they end."""
    longest = max(map(len, levels))
    aslant = longest * _LETTER > cell - 4
    parts = []
    for column, words in enumerate(levels):
        x, y = left + cell * column + cell / 2, bottom + 16
        turned = {"transform": f"rotate(-32 {x:g} {y:g})"} if aslant else {}
        look = "tick end" if aslant else "tick middle"
        parts.append(text(x, y, words, class_=look, **turned))
    return parts, 34 + (0.53 * _LETTER * longest if aslant else 0.0)


HATCH = tag(
    "svg",
    tag(
        "pattern",
        tag("path", d="M0 7L7 0", class_="hatch"),
        id="thin",
        width=7,
        height=7,
        patternUnits="userSpaceOnUse",
    ),
    width=0,
    height=0,
    class_="unseen",
    aria_hidden="true",
)
"""Stands once on a page that has dose maps."""


def _levels(n_levels: int, levels: Sequence[str]) -> list[str]:
    """Dose classes beside a map: their ranges if they are known and short enough."""
    signs = {"up to ": "\u2264", "over ": ">", "-": "\u2013"}
    ranges = [level.partition(" (")[0] for level in levels]
    for word, sign in signs.items():
        ranges = [level.replace(word, sign) for level in ranges]
    if ranges and max(map(len, ranges)) <= _WIDEST:
        return [clean(level) for level in ranges]
    return ["none", *map(str, range(1, n_levels))]


def _key(*looks: str, hatched: bool = False) -> Markup:
    """Small squares for a legend, from faint to full."""
    parts = []
    for place, look in enumerate(looks or ("",)):
        box = {"x": 15 * place, "y": 0, "width": 13, "height": 13, "rx": 3}
        parts.append(tag("rect", class_="cell", **box))
        if look:
            parts.append(tag("rect", class_=f"mark {look}", fill_opacity=_FAINT[place], **box))
        if hatched:
            parts.append(tag("rect", fill="url(#thin)", **box))
    width = 15 * max(len(looks), 1)
    return tag("svg", *parts, viewBox=f"0 0 {width} 14", class_="key", aria_hidden="true")


_FAINT = (0.25, 0.6, 1.0)

LEGEND = (
    (
        _key("c0", "c0", "c0"),
        "few to many decisions; in the difference, more often than the clinicians",
    ),
    (_key("c1", "c1", "c1"), "in the difference, less often than the clinicians"),
    (
        _key(hatched=True),
        "hardly ever given to such patients: the log has little to say, whatever is recommended",
    ),
)
"""What the colours of a dose map mean."""


def _cell(
    x: float, y: float, size: float, value: Share, most: float, *, hatched: bool, signed: bool
) -> Markup:
    box = {"x": x + 1, "y": y + 1, "width": size - 2, "height": size - 2, "rx": 4}
    parts = [tag("rect", class_="cell", **box)]
    opacity, look = _shade(0.0 if value is None else math.sqrt(abs(value) / most))
    colour = "c1" if signed and value is not None and value < 0 else "c0"
    if opacity:
        parts.append(tag("rect", class_=f"mark {colour}", fill_opacity=opacity, **box))
    if hatched:
        parts.append(tag("rect", fill="url(#thin)", **box))
    parts.append(text(x + size / 2, y + size / 2 + 4, _figure(value, signed=signed), class_=look))
    return Markup("").join(parts)


def _ring(x: float, y: float, size: float, inset: float, look: str) -> Markup:
    box = {"x": x + inset, "y": y + inset, "width": size - 2 * inset, "height": size - 2 * inset}
    return tag("rect", class_=f"ring {look}", rx=4, **box)


def _shade(strength: float) -> tuple[float, str]:
    """Opacity of a cell and the class of its text.

    It leaps over shades on which neither dark nor light letters reach a contrast of 4.5.
    """
    if strength <= 0.5:
        return round(0.9 * strength, 3), "cell-text"
    if strength <= 0.85:
        return round(0.63 + 0.38 * (strength - 0.5), 3), "cell-text mid"
    return 1.0, "cell-text on"


def _figure(value: Share, *, signed: bool) -> str:
    if value is None:
        return "hid."
    if value == 0:
        return "0"
    if abs(value) < 0.0005:
        return "~0"
    size = percent(abs(value), 0 if abs(value) >= 0.0995 else 1).removesuffix(PERCENT)
    if not signed:
        return size
    return f"+{size}" if value > 0 else f"{MINUS}{size}"


def balance_plot(features: Sequence[FeatureBalance], threshold: float) -> Markup:
    """Standardised differences before (hollow) and after weighting (filled), feature by feature.

    Where propensities were balanced, a small mark shows the weights as they were before that.
    """
    sides = [side for f in features for side in (f.before, f.after, f.fitted)]
    values = [side for side in sides if side is not None]
    reach = max([abs(v) for v in values], default=threshold)
    reach = max(reach, 1.5 * threshold) * 1.06
    scale = Scale(-reach, reach, 0, 100)
    row, bottom = 20, 10 + 20 * len(features)
    zone = {
        "x": share(scale.at(-threshold)),
        "width": share(scale.at(threshold) - scale.at(-threshold)),
    }
    parts = [tag("rect", y=4, height=bottom - 4, class_="zone", **zone)]
    ticks = scale.ticks(5)
    for value in ticks:
        place = share(scale.at(value))
        parts.append(line((place, 4), (place, bottom), class_="grid"))
        parts.append(text(place, bottom + 16, tick_text(value, ticks), class_="tick middle"))
    for position, feature in enumerate(features):
        parts += _balance_row(feature, scale, 4 + row * position + row / 2)
    words = "difference, in standard deviations"
    parts.append(text("50%", bottom + 34, words, class_="small middle"))
    parts += _balance_legend(bottom + 54, balanced=any(f.fitted is not None for f in features))
    label = "Balance of features before and after weighting"
    left = 16 + 6.6 * max((len(clean(f.name, 24)) for f in features), default=0)
    return rows_drawing(bottom + 64, label, *parts, left=left, right=10)


def _balance_row(feature: FeatureBalance, scale: Scale, y: float) -> list[Markup]:
    parts = [text(-10, y + 4, clean(feature.name, 24), class_="tick end")]
    before, after = feature.before, feature.after
    if before is not None and after is not None:
        ends = (share(scale.at(before)), y), (share(scale.at(after)), y)
        parts.append(line(*ends, class_="link"))
    if before is not None:
        parts.append(dot(share(scale.at(before)), y, 4, class_="hollow c1"))
    if feature.fitted is not None:
        parts.append(dot(share(scale.at(feature.fitted)), y, 2.5, class_="mark c2"))
    if after is not None:
        parts.append(dot(share(scale.at(after)), y, 4.5, class_="mark c0"))
    return parts


def _balance_legend(y: float, *, balanced: bool) -> list[Markup]:
    """What the marks stand for."""
    marks = [(6, 4.0, "hollow c1", "before"), (82, 4.5, "mark c0", "after")]
    marks += [(144, 2.5, "mark c2", "not balanced")] if balanced else []
    return [
        part
        for x, size, look, words in marks
        for part in (dot(x, y, size, class_=look), text(x + 10, y + 4, words, class_="small"))
    ]


def small_interval(value: Share, low: Share, high: Share, scale: Scale, label: str) -> Markup:
    """An interval against zero, small enough for a cell of a table."""
    parts = [line((scale.at(0.0), 1), (scale.at(0.0), 19), class_="guide")]
    if low is not None and high is not None:
        parts.append(line((scale.at(low), 10), (scale.at(high), 10), class_="error c0"))
    if value is not None:
        parts.append(diamond(scale.at(value), 10, 5, class_="mark c0"))
    return drawing(20, label, *parts, width=130)
