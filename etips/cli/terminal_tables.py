"""Tables on a terminal: whole at any width.

What is too wide is printed in parts, one below the other, each with the first column. No figure is
cut or broken, and none is left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

_NAME = 28  # letters of a row's name, above which it takes several lines
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
        if _width(self._of(range(len(self.columns))), console) <= console.width:
            yield self._of(range(len(self.columns)))
            return
        low = self._with_spreads_below()
        places: list[int] = []
        for place in range(1, len(self.columns)):
            if places and _width(low._of([0, *places, place]), console) > console.width:
                yield low._of([0, *places])
                places = []
            places.append(place)
        yield low._of([0, *places])

    def _with_spreads_below(self) -> "TerminalTable":
        """The same table, but spreads and limits on a line of their own: half as wide."""
        rows = [[row[0], *map(_broken, row[1:])] for row in self.rows]
        return TerminalTable(self.columns, rows, self.look)

    def _of(self, places: Sequence[int]) -> Table:
        """Some of the columns."""
        plain = self.look == "plain"
        shown = Table(box=Boxes[self.look], padding=(0, 1, 0, 0) if plain else (0, 1))
        for place in places:
            widest = max((_longest(row[place]) for row in self.rows), default=0)
            title = _wrapped(self.columns[place], widest)
            if place:
                shown.add_column(title, justify="right", no_wrap=True)
            else:
                shown.add_column(title, overflow="fold", max_width=_NAME)
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
    for gap in _BREAKS:
        cell = cell.replace(gap, f"\n{gap[1:]}")
    return cell


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
