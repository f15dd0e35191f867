"""What every command shares: refusals as one line, progress bars, tables and JSON."""

import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from etips.cli.exit_codes import INTERRUPTED
from etips.cli.terminal_tables import print_table
from etips.errors import EtipsError, ResourceError
from etips.notes import collecting_notes
from etips.progress import duration

if TYPE_CHECKING:
    from etips.learn.training.epoch_report import EpochReport

_A_LINE_EVERY = 60.0  # seconds
_RESUMED = (
    "fit",
    "tune",
    "reproduce",
    "demo",
    "cohort",
    "bench",
)  # commands that go on where they stopped

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
            yield lambda: _tell(notes, told)
        _tell(notes, told)
    except EtipsError as error:
        _fail(f"{command}: {error}", error.exit_code)
    except MemoryError:
        _fail(f"{command}: not enough memory", ResourceError.exit_code)
    except KeyboardInterrupt:
        _fail(f"{command}: {_interrupted(command)}", INTERRUPTED)


def _tell(notes: list[str], told: list[str]) -> None:
    for line in notes[len(told) :]:
        typer.echo(line, err=True)
        told.append(line)


def _interrupted(command: str) -> str:
    goes_on = command.removeprefix("etips ") in _RESUMED
    return "interrupted: run the same command to go on" if goes_on else "interrupted"


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


def _plain(value: object) -> object:
    """JSON has neither NaN nor infinity; null says that there is no number."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
