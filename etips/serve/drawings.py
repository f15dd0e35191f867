"""Drawings of one stay: values over its steps, what was done and advised at each, and reasons.

They are SVG inside the page, as wide as a phone, in its colours and with its letters.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from etips.data.decisions import Floats
from etips.report.drawings import Scale, tick_text
from etips.report.wording import clean
from etips.serve.decision import Track
from etips.serve.values import Range

_WIDTH, _RIGHT = 360, 12
_NARROW, _LEFT = 236, 38  # of a chart of values: two stand side by side
_TOP, _BOTTOM = 8, 92
_ROW = 22
_LETTER = 6.4
_SVG = Markup('<svg viewBox="0 0 {:g} {:g}" role="img" aria-label="{}">{}</svg>')
_LINE = Markup('<line x1="{:.2f}" y1="{:.2f}" x2="{:.2f}" y2="{:.2f}" class="{}"></line>')
_TEXT = Markup('<text x="{:.2f}" y="{:.2f}" class="{}">{}</text>')
_RECT = Markup('<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" class="{}"></rect>')
_DOT = Markup('<circle cx="{:.2f}" cy="{:.2f}" r="{:g}" class="{}"></circle>')
_CURVE = Markup('<polyline points="{}" class="{}"></polyline>')


@dataclass(frozen=True)
class _Axis(Scale):
    """Numbers from `low` to `high` on a line from `start` to `stop`."""

    start: float
    stop: float

    def at(self, value: float) -> float:
        """Where a number stands; those beyond the ends stand at them."""
        return self.start + super().at(value) / 100 * (self.stop - self.start)


def value_chart(
    name: str, values: Floats, measured: Sequence[bool], at: int, normal: Range | None
) -> Markup:
    """A feature over the steps of a stay, with its normal range, up to and after a decision.

    Args:
        name: Of the feature.
        values: One a step, NaN where there is none.
        measured: Whether it was measured at each step, or stands for an older value.
        at: The last step that the decision sees.
        normal: The usual range, if it is known.
    """
    right = _NARROW - _RIGHT
    numbers = Scale.around([*values.tolist(), *([] if normal is None else normal[:2])])
    up = _Axis(numbers.low, numbers.high, _BOTTOM, _TOP)
    along = _Axis(0, max(len(values) - 1, 1), _LEFT, right)
    parts = []
    if normal is not None:
        top, low = up.at(normal.high), up.at(normal.low)
        parts.append(_RECT.format(_LEFT, top, right - _LEFT, low - top, "normal"))
    ticks = up.ticks(3)
    for tick in ticks:
        y = up.at(tick)
        parts.append(_LINE.format(_LEFT, y, right, y, "grid"))
        parts.append(_TEXT.format(_LEFT - 6, y + 4, "tick end", tick_text(tick, ticks)))
    for k in range(0, len(values), max(1, -(-len(values) // 7))):
        parts.append(_TEXT.format(along.at(k), _BOTTOM + 16, "tick middle", k))
    parts.append(_LINE.format(along.at(at), _TOP - 4, along.at(at), _BOTTOM, "now"))
    known = np.flatnonzero(~np.isnan(values)).tolist()
    spots = {k: (along.at(k), up.at(float(values[k]))) for k in known}
    for look, shown in (
        ("stroke c0 later", [k for k in known if k >= at]),  # what comes after it is faint
        ("stroke c0", [k for k in known if k <= at]),
    ):
        if len(shown) > 1:
            points = " ".join(f"{x:.2f},{y:.2f}" for x, y in map(spots.__getitem__, shown))
            parts.append(_CURVE.format(points, look))
    for k, (x, y) in spots.items():
        look = ("mark c0" if measured[k] else "hollow c0") + (" later" if k > at else "")
        parts.append(_DOT.format(x, y, 5.5 if k == at else 3, look))
    return _drawing(_BOTTOM + 22, f"{clean(name)} over the steps of the stay", parts, _NARROW)


def action_chart(track: Track, steps: Sequence[int], at: int) -> Markup:
    """Levels that were given (squares) and advised (dots) at each step, and where it waits."""
    used = list(range(len(track.levels)))
    if len(used) > 8:  # of a long scale the levels that occur
        used = sorted({k for k in (*track.logged, *track.advised) if k is not None}) or [0]
    bottom, right = _TOP + _ROW * len(used), _WIDTH - _RIGHT
    heights = {level: bottom - _ROW * number - _ROW / 2 for number, level in enumerate(used)}
    names = {level: clean(track.levels[level], 22) for level in used}
    left = 14 + _LETTER * max(map(len, names.values()))
    along = _Axis(0, max(len(steps) - 1, 1), left + 8, right)
    parts = []
    for level, y in heights.items():
        parts.append(_LINE.format(left, y, right, y, "grid"))
        parts.append(_TEXT.format(left - 6, y + 4, "tick end", names[level]))
    parts.append(_LINE.format(along.at(at), _TOP - 4, along.at(at), bottom + 2, "now"))
    every = max(1, -(-len(steps) // 9))
    for k, (step, given, advised) in enumerate(
        zip(steps, track.logged, track.advised, strict=True)
    ):
        x = along.at(k)
        if k % every == 0:
            parts.append(_TEXT.format(x, bottom + 14, "tick middle", step))
        if given is not None:
            r = 5.5 if k == at else 4.5
            parts.append(_RECT.format(x - r, heights[given] - r, 2 * r, 2 * r, "hollow c1"))
        if advised is not None:
            parts.append(_DOT.format(x, heights[advised], 3.5 if k == at else 2.8, "mark c0"))
        else:
            parts.append(_TEXT.format(x, bottom + 26, "small middle", "wait"))
    label = f"{track.name}: given and advised"
    return _drawing(bottom + (34 if None in track.advised else 22), label, parts)


def signed_bars(rows: Sequence[tuple[str, float]]) -> Markup:
    """Bars to the right of zero (for) and to the left (against), one row each."""
    values, names = [value for _, value in rows], [clean(name, 24) for name, _ in rows]
    reach = max(map(abs, values), default=0.0) or 1.0
    left = 14 + _LETTER * max(map(len, names), default=0)
    low, high = min([-0.25 * reach, *values]), max([0.12 * reach, *values])
    scale = _Axis(low, high, left, _WIDTH - _RIGHT)
    zero, bottom, parts = scale.at(0.0), 4 + _ROW * len(rows), []
    for number, (name, value) in enumerate(zip(names, values, strict=True)):
        y, end = 4 + _ROW * number, scale.at(value)
        look = f"mark {'c0' if value >= 0 else 'c1'}"
        parts.append(_RECT.format(min(zero, end), y + 3, max(abs(end - zero), 1), 14, look))
        parts.append(_TEXT.format(left - 6, y + 14, "tick end", name))
    parts.append(_LINE.format(zero, 2, zero, bottom, "axis"))
    parts.append(_TEXT.format(zero - 8, bottom + 14, "small end", "against"))
    parts.append(_TEXT.format(zero + 8, bottom + 14, "small", "for"))
    return _drawing(bottom + 22, "What speaks for the advice and what against it", parts)


def _drawing(height: float, label: str, parts: Iterable[Markup], width: int = _WIDTH) -> Markup:
    """The drawing; `label` says to a screen reader what the eye would see."""
    return _SVG.format(width, height, label, Markup("").join(parts))
