"""Tables on a terminal: whole at any width.

What is too wide is printed in parts, one below the other, each with the first column. No figure is
cut or broken, and none is left out.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

_NAMES = (44, 36, 28, 22)  # letters of a row's name in a line, as there is room
_FIGURES, _WORDS = 17, 11  # letters in a line of any other cell, if it is broken at all
_STICKS = "\u00a0"  # a space at which no line ends
_BREAKS = (" ± ", " [")  # before a spread and before limits a cell may go on in the next line
_ENDLESS = 10_000

Boxes = {"lines": box.HEAVY_HEAD, "plain": box.SIMPLE_HEAD}
"""How a table is drawn."""


@dataclass(frozen=True)
class TerminalTable:
    """Rows of text below titles.

    Args:
        columns: Titles; the first column names the rows.
        rows: Of as many cells each.
        look: One of `Boxes`.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    look: str = "lines"

    def parts(self, console: Console) -> Iterator[Table]:
        """Tables that fit the console, each with the first column."""
        every, low = range(len(self.columns)), self._with_spreads_below()
        for table, name in ((self, _ENDLESS), *((low, name) for name in _NAMES)):
            if _width(whole := table._of(every, name), console) <= console.width:
                yield whole
                return
        places: list[int] = []
        for place in range(1, len(self.columns)):
            wider = low._of([0, *places, place], _NAMES[-1])
            if places and _width(wider, console) > console.width:
                yield low._of([0, *places], _NAMES[-1])
                places = []
            places.append(place)
        yield low._of([0, *places], _NAMES[-1])

    def _with_spreads_below(self) -> "TerminalTable":
        """The same table, but spreads and limits on a line of their own: half as wide."""
        rows = [[row[0], *map(_broken, row[1:])] for row in self.rows]
        return TerminalTable(self.columns, rows, self.look)

    def _of(self, places: Sequence[int], name: int) -> Table:
        """Some of the columns, names of the rows no wider than so many letters."""
        plain = self.look == "plain"
        shown = Table(box=Boxes[self.look], padding=(0, 1, 0, 0) if plain else (0, 1))
        for place in places:
            widest = max((_longest(row[place]) for row in self.rows), default=0)
            title = _wrapped(self.columns[place], widest)
            if place:
                shown.add_column(title, justify="right", no_wrap=True)
            else:
                shown.add_column(title, overflow="fold", max_width=name)
        for row in self.rows:
            shown.add_row(*(Text(row[place]) for place in places))  # names are not markup
        return shown


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    look: str = "lines",
    console: Console | None = None,
) -> None:
    """Print a table, in parts if it is wider than the terminal.

    Args:
        columns: Titles.
        rows: Of as many cells each.
        look: One of `Boxes`.
        console: Where; the terminal if left out.
    """
    place = console or Console()
    for part in TerminalTable(columns, rows, look).parts(place):
        place.print(part)


def _width(table: Table, console: Console) -> int:
    """Columns of a terminal that a table takes whole."""
    endless = console.options.update(width=_ENDLESS, max_width=_ENDLESS)
    return Measurement.get(console, endless, table).maximum


def _broken(cell: str) -> str:
    """A cell over several lines: before a spread, before limits, and between words."""
    for gap in _BREAKS:
        cell = cell.replace(gap, f"\n{gap[1:]}")
    return "\n".join(part for line in cell.splitlines() for part in _wrap(line))


def _wrap(line: str) -> list[str]:
    """A line, or as many of about equal length as it takes; limits stay together."""
    most = _FIGURES if any(letter.isdigit() for letter in line) else _WORDS
    if len(line) <= most:
        return [line]
    whole = re.sub(r"\[[^\]]*\]", lambda limits: limits[0].replace(" ", _STICKS), line)
    room = max(math.ceil(len(line) / math.ceil(len(line) / most)), *map(len, whole.split(" ")))
    parts = wrap(whole, room, break_long_words=False, break_on_hyphens=False)
    return [part.replace(_STICKS, " ") for part in parts]


def _longest(cell: str) -> int:
    return max(map(len, cell.splitlines()), default=0)


def _wrapped(title: str, widest: int) -> Text:
    """A title over several lines, if it is wider than what stands below it."""
    room = max(widest, *map(len, title.split()), 1) if title.split() else 1
    lines = [""]
    for word in title.split():
        longer = f"{lines[-1]} {word}".strip()
        if len(longer) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return Text("\n".join(lines))
