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

from etips.errors import EtipsError, ResourceError, SettingError
from etips.notes import collecting_notes
from etips.progress import duration

if TYPE_CHECKING:
    from etips.learn.training.epoch_report import EpochReport

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

_A_LINE_EVERY = 60.0  # seconds
_RESUMED = ("fit", "tune", "reproduce", "demo", "cohort", "bench")  # go on where they stopped

_NAMES = (44, 36, 28, 22)  # letters of a row's name in a line, as there is room
_FIGURES, _WORDS = 17, 11  # letters in a line of any other cell, if it is broken at all
_ENDLESS = 10_000
_PAGE = 100  # columns of text that is not printed on a terminal

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
SeedOption = Annotated[int, typer.Option(help="Same seed, same result.", min=0)]
OverwriteFlag = Annotated[
    bool, typer.Option("--overwrite", help="Replace what an earlier run wrote there.")
]
JobsOption = Annotated[
    int | None, typer.Option(min=1, help="Tasks at a time; as suits the machine if left out.")
]
MarkdownFlag = Annotated[bool, typer.Option("--markdown", help="Print the tables as Markdown.")]


@contextmanager
def refusals(command: str) -> Iterator[None]:
    """Turn a refusal into one line on stderr and its exit code; a bug keeps its traceback."""
    code, rule = ResourceError.exit_code, "not enough memory"
    try:
        with showing_notes():
            yield
    except EtipsError as error:
        code, rule = error.exit_code, str(error)
    except MemoryError:
        pass
    except KeyboardInterrupt:
        goes_on = command.removeprefix("etips ") in _RESUMED
        code, rule = INTERRUPTED, "interrupted"
        rule += ": run the same command to go on" if goes_on else ""
    else:
        return
    typer.echo(f"{command}: {rule}", err=True)
    raise typer.Exit(code)


@contextmanager
def showing_notes() -> Iterator[None]:
    """Print remarks that are made within, a line each, at the end; a refusal stands alone."""
    with collecting_notes() as notes:
        yield
    for line in notes:
        typer.echo(line, err=True)


@contextmanager
def progress_bar() -> Iterator[Callable[[str, float], None]]:
    """A function that shows what is being done and which share of it.

    Without a terminal, in a log say, it writes at most a line a minute, and none in the first.
    """
    if sys.stderr is None or not sys.stderr.isatty():
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
    last = time.monotonic()

    def write(what: str, share: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _A_LINE_EVERY:
            last = now
            typer.echo(f"{share:4.0%}  {what}", err=True)

    return write


def standing(at: "EpochReport") -> str:
    """A training's report in a line; a narrow terminal cuts it, so what matters least is last."""
    if at.seconds is not None:
        return f"{at.stage}: {at.seconds:.0f} s"
    words = [f"{at.stage}: epoch {at.epoch} of {at.epochs}", f"{duration(at.seconds_left)} left"]
    words += [f"loss {at.loss:.4g}", f"held-out {at.held_out:.4g}"]
    if at.matching_factor is not None:
        words.append(f"factor {at.matching_factor:.4g}")
    return ", ".join(words)


def show(title: str, rows: Sequence[Mapping[str, object]], *, as_json: bool) -> None:
    """Print rows of the same columns as a table, or as JSON, which has no NaN: null."""
    if as_json:
        plain = [
            {
                name: None if isinstance(value, float) and not math.isfinite(value) else value
                for name, value in row.items()
            }
            for row in rows
        ]
        typer.echo(json.dumps(plain, indent=1, allow_nan=False))
        return
    Console().print(title, highlight=False, markup=False)
    print_table(list(rows[0]), [[_cell(value) for value in row.values()] for row in rows])


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def figure(value: float | None, form: str = ".3f") -> str:
    """A number of a table, "-" where it is hidden or not known."""
    return "-" if value is None else format(value, form)


def say(text: str, *, indent: int = 0) -> None:
    """Print a sentence; on a terminal no word is broken at the end of a line."""
    room = " " * indent
    if not sys.stdout.isatty():
        typer.echo(f"{room}{text}")
        return
    for line in wrap(text, Console().width - 1, initial_indent=room, subsequent_indent=room):
        typer.echo(line)


def page_console() -> Console:
    """The terminal, or a page of text that is not printed on one."""
    return Console() if Console().is_terminal else Console(width=_PAGE)


def print_plain(console: Console, *lines: str | None) -> None:
    """Print lines in which nothing is markup."""
    for line in lines:
        console.print(line, highlight=False, markup=False)


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
    plain: bool = False,
    console: Console | None = None,
) -> None:
    """Print a table whole at any width; the first column names the rows.

    What is wider than the terminal is printed in parts, one below the other, each with the first
    column. No figure is cut or broken, and none is left out.

    Args:
        columns: Titles.
        rows: Of as many cells each.
        plain: Without lines.
        console: Where; the terminal if left out.
    """
    place = console or Console()
    broken = [[row[0], *map(_broken, row[1:])] for row in rows]  # half as wide

    every = list(range(len(columns)))

    def fitting(cells: Sequence[Sequence[str]], places: Sequence[int], name: int) -> Table | None:
        """Some of the columns, names of the rows no wider than so many letters, if that fits."""
        table = _table(columns, cells, places, name, plain=plain)
        endless = place.options.update(width=_ENDLESS, max_width=_ENDLESS)
        fits = Measurement.get(place, endless, table).maximum <= place.width
        return table if fits or len(places) <= 2 else None

    for cells, name in ((rows, _ENDLESS), *((broken, name) for name in _NAMES)):
        whole = fitting(cells, every, name)
        if whole is not None:
            place.print(whole)
            return
    start = 1
    while start < len(columns):
        stop, part = start, fitting(broken, [0, start], _NAMES[-1])
        while part is not None and stop < len(columns):
            stop, shown = stop + 1, part
            part = fitting(broken, [0, *every[start : stop + 1]], _NAMES[-1])
        place.print(shown)
        start = stop


def _table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    places: Sequence[int],
    name: int,
    *,
    plain: bool,
) -> Table:
    look = box.SIMPLE_HEAD if plain else box.HEAVY_HEAD
    table = Table(box=look, padding=(0, 1, 0, 0) if plain else (0, 1))
    for place in places:
        cells = [line for row in rows for line in row[place].splitlines()]
        room = max(map(len, [*cells, *columns[place].split(), " "]))
        title = Text("\n".join(wrap(columns[place], room, break_on_hyphens=False)))
        if place:
            table.add_column(title, justify="right", no_wrap=True)
        else:
            table.add_column(title, overflow="fold", max_width=name)
    for row in rows:
        table.add_row(*(Text(row[place]) for place in places))  # names are not markup
    return table


def _broken(cell: str) -> str:
    """A cell over several lines: before a spread, before limits, and between words."""
    lines = []
    for line in re.sub(r" (?=± |\[)", "\n", cell).splitlines():
        room = _FIGURES if any(letter.isdigit() for letter in line) else _WORDS
        n_lines = math.ceil(len(line) / room)
        joined = re.sub(r"\[[^\]]*\]", lambda limits: limits[0].replace(" ", "\u00a0"), line)
        room = max([math.ceil(len(line) / max(n_lines, 1)), *map(len, joined.split(" "))])
        parts = wrap(joined, room, break_on_hyphens=False) if n_lines > 1 else [line]
        lines += [part.replace("\u00a0", " ") for part in parts]
    return "\n".join(lines)
