"""`etips reproduce`: the paper's tables, with the published figure beside ours."""

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from etips.cli.console import JsonFlag, SeedOption, progress_bar, refusals
from etips.errors import FileError, SettingError
from etips.files.json_documents import canonical
from etips.files.toml import read_toml
from etips.files.writing import write_file
from etips.report.figures import draw
from etips.report.page import render
from etips.results.study_result import StudyResult
from etips.results.study_result import Table as StudyTable
from etips.runs.run_config import Device
from etips.studies.experiment import Experiment, read_experiment, shipped
from etips.studies.study import run_study
from etips.studies.study_data import data_of
from etips.tasks.runner import jobs_for
from etips.worlds.world_registry import WORLDS

_PAGE = 100
"""Columns of text that is not printed on a terminal; tables there are as wide as they need."""

_LONG = 8  # letters of a column's title above which it takes two lines


class TableName(StrEnum):
    """The paper's tables."""

    TABLE1 = "table1"
    TABLE2 = "table2"


class TaskName(StrEnum):
    """The tasks of Table I."""

    ZEROS = "zeros"
    ROWS = "rows"
    BOTH = "both"


class Preset(StrEnum):
    """Readings of the paper."""

    ETIPS = "etips"
    PAPER = "paper"
    AUTHORS = "authors"


if TYPE_CHECKING:
    WorldName = str
else:
    _OF_TABLE2 = [name for name, world in WORLDS.items() if not world.has_labels]
    WorldName = StrEnum("WorldName", {name: name for name in _OF_TABLE2})
    """Worlds of Table II."""


def reproduce(
    table: Annotated[TableName, typer.Argument(help="Which table of the paper.")],
    task: Annotated[
        TaskName | None, typer.Option(help="table1: one of its tasks; both if left out.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="table2: a cohort or another Trajectories folder.")
    ] = None,
    world: Annotated[
        WorldName | None, typer.Option(help="table2 without data: icu-sepsis if left out.")
    ] = None,
    lag: Annotated[
        int | None, typer.Option(min=0, max=1, help="table2: 1 hides a decision's own step.")
    ] = None,
    preset: Annotated[
        Preset, typer.Option(help="Ours, as the paper says, or as its published code does.")
    ] = Preset.ETIPS,
    quick: Annotated[
        bool, typer.Option("--quick", help="A short run; figures say little.")
    ] = False,
    config: Annotated[
        Path | None, typer.Option(help="TOML file in place of the shipped experiment.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write; named after the table if left out.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Tasks at a time; as suits the machine if left out.")
    ] = None,
    cluster: Annotated[str | None, typer.Option(help="Address of a Ray cluster.")] = None,
    device: Annotated[Device, typer.Option(help="Where to train.")] = Device.AUTO,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the tables as Markdown.")
    ] = False,
) -> None:
    """Repeat a study of the paper: every method, every fold, the published figure beside ours.

    Interrupted, the same command goes on where it stopped. Writes results.json, report.html and
    figures; of table1 with both tasks into one folder each.
    """
    with refusals("etips reproduce"):
        _check(table, task, data, world, lag, config)
        if as_json and as_markdown:
            raise SettingError("--json, --markdown", "must not both be given")
        changes = {"seed": seed, **_changes(data, world, lag)}
        experiments = [
            _experiment(name, config, preset.value, quick, changes) for name in _names(table, task)
        ]
        for experiment in experiments:
            data_of(experiment, data)  # refused before a folder is made
        # A device that is not there is refused here too; that of a cluster is elsewhere.
        suited = 1 if cluster else jobs_for(device.value)
        place = make_folder(out or Path(table.value))
        results = {}
        for experiment in experiments:
            own = _own_folder(place, experiment) if len(experiments) > 1 else place
            with progress_bar() as progress:
                result = run_study(
                    experiment,
                    own,
                    data=data,
                    device=device.value,
                    jobs=jobs or (1 if quick else suited),
                    cluster=cluster,
                    report=progress,
                )
                progress("writing", 1.0)
                write_study(result, own)
            results[experiment.name] = result
            if as_markdown:
                typer.echo(_markdown(result))
            elif not as_json:
                _print(result, own)
        if as_json:
            typer.echo(_json(results))


def write_study(result: StudyResult, folder: Path) -> None:
    """Write results.json, figures/NAME.svg and .png, and report.html."""
    write_file(folder / "results.json", canonical(result.to_json()))
    figures = make_folder(folder / "figures")
    for chart in result.charts:
        write_file(figures / f"{chart.name}.svg", draw(chart, format="svg"))
        write_file(figures / f"{chart.name}.png", draw(chart, format="png"))
    write_file(folder / "report.html", render(result).encode())


