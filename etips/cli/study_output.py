"""Studies as files and on the screen: what `etips reproduce`, `demo` and `bench` write."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer
from rich.console import Console

from etips.cli.console import page_console, print_plain, print_table
from etips.errors import FileError
from etips.files.json_documents import canonical
from etips.files.writing import write_file
from etips.report.figures import draw
from etips.report.page import render
from etips.results.study_result import Chart, StudyResult, Table
from etips.runs.places import RESULTS

REPORT, FIGURES = "report.html", "figures"
"""What a study's folder holds beside its results."""


def write_study(result: StudyResult, folder: Path) -> None:
    """Write results.json, figures/NAME.svg and .png, and report.html."""
    write_page(folder, result.to_json(), result.charts, render(result))


def write_page(
    folder: Path, document: Mapping[str, object], charts: Sequence[Chart], page: str
) -> None:
    """Write results and their page, and each chart as SVG and as PNG."""
    write_file(folder / RESULTS, canonical(document))
    figures = make_folder(folder / FIGURES)
    for chart in charts:
        write_file(figures / f"{chart.name}.svg", draw(chart, format="svg"))
        write_file(figures / f"{chart.name}.png", draw(chart, format="png"))
    write_file(folder / REPORT, page.encode())


def make_folder(path: Path) -> Path:
    """The folder, made if it is not there; its parent must be."""
    if not path.parent.is_dir():
        raise FileError(str(path.parent), "must be a folder that exists")
    if path.exists() and not path.is_dir():
        raise FileError(str(path), "exists and is not a folder")
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def tables_as_json(results: Mapping[str, StudyResult]) -> str:
    """The tables of all studies, by the name of each."""
    kept = ("title", "lead", "tables", "seconds")
    documents = {name: result.to_json() for name, result in results.items()}
    plain = {name: {key: own[key] for key in kept} for name, own in documents.items()}
    return json.dumps(plain, indent=1, allow_nan=False)


def tables_as_markdown(result: StudyResult) -> str:
    """The tables as a document holds them."""
    lines = [result.lead or ""]
    for table in result.tables:
        rows = [table.columns, ["---"] * len(table.columns), *_texts(table)]
        lines += ["", f"**{table.title}**", "", *(f"| {' | '.join(row)} |" for row in rows)]
        lines += ["", table.note or ""]
    return "\n".join(lines)


def print_study(result: StudyResult, folder: Path) -> None:
    """Print the tables, and where the rest is."""
    console = page_console()
    print_plain(console, result.lead)
    for table in result.tables:
        print_titled(table, console)
    typer.echo(f"Open {folder / REPORT}, or read {folder / RESULTS}.")


def print_titled(table: Table, console: Console) -> None:
    """A table between its title and its note."""
    console.print()
    print_plain(console, table.title)
    print_table(table.columns, _texts(table), plain=True)
    print_plain(console, table.note)


def _texts(table: Table) -> list[list[str]]:
    return [[str(cell) for cell in row] for row in table.rows]
