"""A study as files and on the screen: what `etips reproduce` and `etips demo` write and print."""

import json
from collections.abc import Mapping
from pathlib import Path

import typer
from rich.console import Console

from etips.cli.terminal_tables import print_table
from etips.errors import FileError
from etips.files.json_documents import canonical
from etips.files.writing import write_file
from etips.report.figures import draw
from etips.report.page import render
from etips.results.study_result import StudyResult
from etips.results.study_result import Table as StudyTable
from etips.runs.file_names import RESULTS

REPORT, FIGURES = "report.html", "figures"
"""What a study's folder holds beside its results."""

_PAGE = 100
"""Columns of text that is not printed on a terminal."""


def write_study(result: StudyResult, folder: Path) -> None:
    """Write results.json, figures/NAME.svg and .png, and report.html."""
    write_file(folder / RESULTS, canonical(result.to_json()))
    figures = make_folder(folder / FIGURES)
    for chart in result.charts:
        write_file(figures / f"{chart.name}.svg", draw(chart, format="svg"))
        write_file(figures / f"{chart.name}.png", draw(chart, format="png"))
    write_file(folder / REPORT, render(result).encode())


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
    for entry in result.tables:
        rows = [entry.columns, ["---"] * len(entry.columns), *_texts(entry)]
        lines += ["", f"**{entry.title}**", "", *(f"| {' | '.join(row)} |" for row in rows)]
        lines += ["", entry.note or ""]
    return "\n".join(lines)


def _texts(entry: StudyTable) -> list[list[str]]:
    return [[str(cell) for cell in row] for row in entry.rows]


def print_study(result: StudyResult, folder: Path) -> None:
    """Print the tables, and where the rest is."""
    console = Console() if Console().is_terminal else Console(width=_PAGE)
    console.print(result.lead, highlight=False, markup=False)
    for entry in result.tables:
        console.print()
        console.print(entry.title, highlight=False, markup=False)
        print_table(entry.columns, _texts(entry), look="plain")
        console.print(entry.note, highlight=False, markup=False)
    typer.echo(f"Open {folder / REPORT}, or read {folder / RESULTS}.")
