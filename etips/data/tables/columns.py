"""Which column of a table is what, and the data that are read by it."""

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

from etips.data.decisions import MissingLoss
from etips.data.requirements import require_missing_loss
from etips.data.schema import Schema
from etips.data.tables.reading import read_table
from etips.data.trajectories import Trajectories
from etips.data.trajectory_reader import load_trajectories
from etips.data.trajectory_writer import MANIFEST
from etips.errors import FileError, SettingError


@dataclass(frozen=True)
class TableColumns:
    """Which column of a long table is what; None where nobody said.

    Args:
        stay: Which stay.
        step: Order within the stay.
        action: Logged action, 0..K-1.
        loss: Loss of the logged action.
        static: Static features, by comma.
        propensity: Known propensity.
        group: The patient.
        negative_control: Something measured before the action, which no policy sees.
        missing_loss: No column: "drop" or "weight" an action without a loss.
        lag: No column: 1, a decision sees earlier steps only; 0, its own.
    """

    stay: str | None = None
    step: str | None = None
    action: str | None = None
    loss: str | None = None
    static: str | None = None
    propensity: str | None = None
    group: str | None = None
    negative_control: str | None = None
    missing_loss: str | None = None
    lag: int | None = None

    @property
    def named(self) -> dict[str, str]:
        """The columns that were named, by role."""
        given = {k: v for k, v in asdict(self).items() if v is not None}
        return {k: v for k, v in given.items() if k not in ("lag", "missing_loss")}

    @property
    def static_names(self) -> list[str]:
        """The static columns one by one."""
        return [name.strip() for name in self.static.split(",")] if self.static else []


def read_data(data: Path, columns: TableColumns, *, like: Schema | None = None) -> Trajectories:
    """A folder of Trajectories, or a long table.

    Args:
        data: The folder or the table.
        columns: What was said about it.
        like: Schema of the data a policy was fitted on: fills what was left out, `lag` too.
    """
    lag = columns.lag
    if like is not None:
        _require_like(columns, like)
        lag = like.lag
    if data.is_dir():
        return _read_folder(data, columns, lag)
    control = columns.negative_control
    if like is not None and control in (*like.sequence, *like.static):
        control = None  # what a policy sees stays a feature; the evaluation finds it by its name
    read = partial(
        read_table,
        data,
        stay=columns.stay,
        step=columns.step,
        action=columns.action,
        loss=columns.loss,
        propensity=columns.propensity,
        group=columns.group,
        negative_control=control,
        missing_loss=_missing_loss(columns),
    )
    if like is not None:
        return read(like=like)
    return read(static=columns.static_names, lag=1 if lag is None else lag)


def require_log(data: Path, columns: TableColumns) -> None:
    """Refuse a table to learn from of which nobody said where actions and losses are."""
    if not data.is_dir() and data.exists() and (columns.action is None or columns.loss is None):
        raise SettingError("--action, --loss", "must name columns: a table needs both")


def _missing_loss(columns: TableColumns) -> MissingLoss:
    given = columns.missing_loss or "drop"
    require_missing_loss(given)
    return cast(MissingLoss, given)


def _read_folder(data: Path, columns: TableColumns, lag: int | None) -> Trajectories:
    if columns.named.keys() - {"negative_control"}:
        raise SettingError("column options", "go with a table; a folder knows its columns")
    if not (data / MANIFEST).exists():
        raise FileError(str(data), f"holds no {MANIFEST}, so it is no Trajectories folder")
    stays = load_trajectories(data)
    if columns.missing_loss is not None:
        stays = replace(stays, missing_loss=_missing_loss(columns))
    return stays if lag is None or lag == stays.lag else stays.with_lag(lag)


def _require_like(columns: TableColumns, like: Schema) -> None:
    """Refuse what contradicts the data a policy was fitted on; it cannot read them otherwise."""
    rule = "must be as in the data the policy was fitted on"
    known = {name for column in like.static for name in (column, column.partition("=")[0])}
    if not set(columns.static_names) <= known:
        raise SettingError("--static", rule, fix="Leave it out.")
    if columns.lag is not None and columns.lag != like.lag:
        raise SettingError("--lag", rule, fix="Leave it out.")
