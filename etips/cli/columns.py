"""Column options that commands share."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from etips.cli.arrow_start import start_arrow
from etips.cli.console import refusals
from etips.data.tables.table_spec import LISTS, SAID, TABLE_FILE, WHOLE, TableSpec, read_columns
from etips.errors import Faults, SettingError, SeveralFaultsError, faults_of

DataArgument = Annotated[
    Path, typer.Argument(help="A table (CSV, Parquet, ...), or a Trajectories folder.")
]
TABLE = "table"
"""Option of the file that says what the other options would."""


_ALSO_SPELT = {"group": ("--group", "--cluster")}


def takes_columns(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each field of `TableSpec` in place of its `columns`.

    And `--table`, a file that says the same; options go over it. An option of the command's own
    name keeps its meaning: `--stay` is a stay to `explain`.
    """
    own_names = set(inspect.signature(command).parameters)
    taken = {f"--{name}" for name in own_names}
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=_annotation(name, taken),
        )
        for name in SAID
        if name not in own_names
    ]
    help_text = f"File that says what the options below do, as `etips check` writes {TABLE_FILE}."
    file_option = Annotated[Path | None, typer.Option(help=help_text)]
    table = inspect.Parameter(TABLE, options[0].kind, default=None, annotation=file_option)

    @wraps(command)
    def call(**given: Any) -> None:  # noqa: ANN401  # whatever the command takes
        start_arrow()
        with refusals(f"etips {command.__name__}"):
            columns = said_of_table(given.pop(TABLE), {o.name: given.pop(o.name) for o in options})
        command(columns=columns, **given)

    parameters: list[inspect.Parameter] = []
    for name, own in inspect.signature(command, eval_str=True).parameters.items():
        ours = [table, *options]
        parameters += ours if name == "columns" else [own.replace(kind=table.kind)]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {own.name: own.annotation for own in parameters}
    return call


def said_of_table(table: Path | None, given: Mapping[str, str | int | None]) -> TableSpec:
    """What the options say of a table, over what the file says.

    Args:
        table: The file, if one was named.
        given: Each option by the name of its field, None where it was left out.
    """
    try:
        columns = TableSpec.from_texts(given)
    except (SettingError, SeveralFaultsError) as error:
        faults = Faults()
        for own in faults_of(error):
            assert isinstance(own, SettingError)
            option = f"--{own.name.replace('_', '-')}"
            faults.note(SettingError(option, own.rule.replace('"', ""), fix=own.fix))
        faults.raise_any()
        raise
    return columns if table is None else columns.over(read_columns(table))


def _annotation(name: str, taken: set[str]) -> Any:  # noqa: ANN401  # typer's
    """An option, less the spellings to which the command gives a meaning of its own.

    `--cluster` is the patient to `evaluate`, and other machines to a command that can use some.
    """
    spellings = [spelling for spelling in _ALSO_SPELT.get(name, ()) if spelling not in taken]
    text = TableSpec.model_fields[name].description or ""
    if name in WHOLE:
        least, most = WHOLE[name]
        return Annotated[int | None, typer.Option(*spellings, help=text, min=least, max=most)]
    if name in LISTS or name == "combine":
        text = f"{text} Comma-separated."
    return Annotated[str | None, typer.Option(*spellings, help=text)]
