"""Long tables in and out: one row a step, column roles by argument, rows in any order."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etips.data.decisions import NO_ACTION, Bools, Floats, Ints, MissingLoss
from etips.data.missing_loss import count_missing_losses
from etips.data.requirements import require_missing_loss
from etips.data.schema import MOST_ACTIONS, Schema
from etips.data.tables.features import (
    FeatureBlock,
    Missing,
    arrange,
    carry,
    per_stay,
    require_finite,
)
from etips.data.tables.sorting import Kind, SortedTable, read_sorted
from etips.data.tables.sources import Source, TableLike, open_source
from etips.data.tables.table_layout import lay_out
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError, require

log = logging.getLogger(__name__)


def read_table(
    table: TableLike,
    *,
    stay: str | None = None,
    step: str | None = None,
    action: str | None = None,
    loss: str | None = None,
    static: Sequence[str] = (),
    propensity: str | None = None,
    group: str | None = None,
    eligible: str | None = None,
    negative_control: str | None = None,
    missing_loss: MissingLoss = "drop",
    categorical: Sequence[str] = (),
    missing: Missing = "refuse",
    lag: int = 1,
    n_actions: int | None = None,
    actions: Sequence[str] = (),
    like: Schema | None = None,
) -> Trajectories:
    """Read a long table, a row a step in any order; every column without a part is sequential.

    Features become float32: booleans 0 and 1, categories one 0/1 column a level, `column=level`.

    Args:
        table: Path of a .csv, .csv.gz or .parquet file, or a pandas, polars or Arrow table.
        stay: Column that says which stay a row belongs to: whole numbers or text.
        step: Column that orders the rows of a stay: numbers or times.
        action: Column of the logged action, 0..K-1, null at steps without a decision; with `loss`
            left out too, the table holds questions, not a log.
        loss: Column of its loss; left out, it is not known yet, and `with_loss` computes it.
        static: Columns that do not change within a stay.
        propensity: Column of the known probability of the logged action.
        group: Column of the patient, so that splits keep a patient's stays together.
        eligible: Column of booleans, false at a step that must not become a decision.
        negative_control: Column of something from before the action, which no policy sees.
        missing_loss: "drop" an action without a loss, which then is no decision, or "weight": it
            is one, and decisions with a loss speak for it when a policy is learned or evaluated.
        categorical: Columns of text or whole numbers to read as categories; other text is refused.
        missing: "refuse" a missing feature value, or "carry" the stay's last one forward and add
            a column `name_missing`. What has no earlier value is left to the scaler.
        lag: 1 if a decision may see only earlier steps (the paper's rule), 0 if also its own.
        n_actions: Number of actions; one more than the largest if left out.
        actions: Names of the actions.
        like: Read the table as this schema wants it (that of the data a policy was fitted on): the
            same columns, levels and roles. Further columns are left alone.
    """
    columns = (stay, step, action, loss, propensity, group, eligible, negative_control)
    wanted = _Wanted(tuple(static), missing, lag, n_actions, tuple(actions), like, missing_loss)
    return _read(open_source(table), columns, tuple(categorical), wanted)


_ROLES = (
    "stay",
    "step",
    "action",
    "loss",
    "propensity",
    "group",
    "eligible",
    "negative_control",
)


@dataclass(frozen=True)
class _Wanted:
    """What the caller asked for beside the columns."""

    static: tuple[str, ...]
    missing: Missing
    lag: int
    n_actions: int | None
    actions: tuple[str, ...]
    like: Schema | None
    missing_loss: MissingLoss = "drop"

    def check(self) -> None:
        require_missing_loss(self.missing_loss)
        if self.missing not in ("refuse", "carry"):
            raise SettingError("missing", 'must be "refuse" or "carry"')
        if self.n_actions is not None and not 1 <= self.n_actions <= MOST_ACTIONS:
            raise SettingError("n_actions", f"must be in 1..{MOST_ACTIONS}")

    def as_like(self) -> "_Wanted":
        """The same with what `like` fixes, which the caller must not have named."""
        if self.like is None:
            return self
        if self != _Wanted((), "refuse", 1, None, (), self.like, self.missing_loss):
            fixed = "static, missing, lag, n_actions and actions"
            raise SettingError("like", f"fixes {fixed}", fix="Leave them out.")
        own = self.like
        missing: Missing = "carry" if own.indicators else "refuse"
        return _Wanted((), missing, own.lag, own.n_actions, own.actions, own, self.missing_loss)


def _read(
    source: Source,
    columns: tuple[str | None, ...],
    categorical: tuple[str, ...],
    wanted: _Wanted,
) -> Trajectories:
    if source.n_rows == 0:
        raise DataError(source.name, "must have at least one row")
    wanted.check()
    like = wanted.like
    roles = _complete(source, dict(zip(_ROLES, columns, strict=True)), like)
    layout = lay_out(source, roles, static=wanted.static, categorical=categorical, like=like)
    return _assemble(read_sorted(source, layout), wanted.as_like())


def _complete(
    source: Source, given: dict[str, str | None], like: Schema | None
) -> dict[str, str | None]:
    """Take roles that were left out from `like`, where the table has their column."""
    if like is not None:
        for role, column in given.items():
            usual = getattr(like.roles, role)
            if column is None and (usual in source.columns or role in ("stay", "step")):
                given[role] = usual
    for role in ("stay", "step"):
        if given[role] is None:
            raise SettingError(role, "must name a column")
    if given["action"] is None and given["loss"] is not None:
        if like is None:
            raise SettingError("loss", "needs action")
        given["loss"] = None
    if given["loss"] is None and like is not None:
        given["action"] = None
    if given["action"] is None:
        for role in ("propensity", "eligible", "negative_control"):
            if given[role] is not None and like is None:
                raise SettingError(role, "needs action")
            given[role] = None
    return given


def _assemble(table: SortedTable, wanted: _Wanted) -> Trajectories:
    sequence = _features(table, "sequence", wanted)
    static = _features(table, "static", wanted)
    action = loss = propensity = None
    n_actions = wanted.n_actions or 1
    if "action" in table.layout.present:
        action, n_actions = _actions(table, wanted.n_actions)
        loss = _losses(table, action)
        propensity = _propensities(table, action, loss, wanted)
    if wanted.like is not None:
        schema = replace(wanted.like, roles=table.layout.roles)
    else:
        schema = Schema(
            sequence=sequence.names,
            n_actions=n_actions,
            static=static.names,
            lag=wanted.lag,
            actions=wanted.actions,
            roles=table.layout.roles,
            categories={**sequence.levels, **static.levels},
            indicators=(*sequence.indicators, *static.indicators),
        )
    data = Trajectories(
        sequence=sequence.values,
        offsets=table.offsets,
        schema=schema,
        action=action,
        loss=loss,
        static=static.values,
        propensity=propensity,
        eligible=_eligible(table),
        stay=table.stays,
        step=table.step,
        group=_groups(table),
        negative_control=_controls(table),
        missing_loss=wanted.missing_loss,
    )
    if "loss" in table.layout.present and data.n_decisions == 0:
        fix = "A decision is a step with an action, a loss and a history; see lag."
        raise DataError(table.name, "must hold at least one decision", fix=fix)
    missing = count_missing_losses(data)
    if missing is not None:
        log.info("%s: %s", table.name, missing.tell())
    return data


def _features(table: SortedTable, kind: Kind, wanted: _Wanted) -> FeatureBlock:
    """The features of one kind: complete, or with what is missing carried forward and marked."""
    like = wanted.like
    block = table.features(kind, {} if like is None else like.categories)
    if like is not None:  # what was spread out before it was written belongs together too
        block = replace(block, levels=like.categories)
    marked = None if like is None else like.indicators
    may_miss = marked if marked is not None or wanted.missing == "carry" else ()
    require_finite(table.name, block, table.rows, may_miss=may_miss)
    starts = table.starts
    if kind == "static":
        block = per_stay(table.name, block, table.offsets, table.rows)
        starts = np.arange(len(block.values))  # nothing to carry from: a stay has one row
    if wanted.missing == "carry":
        block = carry(block, starts, marked)
    if like is None:
        return block
    return arrange(table.name, block, getattr(like, kind))


def _actions(table: SortedTable, n_actions: int | None) -> tuple[Ints, int]:
    place, values = table.place("action"), table.number("action")
    known = ~np.isnan(values)
    if not known.any():
        raise DataError(place, "must hold at least one action")
    whole = np.isfinite(values) & (values == np.round(values))
    require(place, "must be a whole number", whole | ~known, rows=table.rows)
    top = (n_actions or MOST_ACTIONS) - 1
    inside = (values >= 0) & (values <= top)
    require(place, f"must be in 0..{top}", inside | ~known, rows=table.rows)
    action = np.where(known, values, NO_ACTION).astype(np.int64)
    return action, n_actions or int(action.max()) + 1


def _losses(table: SortedTable, action: Ints) -> Floats:
    if "loss" not in table.layout.present:
        return np.full(action.size, np.nan)  # to be computed from the stay
    place, loss = table.place("loss"), table.number("loss")
    odd = np.isinf(loss) | (table.is_nan("loss") & (action != NO_ACTION))
    fix = "Leave the cell empty where the loss of an action is not known."
    require(place, "must be finite", ~odd, rows=table.rows, fix=fix)
    return loss


def _propensities(table: SortedTable, action: Ints, loss: Floats, wanted: _Wanted) -> Floats | None:
    """Known propensities; what stands where no decision can be is not looked at."""
    if "propensity" not in table.layout.present:
        return None
    chance, eligible = table.number("propensity"), _eligible(table)
    idle = (action == NO_ACTION) | (np.arange(action.size) - table.starts < wanted.lag)
    if "loss" in table.layout.present and wanted.missing_loss == "drop":
        idle |= np.isnan(loss)
    if eligible is not None:
        idle |= ~eligible
    valid = (chance > 0) & (chance <= 1)
    place, rule = table.place("propensity"), "must be in (0, 1] at every decision"
    require(place, rule, valid | idle, rows=table.rows)
    return np.where(valid, chance, np.nan)


def _controls(table: SortedTable) -> Floats | None:
    if "negative_control" not in table.layout.present:
        return None
    values = table.number("negative_control")
    rule = "must be finite, or empty where it is not known"
    require(table.place("negative_control"), rule, ~np.isinf(values), rows=table.rows)
    return values


def _eligible(table: SortedTable) -> Bools | None:
    if "eligible" not in table.layout.present:
        return None
    flags = table.number("eligible")
    rule = "must be true or false"
    require(table.place("eligible"), rule, (flags == 0) | (flags == 1), rows=table.rows)
    return np.asarray(flags == 1)


def _groups(table: SortedTable) -> NDArray[Any] | None:
    if "group" not in table.layout.present:
        return None
    groups, code = table.label("group")
    first = code[table.offsets[:-1]]
    same = code == np.repeat(first, np.diff(table.offsets))
    require(table.place("group"), "must not change within a stay", same, rows=table.rows)
    return groups[first]
