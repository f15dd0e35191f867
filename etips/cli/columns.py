"""Column options that commands share."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from etips.cli.arrow_start import start_arrow
from etips.cli.console import refusals
from etips.data.tables.columns import TABLE_FILE, TableColumns, read_columns
from etips.data.tables.table_fields import KINDS, FieldKind
from etips.errors import Faults, SettingError, SeveralFaultsError, faults_of

DataArgument = Annotated[
    Path, typer.Argument(help="A table (CSV, Parquet, ...), or a Trajectories folder.")
]
TABLE = "table"
"""Option of the file that says what the other options would."""


@dataclass(frozen=True)
class _Option:
    """How a column is named on the command line.

    Args:
        help: What it is.
        spellings: Of the option; its own name if there are none.
    """

    help: str
    spellings: tuple[str, ...] = ()


OPTIONS: Mapping[str, _Option] = {
    "stay": _Option("Column: which stay. Left out, every row is a patient."),
    "step": _Option("Column: order within the stay, a number or a time."),
    "action": _Option("Column of the treatment; several by comma: their combination."),
    "dose": _Option("One or two columns of doses, by comma, in place of --action."),
    "bins": _Option("Classes of each dose, none among them; 5 if left out."),
    "loss": _Option("Column: loss of the logged action; lower is better."),
    "reward": _Option("Column: the same where more is better."),
    "bad": _Option("Values of --loss, by comma, that are the harm: 1 there, 0 elsewhere."),
    "static": _Option("Columns, by comma: static features."),
    "propensity": _Option("Column: known propensity."),
    "group": _Option("Column: the patient.", ("--group", "--cluster")),
    "eligible": _Option("Column: may the step become a decision?"),
    "negative_control": _Option(
        "Column: something from before the action, which it cannot have changed."
    ),
    "missing_loss": _Option("drop (default) or weight: what becomes of an action without a loss."),
    "categorical": _Option("Columns, by comma: numbers that are codes of categories."),
    "features": _Option("Columns, by comma, * allowed: the only features."),
    "drop": _Option("Columns, by comma, * allowed: nobody may see them."),
    "missing": _Option("carry (default) or refuse: what becomes of missing values."),
    "every": _Option("Length of a step, such as 4h: time stamps become steps."),
    "combine": _Option(
        "column=last|first|mean|sum|min|max, by comma: rows of one step become one."
    ),
    "n_actions": _Option("How many actions there are; those that occur if left out."),
    "actions": _Option("Names of the actions, by comma."),
    "lag": _Option("1: a decision sees earlier steps only (default with --step); 0: its own."),
    "decimal": _Option(", or . before a fraction, where the file could be meant either way."),
    "dates": _Option(
        "dmy or mdy: what stands first in dates, where they could be meant either way."
    ),
    "limits": _Option("value: read <5 as 5 and 85+ as 85; refuse (default)."),
    "na": _Option("Cells, by comma, that mean missing, such as 999 or 'not done'."),
}
"""By field of `TableColumns`."""


def takes_columns(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each field of `TableColumns` in place of its `columns`.

    And `--table`, a file that says the same; options go over it. An option of the command's own
    name keeps its meaning: `--stay` is a stay to `explain`.
    """
    own_names = set(inspect.signature(command).parameters)
    taken = {f"--{name}" for name in own_names}
    options = [
        inspect.Parameter(
            own.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=_annotation(OPTIONS[own.name], KINDS[own.name], taken),
        )
        for own in fields(TableColumns)
        if own.name not in own_names
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


def said_of_table(table: Path | None, given: Mapping[str, str | int | None]) -> TableColumns:
    """What the options say of a table, over what the file says.

    Args:
        table: The file, if one was named.
        given: Each option by the name of its field, None where it was left out.
    """
    try:
        columns = TableColumns.from_texts(given)
    except (SettingError, SeveralFaultsError) as error:
        faults = Faults()
        for own in faults_of(error):
            assert isinstance(own, SettingError)
            option = f"--{own.name.replace('_', '-')}"
            faults.note(SettingError(option, own.rule.replace('"', ""), fix=own.fix))
        faults.raise_any()
        raise
    return columns if table is None else columns.over(read_columns(table))


def _annotation(own: _Option, kind: FieldKind, taken: set[str]) -> Any:  # noqa: ANN401  # typer's
    """An option, less the spellings to which the command gives a meaning of its own.

    `--cluster` is the patient to `evaluate`, and other machines to a command that can use some.
    """
    spellings = [spelling for spelling in own.spellings if spelling not in taken]
    if kind.shape == "whole":
        number = typer.Option(*spellings, help=own.help, min=kind.least, max=kind.most)
        return Annotated[int | None, number]
    return Annotated[str | None, typer.Option(*spellings, help=own.help)]
