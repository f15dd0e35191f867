"""Column options that commands share, and reading the data they describe."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from etips.data import Schema, Trajectories, load_trajectories, read_table
from etips.data.storage import MANIFEST
from etips.errors import FileError, SettingError

DataArgument = Annotated[
    Path, typer.Argument(help="A Trajectories folder, or a long CSV, CSV.gz or Parquet table.")
]
StayOption = Annotated[str | None, typer.Option(help="Column: which stay.")]
StepOption = Annotated[str | None, typer.Option(help="Column: order within the stay.")]
ActionOption = Annotated[str | None, typer.Option(help="Column: logged action, 0..K-1.")]
LossOption = Annotated[str | None, typer.Option(help="Column: loss of the logged action.")]
StaticOption = Annotated[str | None, typer.Option(help="Columns, by comma: static features.")]
PropensityOption = Annotated[str | None, typer.Option(help="Column: known propensity.")]
GroupOption = Annotated[str | None, typer.Option(help="Column: the patient.")]
LagOption = Annotated[
    int | None,
    typer.Option(min=0, max=1, help="1 (default): a decision sees earlier steps only; 0: its own."),
]


def read_data(
    data: Path,
    *,
    stay: str | None = None,
    step: str | None = None,
    action: str | None = None,
    loss: str | None = None,
    static: str | None = None,
    propensity: str | None = None,
    group: str | None = None,
    lag: int | None = None,
    like: Schema | None = None,
) -> Trajectories:
    """The data a command works on.

    Args:
        data: A folder or a table.
        stay: Column options as in `read_table`; the rest alike.
        step: See there.
        action: See there.
        loss: See there.
        static: Names, by comma.
        propensity: See there.
        group: See there.
        lag: See there; a folder knows its own.
        like: Schema of the data a policy was fitted on: fills what was left out, `lag` too.
    """
    names = [name.strip() for name in static.split(",")] if static else []
    if like is not None:
        _require_like(names, lag, like)
        lag = like.lag
    if data.is_dir():
        named = (stay, step, action, loss, static, propensity, group)
        if any(value is not None for value in named):
            raise SettingError("column options", "go with a table; a folder knows its columns")
        if not (data / MANIFEST).exists():
            raise FileError(str(data), f"holds no {MANIFEST}, so it is no Trajectories folder")
        found = load_trajectories(data)
        return found if lag is None or lag == found.lag else found.with_lag(lag)
    read = partial(
        read_table,
        data,
        stay=stay,
        step=step,
        action=action,
        loss=loss,
        propensity=propensity,
        group=group,
    )
    if like is not None:
        return read(like=like)
    return read(static=names, lag=1 if lag is None else lag)


def _require_like(static: list[str], lag: int | None, like: Schema) -> None:
    """Refuse what contradicts the data a policy was fitted on; it cannot read them otherwise."""
    rule = "must be as in the data the policy was fitted on"
    known = {name for column in like.static for name in (column, column.partition("=")[0])}
    if not set(static) <= known:
        raise SettingError("--static", rule, fix="Leave it out.")
    if lag is not None and lag != like.lag:
        raise SettingError("--lag", rule, fix="Leave it out.")