def _names(table: TableName, task: TaskName | None) -> list[str]:
    if table is TableName.TABLE2:
        return ["table2"]
    tasks = (TaskName.ZEROS, TaskName.ROWS) if task in (None, TaskName.BOTH) else (task,)
    return [f"table1-{name}" for name in tasks]


def _own_folder(place: Path, experiment: Experiment) -> Path:
    """Of one task among several: named after it."""
    return make_folder(place / experiment.name.rpartition("-")[2])


def _experiment(
    name: str, config: Path | None, preset: str, quick: bool, changes: Mapping[str, Any]
) -> Experiment:
    document = shipped(name) if config is None else read_toml(config)
    found = read_experiment(document, name=name, preset=preset, quick=quick, **changes)
    if found.table != name[:6]:
        raise SettingError("--config", f"is an experiment of {found.table}")
    return found


def _changes(data: Path | None, world: WorldName | None, lag: int | None) -> dict[str, object]:
    """What the command line sets otherwise; a cohort keeps the paper's lag unless told."""
    found: dict[str, object] = {} if world is None else {"world": str(world)}
    if data is not None:
        found = {"world": "data", "n": 0, "lag": 1}
    return found if lag is None else {**found, "lag": lag}


def _check(
    table: TableName,
    task: TaskName | None,
    data: Path | None,
    world: WorldName | None,
    lag: int | None,
    config: Path | None,
) -> None:
    first = table is TableName.TABLE1
    for name, given, applies in (
        ("--task", task, first),
        ("--data", data, not first),
        ("--world", world, not first),
        ("--lag", lag, not first),
    ):
        if given is not None and not applies:
            raise SettingError(name, f"does not apply to {table.value}")
    if data is not None and world is not None:
        raise SettingError("--data, --world", "must not both be given")
    if lag is not None and world is not None and lag not in WORLDS[world].lags:
        raise SettingError("--lag", f"must be 0: the {world} shows a decision's own step")
    if config is not None and first and task in (None, TaskName.BOTH):
        raise SettingError("--config", "is one experiment: name its --task, zeros or rows")


def make_folder(path: Path) -> Path:
    """The folder, made if it is not there; its parent must be."""
    if not path.parent.is_dir():
        raise FileError(str(path.parent), "must be a folder that exists")
    if path.exists() and not path.is_dir():
        raise FileError(str(path), "exists and is not a folder")
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def _json(results: Mapping[str, StudyResult]) -> str:
    """The tables of all studies, by the name of each."""
    kept = ("title", "lead", "tables", "seconds")
    documents = {name: result.to_json() for name, result in results.items()}
    plain = {name: {key: own[key] for key in kept} for name, own in documents.items()}
    return json.dumps(plain, indent=1, allow_nan=False)


def _markdown(result: StudyResult) -> str:
    """The tables as a document holds them."""
    lines = [result.lead or ""]
    for entry in result.tables:
        rows = [entry.columns, ["---"] * len(entry.columns), *_texts(entry)]
        lines += ["", f"**{entry.title}**", "", *(f"| {' | '.join(row)} |" for row in rows)]
        lines += ["", entry.note or ""]
    return "\n".join(lines)


def _texts(entry: StudyTable) -> list[list[str]]:
    return [[str(cell) for cell in row] for row in entry.rows]


def _width(entry: StudyTable) -> int:
    """Columns of the terminal that a table takes whole."""
    columns = zip(entry.columns, *_texts(entry), strict=True)
    return sum(max(len(cell) for cell in column) + 3 for column in columns)


def _as_rich(entry: StudyTable, *, narrow: bool) -> Table:
    """A table to print; on a narrow screen without the spreads, which the files have."""
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for place, column in enumerate(entry.columns):
        justify: Literal["left", "right"] = "right" if place else "left"
        title = column.replace(" ", "\n", 1) if len(column) > _LONG else column
        shown.add_column(title, justify=justify, no_wrap=True)
    for row in _texts(entry):
        first, rest = row[:3], row[3:]
        shown.add_row(*first, *(cell.partition(" ±")[0] if narrow else cell for cell in rest))
    return shown


def _print(result: StudyResult, folder: Path) -> None:
    on_screen = Console().is_terminal
    console = Console() if on_screen else Console(width=_PAGE)
    console.print(result.lead, highlight=False, markup=False)
    for entry in result.tables:
        whole = _width(entry)
        console.print()
        console.print(entry.title, highlight=False, markup=False)
        wide = console if on_screen else Console(width=whole)
        wide.print(_as_rich(entry, narrow=wide.width < whole))
        console.print(entry.note, highlight=False, markup=False)
    typer.echo(f"Open {folder / 'report.html'}, or read {folder / 'results.json'}.")
