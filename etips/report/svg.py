"""Drawings as SVG inside the page: they follow its colours, light or dark, and its text size.

A drawing is 360 units wide, the width of a phone, so that letters keep their size there; on a wide
screen several stand side by side. One that is made of rows is as wide as there is room: places
along it are in per cent, letters stay as they are.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

from etips.report.wording import MINUS

WIDTH = 360

Spot = tuple[float, float]
"""A place: from the left, and from above."""

Place = tuple[float | str, float]
"""The same, or a share of the width and pixels from above."""


def tag(kind: str, *inside: str | Markup, **attributes: object) -> Markup:
    """An element; whatever is not markup already is escaped. `class_` and `_` become `class`, `-`.

    Args:
        kind: Name of the element.
        inside: Text and elements.
        attributes: None leaves one out.
    """
    parts = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _plain(value))
        for key, value in attributes.items()
        if value is not None
    )
    body = Markup("").join(escape(part) for part in inside)
    return Markup("<{0}{1}>{2}</{0}>").format(kind, parts, body)


def drawing(height: float, label: str, *inside: Markup, width: float = WIDTH) -> Markup:
    """The drawing itself; `label` says to a screen reader what the eye would see."""
    return tag(
        "svg",
        *inside,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=label,
    )


def rows_drawing(
    height: float, label: str, *inside: Markup, left: float = 0, right: float = 0
) -> Markup:
    """A drawing as wide as there is room; places along it are in per cent of what lies between.

    Args:
        height: In pixels.
        label: What it shows, for a screen reader.
        inside: What is drawn.
        left: Pixels for the names of the rows, which stand at places below zero.
        right: Pixels for what stands behind the rows.
    """
    room = f"height:{height:g}px;margin-left:{left:g}px;width:calc(100% - {left + right:g}px)"
    return tag("svg", *inside, class_="rows", style=room, role="img", aria_label=label)


def share(value: float) -> str:
    """A place along a drawing of rows."""
    return f"{value:.2f}%"


def text(x: float | str, y: float, words: str, **attributes: object) -> Markup:
    """Words at a place."""
    return tag("text", words, x=x, y=y, **attributes)


def line(start: Place, stop: Place, **attributes: object) -> Markup:
    """A straight line."""
    return tag("line", x1=start[0], y1=start[1], x2=stop[0], y2=stop[1], **attributes)


def polyline(spots: Iterable[Spot], **attributes: object) -> Markup:
    """A line through several places."""
    points = " ".join(f"{x:.2f},{y:.2f}" for x, y in spots)
    return tag("polyline", points=points, **attributes)


def dot(x: float | str, y: float, r: float = 4, **attributes: object) -> Markup:
    """A filled circle."""
    return tag("circle", cx=x, cy=y, r=r, **attributes)


def diamond(x: float, y: float, r: float = 6, **attributes: object) -> Markup:
    """A square on its tip."""
    points = f"{x:.2f},{y - r:.2f} {x + r:.2f},{y:.2f} {x:.2f},{y + r:.2f} {x - r:.2f},{y:.2f}"
    return tag("polygon", points=points, **attributes)


def square(x: float, y: float, r: float = 4, **attributes: object) -> Markup:
    """A square around a place."""
    return tag("rect", x=x - r, y=y - r, width=2 * r, height=2 * r, **attributes)


def triangle(x: float, y: float, r: float = 5, **attributes: object) -> Markup:
    """A triangle that stands on its side."""
    points = f"{x:.2f},{y - r:.2f} {x + r:.2f},{y + r:.2f} {x - r:.2f},{y + r:.2f}"
    return tag("polygon", points=points, **attributes)


@dataclass(frozen=True)
class Scale:
    """Numbers from `low` to `high` on a line from `start` to `stop`.

    Args:
        low: Smallest number.
        high: Largest number.
        start: Its place.
        stop: The other's place.
    """

    low: float
    high: float
    start: float
    stop: float

    @classmethod
    def around(
        cls, values: Iterable[float | None], start: float, stop: float, *, pad: float = 0.06
    ) -> "Scale":
        """A scale that holds the values, with some room at both ends."""
        known = [value for value in values if value is not None and math.isfinite(value)]
        low, high = (min(known), max(known)) if known else (0.0, 1.0)
        room = (high - low) * pad or abs(high) * 0.1 or 1.0
        return cls(low - room, high + room, start, stop)

    def at(self, value: float) -> float:
        """Where a number stands; those beyond the ends stand at them."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(max(share, 0.0), 1.0) * (self.stop - self.start)

    def ticks(self, n: int = 4) -> list[float]:
        """About `n` round numbers on the scale."""
        raw = (self.high - self.low) / max(n, 1)
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(unit * power for unit in (1, 2, 2.5, 5, 10) if unit * power >= raw * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        found = []
        while first * step <= self.high + step * 1e-9:
            found.append(first * step + 0.0)
            first += 1
        return found


def tick_text(value: float, ticks: Sequence[float]) -> str:
    """A number beside an axis: no more decimals than its neighbours need."""
    if abs(value) >= 1000:
        return f"{value / 1000:g}k"
    step = min((b - a for a, b in pairwise(ticks)), default=1.0)
    digits = max(0, min(6, math.ceil(-math.log10(step) - 1e-9))) if step > 0 else 0
    if round(step, digits) != round(step, digits + 1):
        digits += 1
    return f"{value:.{digits}f}".replace("-", MINUS)


def _plain(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
