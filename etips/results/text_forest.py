"""A forest plot in letters: differences and their intervals within 80 columns."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

WIDTH = 80
_PLOT = 23  # odd, so that zero has a place in the middle
_FIGURES = 26  # +0.0000 [+0.0000, +0.0000]


@dataclass(frozen=True)
class Bar:
    """One line: what is compared, the difference and its limits, and what was found."""

    label: str
    value: float | None
    low: float | None
    high: float | None
    words: str = ""


def draw_bars(bars: Sequence[Bar], *, width: int = WIDTH) -> list[str]:
    """The lines of the plot, none longer than `width`; what was found stands below its line.

    Zero is in the middle: left of it the first of a pair has the lower risk.
    """
    every = [end for bar in bars for end in (bar.value, bar.low, bar.high)]
    ends = [abs(end) for end in every if end is not None and math.isfinite(end)]
    reach = round_up(max(ends, default=1.0) or 1.0)
    room = width - _PLOT - _FIGURES - 4
    longest = max((len(bar.label) for bar in bars), default=0)
    lines = [f"{'':{room}}  {f'{-reach:g}':<{_PLOT // 2}}0{f'+{reach:g}':>{_PLOT // 2}}"]
    for bar in bars:
        label = bar.label if len(bar.label) <= room else bar.label[: room - 1] + "…"
        figures = "hidden or not known" if bar.value is None else _figures(bar)
        lines.append(f"{label:<{room}}  {draw_bar(bar, reach)}  {figures}".rstrip())
        if longest > room and bar.label != label:
            lines += [f"  {part}" for part in _wrap(bar.label, width - 2)]
        lines += [f"  {part}" for part in _wrap(bar.words, width - 2)]
    return lines


def draw_bar(bar: Bar, reach: float) -> str:
    """`---o---` on a line from `-reach` to `reach`; a limit beyond ends in an arrow."""
    cells = [" "] * _PLOT
    middle = _PLOT // 2
    cells[middle] = ":"
    if bar.value is None:
        return "".join(cells)
    low = bar.value if bar.low is None else bar.low
    high = bar.value if bar.high is None else bar.high
    for place in range(_at(low, reach), _at(high, reach) + 1):
        cells[place] = "+" if place == middle else "-"
    if low < -reach:
        cells[0] = "<"
    if high > reach:
        cells[-1] = ">"
    cells[_at(bar.value, reach)] = "o"
    return "".join(cells)


def round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, ... times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    step = next(unit for unit in (1, 2, 5, 10) if unit * power >= value * (1 - 1e-9))
    return float(f"{step * power:.3g}")


def _at(value: float, reach: float) -> int:
    share = min(max(value / reach, -1.0), 1.0)
    return round((share + 1) / 2 * (_PLOT - 1))


def _figures(bar: Bar) -> str:
    if bar.low is None or bar.high is None:
        return _signed(bar.value)
    return f"{_signed(bar.value)} [{_signed(bar.low)}, {_signed(bar.high)}]"


def _signed(value: float | None) -> str:
    """With its sign; what rounds to nothing has none of its own."""
    return "?" if value is None else f"{round(value, 4) + 0.0:+.4f}"


def _wrap(text: str, width: int) -> Iterable[str]:
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = ""
        line = f"{line} {word}".strip()
    if line:
        yield line
