"""`etips check`: what a table would be read as."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from etips.checks.examination import check_table
from etips.checks.table_check import PAGE, print_check, print_next, require_free
from etips.cli.arguments import DataArgument, takes_columns
from etips.cli.console import JsonFlag, OverwriteFlag, progress_bar
from etips.data.tables.table_spec import TABLE_FILE, TableSpec
from etips.errors import FileError


@takes_columns
def check(
    data: DataArgument,
    columns: TableSpec,
    out: Annotated[
        Path | None, typer.Option(help=f"File to write; {TABLE_FILE} beside the data if left out.")
    ] = None,
    overwrite: OverwriteFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Say what a table would be read as, guess what was not said, and write it as table.toml.

    Nothing is learned. Faults are all told, and the exit code is 2 while there are some. What was
    guessed is marked so; `etips fit` uses it only if it is given the file with --table.
    """
    if data.is_dir():
        fix = "It knows its columns: go on with `etips fit`."
        raise FileError(str(data), "is a folder, not a table", fix=fix)
    place = out or data.parent / TABLE_FILE
    require_free(place, overwrite=overwrite)
    with progress_bar() as progress:
        progress("reading", 0.1)
        checked = check_table(data, columns)
    if as_json:
        typer.echo(json.dumps(checked.to_json(), indent=1, allow_nan=False))
    else:
        console = Console(width=None if Console().is_terminal else PAGE, highlight=False)
        print_check(checked, console)
        print_next(checked, console, data=str(data), place=str(place))
    try:
        checked.save(place, data=str(data), overwrite=overwrite)
    except FileError as error:
        raise FileError(error.where, error.rule, fix="Choose another --out.") from error
    if checked.faults:
        raise typer.Exit(2)
