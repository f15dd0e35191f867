"""Column options that commands share."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from etips.data.tables.columns import TableColumns

DataArgument = Annotated[
    Path, typer.Argument(help="A Trajectories folder, or a long CSV, CSV.gz or Parquet table.")
]


@dataclass(frozen=True)
class _Option:
    """How a column is named on the command line.

    Args:
        help: What it is.
        spellings: Of the option; its own name if there are none.
        most: Largest number, of an option that takes one.
    """

    help: str
    spellings: tuple[str, ...] = ()
    most: int | None = None


OPTIONS: Mapping[str, _Option] = {
    "stay": _Option("Column: which stay."),
    "step": _Option("Column: order within the stay."),
    "action": _Option("Column: logged action, 0..K-1."),
    "loss": _Option("Column: loss of the logged action."),
    "static": _Option("Columns, by comma: static features."),
    "propensity": _Option("Column: known propensity."),
    "group": _Option("Column: the patient.", ("--group", "--cluster")),
    "negative_control": _Option(
        "Column: something from before the action, which it cannot have changed."
    ),
    "missing_loss": _Option("drop (default) or weight: what becomes of an action without a loss."),
    "lag": _Option("1 (default): a decision sees earlier steps only; 0: its own.", most=1),
}
"""By field of `TableColumns`."""


def takes_columns(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each field of `TableColumns` in place of its `columns`."""
    kinds = get_type_hints(TableColumns)
    taken = {f"--{name}" for name in inspect.signature(command).parameters}
    options = [
        inspect.Parameter(
            own.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=own.default,
            annotation=Annotated[kinds[own.name], _option(OPTIONS[own.name], taken)],
        )
        for own in fields(TableColumns)
    ]

    @wraps(command)
    def call(**given: Any) -> None:  # noqa: ANN401  # whatever the command takes
        columns = TableColumns(**{option.name: given.pop(option.name) for option in options})
        command(columns=columns, **given)

    parameters: list[inspect.Parameter] = []
    for name, own in inspect.signature(command, eval_str=True).parameters.items():
        parameters += options if name == "columns" else [own.replace(kind=options[0].kind)]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {own.name: own.annotation for own in parameters}
    return call


def _option(own: _Option, taken: set[str]) -> Any:  # noqa: ANN401  # typer's
    """An option, less the spellings to which the command gives a meaning of its own.

    `--cluster` is the patient to `evaluate`, and other machines to a command that can use some.
    """
    spellings = [spelling for spelling in own.spellings if spelling not in taken]
    least = None if own.most is None else 0
    return typer.Option(*spellings, help=own.help, min=least, max=own.most)
