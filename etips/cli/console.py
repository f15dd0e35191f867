"""What commands share: refusals as one line, progress bars, tables, sentences and JSON."""

import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from etips.cli.main import INTERRUPTED
from etips.errors import EtipsError, ResourceError, SettingError
from etips.notes import collecting_notes
from etips.progress import duration

if TYPE_CHECKING:
    from etips.learn.training.epoch_report import EpochReport

_A_LINE_EVERY = 60.0  # seconds
_RESUMED = ("fit", "tune", "reproduce", "demo", "cohort", "bench")  # go on where they stopped

_NAMES = (44, 36, 28, 22)  # letters of a row's name in a line, as there is room
_FIGURES, _WORDS = 17, 11  # letters in a line of any other cell, if it is broken at all
_STICKS = "\u00a0"  # a space at which no line ends
_BREAKS = (" ± ", " [")  # before a spread and before limits a cell may go on in the next line
_ENDLESS = 10_000

BOXES = {"lines": box.HEAVY_HEAD, "plain": box.SIMPLE_HEAD}
"""How a table is drawn."""

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
SeedOption = Annotated[int, typer.Option(help="Same seed, same result.", min=0)]
OverwriteFlag = Annotated[
    bool, typer.Option("--overwrite", help="Replace what an earlier run wrote there.")
]


@contextmanager
def refusals(command: str) -> Iterator[Callable[[], None]]:
    """Turn a refusal into one line on stderr and its exit code; a bug keeps its traceback.

    Remarks made on the way are a line each, at the end, or as soon as what this gives is called;
    a refusal stands alone.
    """
    try:
        with collecting_notes() as notes:
            told: list[str] = []

            def tell() -> None:
                for line in notes[len(told) :]:
                    typer.echo(line, err=True)
                    told.append(line)

            yield tell
        tell()
    except EtipsError as error:
        _fail(f"{command}: {error}", error.exit_code)
    except MemoryError:
        _fail(f"{command}: not enough memory", ResourceError.exit_code)
    except KeyboardInterrupt:
        goes_on = command.removeprefix("etips ") in _RESUMED
        fix = ": run the same command to go on" if goes_on else ""
        _fail(f"{command}: interrupted{fix}", INTERRUPTED)


def _fail(line: str, code: int) -> None:
    typer.echo(line, err=True)
    raise typer.Exit(code)


@contextmanager
def progress_bar() -> Iterator[Callable[[str, float], None]]:
    """A function that shows what is being done and which share of it.

    Without a terminal, in a log say, it writes at most a line a minute, and none in the first.
    """
    if not sys.stderr.isatty():
        yield _lines()
        return
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=1.0)
        yield lambda what, share: bar.update(task, description=what, completed=share)


def _lines() -> Callable[[str, float], None]:
    told = time.monotonic()

    def tell(what: str, share: float) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= _A_LINE_EVERY:
            told = now
            typer.echo(f"{share:4.0%}  {what}", err=True)

    return tell


def standing(at: "EpochReport") -> str:
    """What a training's report says in a line.

    A narrow terminal cuts the line, so what matters least comes last.
    """
    if at.seconds is not None:
        return f"{at.stage}: {at.seconds:.0f} s"
    words = [f"{at.stage}: epoch {at.epoch} of {at.epochs}", f"{duration(at.seconds_left)} left"]
    words += [f"loss {at.loss:.4g}", f"held-out {at.held_out:.4g}"]
    if at.matching_factor is not None:
        words.append(f"factor {at.matching_factor:.4g}")
    return ", ".join(words)


def show(title: str, rows: Sequence[Mapping[str, object]], *, as_json: bool) -> None:
    """Print rows of the same columns as a table, or as JSON."""
    if as_json:
        plain = [{name: _plain(value) for name, value in row.items()} for row in rows]
        typer.echo(json.dumps(plain, indent=1, allow_nan=False))
        return
    Console().print(title, highlight=False, markup=False)
    print_table(list(rows[0]), [[_cell(value) for value in row.values()] for row in rows])


def say(text: str, *, indent: int = 0) -> None:
    """Print a sentence; on a terminal no word is broken at the end of a line."""
    room = " " * indent
    if not sys.stdout.isatty():
        typer.echo(f"{room}{text}")
        return
    for line in wrap(text, Console().width - 1, initial_indent=room, subsequent_indent=room):
        typer.echo(line)


def require_package(name: str, command: str, extra: str) -> None:
    """Refuse a command without a package that it needs, and say what brings it."""
    try:
        there = find_spec(name) is not None
    except ValueError:  # what a test has put in its place
        there = False
    if not there:
        fix = f"Install it with: pip install 'etips[{extra}]'."
        raise SettingError(command, f"needs {name}", fix=fix)


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    look: str = "lines",
    console: Console | None = None,
) -> None:
    """Print a table whole at any width; the first column names the rows.

    What is wider than the terminal is printed in parts, one below the other, each with the first
    column. No figure is cut or broken, and none is left out.

    Args:
        columns: Titles.
        rows: Of as many cells each.
        look: One of `BOXES`.
        console: Where; the terminal if left out.
    """
    place = console or Console()
    for part in _table_parts(columns, rows, look, place):
        place.print(part)


def _table_parts(
    columns: Sequence[str], rows: Sequence[Sequence[str]], look: str, console: Console
) -> Iterator[Table]:
    """Tables that fit the console, each with the first column."""
    broken = [[row[0], *map(_broken, row[1:])] for row in rows]  # half as wide
    every = range(len(columns))
    for cells, name in ((rows, _ENDLESS), *((broken, name) for name in _NAMES)):
        whole = _table(columns, cells, look, every, name)
        if _width(whole, console) <= console.width:
            yield whole
            return
    places: list[int] = []
    for place in every[1:]:
        wider = _table(columns, broken, look, [0, *places, place], _NAMES[-1])
        if places and _width(wider, console) > console.width:
            yield _table(columns, broken, look, [0, *places], _NAMES[-1])
            places = []
        places.append(place)
    yield _table(columns, broken, look, [0, *places], _NAMES[-1])


def _table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    look: str,
    places: Sequence[int],
    name: int,
) -> Table:
    """Some of the columns, names of the rows no wider than so many letters."""
    shown = Table(box=BOXES[look], padding=(0, 1, 0, 0) if look == "plain" else (0, 1))
    for place in places:
        cells = [line for row in rows for line in row[place].splitlines()]
        title = _wrapped(columns[place], max(map(len, cells), default=0))
        if place:
            shown.add_column(title, justify="right", no_wrap=True)
        else:
            shown.add_column(title, overflow="fold", max_width=name)
    for row in rows:
        shown.add_row(*(Text(row[place]) for place in places))  # names are not markup
    return shown


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


def _plain(value: object) -> object:
    """JSON has neither NaN nor infinity; null says that there is no number."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
