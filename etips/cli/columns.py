"""Column options that commands share, and reading the data they describe."""

import copy
import inspect
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from etips.data import Schema, Trajectories, load_trajectories, read_table
from etips.data.trajectory_writer import MANIFEST
from etips.errors import FileError, SettingError

DataArgument = Annotated[
    Path, typer.Argument(help="A Trajectories folder, or a long CSV, CSV.gz or Parquet table.")
]


@dataclass(frozen=True)
class Columns:
    """Which column of a table is what, each field an option of the command line."""

    stay: Annotated[str | None, typer.Option(help="Column: which stay.")] = None
    step: Annotated[str | None, typer.Option(help="Column: order within the stay.")] = None
    action: Annotated[str | None, typer.Option(help="Column: logged action, 0..K-1.")] = None
    loss: Annotated[str | None, typer.Option(help="Column: loss of the logged action.")] = None
    static: Annotated[str | None, typer.Option(help="Columns, by comma: static features.")] = None
    propensity: Annotated[str | None, typer.Option(help="Column: known propensity.")] = None
    group: Annotated[
        str | None, typer.Option("--group", "--cluster", help="Column: the patient.")
    ] = None
    lag: Annotated[
        int | None,
        typer.Option(
            min=0, max=1, help="1 (default): a decision sees earlier steps only; 0: its own."
        ),
    ] = None

    @property
    def named(self) -> dict[str, str]:
        """The columns that were named, by role; `lag` names none."""
        return {k: v for k, v in asdict(self).items() if k != "lag" and v is not None}

    @property
    def static_names(self) -> list[str]:
        """The static columns one by one."""
        return [name.strip() for name in self.static.split(",")] if self.static else []


def takes_columns(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Columns` in place of its argument `columns`."""
    kinds = get_type_hints(Columns, include_extras=True)
    taken = {f"--{name}" for name in inspect.signature(command).parameters}
    options = [
        inspect.Parameter(
            own.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=own.default,
            annotation=_without(kinds[own.name], taken),
        )
        for own in fields(Columns)
    ]

    @wraps(command)
    def call(**given: Any) -> None:  # noqa: ANN401  # whatever the command takes
        columns = Columns(**{option.name: given.pop(option.name) for option in options})
        command(columns=columns, **given)

    parameters: list[inspect.Parameter] = []
    for name, own in inspect.signature(command, eval_str=True).parameters.items():
        parameters += options if name == "columns" else [own.replace(kind=options[0].kind)]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {own.name: own.annotation for own in parameters}
    return call


def _without(kind: Any, taken: set[str]) -> Any:  # noqa: ANN401  # annotations
    """An option's annotation, less the spellings to which the command gives a meaning of its own.

    `--cluster` is the patient to `evaluate`, and other machines to a command that can use some.
    """
    option = copy.copy(kind.__metadata__[0])
    option.param_decls = tuple(s for s in option.param_decls or () if s not in taken)
    return Annotated[kind.__origin__, option]


def read_data(data: Path, columns: Columns, *, like: Schema | None = None) -> Trajectories:
    """The data a command works on.

    Args:
        data: A folder or a table.
        columns: What was named on the command line.
        like: Schema of the data a policy was fitted on: fills what was left out, `lag` too.
    """
    lag = columns.lag
    if like is not None:
        _require_like(columns, like)
        lag = like.lag
    if data.is_dir():
        if columns.named:
            raise SettingError("column options", "go with a table; a folder knows its columns")
        if not (data / MANIFEST).exists():
            raise FileError(str(data), f"holds no {MANIFEST}, so it is no Trajectories folder")
        found = load_trajectories(data)
        return found if lag is None or lag == found.lag else found.with_lag(lag)
    read = partial(
        read_table,
        data,
        stay=columns.stay,
        step=columns.step,
        action=columns.action,
        loss=columns.loss,
        propensity=columns.propensity,
        group=columns.group,
    )
    if like is not None:
        return read(like=like)
    return read(static=columns.static_names, lag=1 if lag is None else lag)


def _require_like(columns: Columns, like: Schema) -> None:
    """Refuse what contradicts the data a policy was fitted on; it cannot read them otherwise."""
    rule = "must be as in the data the policy was fitted on"
    known = {name for column in like.static for name in (column, column.partition("=")[0])}
    if not set(columns.static_names) <= known:
        raise SettingError("--static", rule, fix="Leave it out.")
    if columns.lag is not None and columns.lag != like.lag:
        raise SettingError("--lag", rule, fix="Leave it out.")
