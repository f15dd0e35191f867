"""Drawings of one stay: values over its steps, and what was done and advised at each."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from etips.data.decisions import Floats
from etips.report.svg import Scale, Spot, dot, drawing, line, polyline, square, tag, text, tick_text
from etips.report.wording import clean
from etips.serve.normal_ranges import Range

_WIDTH, _RIGHT = 360, 12
_NARROW, _LEFT = 236, 38  # of a chart of values: two stand side by side
_TOP, _BOTTOM = 8, 92
_ROW = 22


@dataclass(frozen=True)
class Track:
    """What was done and advised of one part of the actions, decision by decision.

    Args:
        levels: What it can be, the lowest first.
        logged: Level that was given at each decision; None where that is not known.
        advised: Level that is advised; None where the policy abstains.
    """

    levels: Sequence[str]
    logged: Sequence[int | None]
    advised: Sequence[int | None]


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
    ends = [] if normal is None else [normal.low, normal.high]
    up = Scale.around([*values.tolist(), *ends], _BOTTOM, _TOP)
    along = Scale(0, max(len(values) - 1, 1), _LEFT, _NARROW - _RIGHT)
    parts: list[Markup] = []
    if normal is not None:
        top, low = up.at(normal.high), up.at(normal.low)
        box = {"x": _LEFT, "y": top, "width": _NARROW - _RIGHT - _LEFT, "height": low - top}
        parts.append(tag("rect", class_="normal", **box))
    ticks = up.ticks(3)
    for tick in ticks:
        y = up.at(tick)
        parts.append(line((_LEFT, y), (_NARROW - _RIGHT, y), class_="grid"))
        parts.append(text(_LEFT - 6, y + 4, tick_text(tick, ticks), class_="tick end"))
    parts += _steps_below(len(values), along, _BOTTOM)
    now = along.at(at)
    parts.append(line((now, _TOP - 4), (now, _BOTTOM), class_="now"))
    spots = [(along.at(k), up.at(float(v))) for k, v in enumerate(values) if not np.isnan(v)]
    known = [k for k, v in enumerate(values) if not np.isnan(v)]
    parts += _curve(spots, known, at)
    for k, (x, y) in zip(known, spots, strict=True):
        look = "mark c0" if measured[k] else "hollow c0"
        size = 5.5 if k == at else 3
        parts.append(dot(x, y, size, class_=look if k <= at else f"{look} later"))
    return drawing(_BOTTOM + 22, f"{clean(name)} over the steps of the stay", *parts, width=_NARROW)


def _curve(spots: Sequence[Spot], known: Sequence[int], at: int) -> list[Markup]:
    """The line; what comes after the decision is faint."""
    seen = [spot for k, spot in zip(known, spots, strict=True) if k <= at]
    later = [spot for k, spot in zip(known, spots, strict=True) if k >= at]
    return [
        polyline(part, class_=look)
        for part, look in ((later, "stroke c0 later"), (seen, "stroke c0"))
        if len(part) > 1
    ]


def _steps_below(n: int, along: Scale, bottom: float) -> list[Markup]:
    every = max(1, -(-n // 7))
    return [
        text(along.at(k), bottom + 16, str(k), class_="tick middle") for k in range(0, n, every)
    ]


def action_chart(track: Track, steps: Sequence[int], at: int, label: str) -> Markup:
    """Levels that were given (squares) and advised (dots) at each decision, and where it waits.

    Args:
        track: What was done and advised.
        steps: Step of each decision.
        at: The decision that is looked at.
        label: What it shows, for a screen reader.
    """
    used = _used(track)
    rows = {level: number for number, level in enumerate(used)}
    bottom = _TOP + _ROW * len(used)
    left = 14 + 6.4 * max(len(clean(track.levels[level], 22)) for level in used)
    along = Scale(0, max(len(steps) - 1, 1), left + 8, _WIDTH - _RIGHT)
    parts = []
    for level, number in rows.items():
        y = bottom - _ROW * number - _ROW / 2
        parts.append(line((left, y), (_WIDTH - _RIGHT, y), class_="grid"))
        parts.append(text(left - 6, y + 4, clean(track.levels[level], 22), class_="tick end"))
    now = along.at(at)
    parts.append(line((now, _TOP - 4), (now, bottom + 2), class_="now"))
    every = max(1, -(-len(steps) // 9))
    for k, step in enumerate(steps):
        x = along.at(k)
        if k % every == 0:
            parts.append(text(x, bottom + 14, str(step), class_="tick middle"))
        given, advised = track.logged[k], track.advised[k]
        if given is not None:
            y = bottom - _ROW * rows[given] - _ROW / 2
            parts.append(square(x, y, 5.5 if k == at else 4.5, class_="hollow c1"))
        if advised is not None:
            y = bottom - _ROW * rows[advised] - _ROW / 2
            parts.append(dot(x, y, 3.5 if k == at else 2.8, class_="mark c0"))
        else:
            parts.append(text(x, bottom + 26, "wait", class_="small middle"))
    waits = any(own is None for own in track.advised)
    return drawing(bottom + (34 if waits else 22), label, *parts)


def _used(track: Track) -> list[int]:
    """All levels of a short scale; of a long one those that occur."""
    if len(track.levels) <= 8:
        return list(range(len(track.levels)))
    named = {own for own in (*track.logged, *track.advised) if own is not None}
    return sorted(named) or [0]


def signed_bars(rows: Sequence[tuple[str, float]], label: str) -> Markup:
    """Bars to the right of zero (for) and to the left (against), one row each."""
    reach = max((abs(value) for _, value in rows), default=0.0) or 1.0
    left = 14 + 6.4 * max((len(clean(name, 24)) for name, _ in rows), default=0)
    low = min(min((value for _, value in rows), default=0.0), -0.25 * reach)
    high = max(max((value for _, value in rows), default=0.0), 0.12 * reach)
    scale = Scale(low, high, left, _WIDTH - _RIGHT)
    zero, parts = scale.at(0.0), []
    for number, (name, value) in enumerate(rows):
        y = 4 + _ROW * number
        end = scale.at(value)
        box = {"x": min(zero, end), "y": y + 3, "width": max(abs(end - zero), 1), "height": 14}
        parts.append(tag("rect", class_=f"mark {'c0' if value >= 0 else 'c1'}", rx=2, **box))
        parts.append(text(left - 6, y + 14, clean(name, 24), class_="tick end"))
    bottom = 4 + _ROW * len(rows)
    parts.append(line((zero, 2), (zero, bottom), class_="axis"))
    parts.append(text(zero - 8, bottom + 14, "against", class_="small end"))
    parts.append(text(zero + 8, bottom + 14, "for", class_="small"))
    return drawing(bottom + 22, label, *parts)
