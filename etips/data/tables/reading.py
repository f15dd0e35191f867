"""Long tables in and out: one row a step, column roles by argument, rows in any order."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etips.data.decisions import NO_ACTION, Bools, Floats, MissingLoss
from etips.data.intake.feature_reading import TableFeatures, elapsed_feature, read_features
from etips.data.intake.log_columns import LogColumns, read_log
from etips.data.intake.log_remarks import remark_on_log
from etips.data.intake.recipe import Missing, Recipe
from etips.data.intake.remarks import tell_lag
from etips.data.intake.request import Request
from etips.data.intake.step_grid import put_into_steps, step_rule
from etips.data.intake.text_columns import text_flags
from etips.data.missing_loss import count_missing_losses
from etips.data.schema import Schema
from etips.data.tables.arrow_columns import is_text, numbers
from etips.data.tables.sorting import SortedTable, read_sorted
from etips.data.tables.sources import Source, TableLike, open_source
from etips.data.tables.table_layout import Layout, lay_out
from etips.data.trajectories import Trajectories
from etips.errors import DataError, Faults, SettingError, require

log = logging.getLogger(__name__)


def read_table(
    table: TableLike,
    *,
    stay: str | None = None,
    step: str | None = None,
    action: str | Sequence[str] | None = None,
    loss: str | None = None,
    reward: str | None = None,
    bad: str | int | Sequence[str | int] = (),
    dose: str | Sequence[str] = (),
    bins: int = 5,
    static: Sequence[str] = (),
    propensity: str | None = None,
    group: str | None = None,
    eligible: str | None = None,
    negative_control: str | None = None,
    missing_loss: MissingLoss = "drop",
    categorical: Sequence[str] = (),
    features: Sequence[str] = (),
    drop: Sequence[str] = (),
    missing: Missing = "carry",
    every: str | None = None,
    combine: Mapping[str, str] | None = None,
    lag: int | None = None,
    n_actions: int | None = None,
    actions: Sequence[str] = (),
    decimal: str | None = None,
    dates: str | None = None,
    limits: str | None = None,
    na: str | int | Sequence[str | int] = (),
    like: Schema | None = None,
) -> Trajectories:
    """Read a long table, a row a step in any order; every column without a part is sequential.

    Features become float32: booleans 0 and 1, categories one 0/1 column a level, `column=level`.

    `table` is the path of a text with fields (.csv, .tsv, .txt, packed or not), of a .parquet,
    .feather or .xlsx file (`file.xlsx#Sheet`), or a pandas, polars or Arrow table. The other
    arguments are described by `etips.data.intake.request.Request`, which has a field of the same
    name for each.
    """
    given = {name: value for name, value in locals().items() if name != "table"}
    asked = Request.of(**given)
    own = open_source(table, decimal=decimal, dates=dates, limits=limits, na=asked.na)
    return _read(own, asked)


def _read(source: Source, asked: Request) -> Trajectories:
    if source.n_rows == 0:
        raise DataError(source.name, "must have at least one row")
    faults, data = Faults(), None
    asked = _complete(source, asked)
    layout = lay_out(source, asked, faults)
    with faults.noting():  # what is wrong with some columns does not hide what is with others
        data = _in_order(source, asked, layout, faults)
    faults.raise_any()
    assert data is not None
    return data


def _in_order(source: Source, asked: Request, layout: Layout, faults: Faults) -> Trajectories:
    asked = asked.as_like("step" in layout.present)
    table = read_sorted(source.settled(layout.spelt), layout, repeats=asked.in_steps)
    rule, elapsed = step_rule(table, asked), None
    if rule is not None:
        table = put_into_steps(table, rule)
    else:
        elapsed = elapsed_feature(table, asked, source.columns)
    recipe = Recipe(elapsed=elapsed, every=rule, missing=asked.missing)
    return _assemble(table, asked, recipe, faults)


def _complete(source: Source, asked: Request) -> Request:
    """Take roles that were left out from `like`, where the table has their column."""
    columns, action, dose, like = dict(asked.columns), asked.action, asked.dose, asked.like
    if like is not None:
        numbered = () if like.recipe is None else like.recipe.numbered
        for role, column in columns.items():
            usual = getattr(like.roles, role)
            needed = role in ("stay", "step")
            if column is None and role not in numbered and (usual in source.columns or needed):
                columns[role] = usual
        if not asked.treatment:
            action, dose = _treatment(source, like)
    if columns["stay"] is None and columns["step"] is not None:
        raise SettingError("stay", "must name a column where step does")
    if not (action or dose) and columns["loss"] is not None:
        if like is None:
            raise SettingError("loss", "needs action")
        columns["loss"] = None
    if columns["loss"] is None and like is not None:
        action = dose = ()
    if not (action or dose):
        for role in ("propensity", "eligible", "negative_control"):
            if columns[role] is not None and like is None:
                raise SettingError(role, "needs action")
            columns[role] = None
    reward = columns.pop("loss") if asked.reward is not None else None
    return replace(asked, **{"loss": None, "reward": reward, **columns}, action=action, dose=dose)  # type: ignore[arg-type]


def _treatment(source: Source, like: Schema) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns of the action and of doses that the log had, as far as this table has them."""
    recipe = like.recipe or Recipe()
    dose = tuple(own.column for own in recipe.doses)
    if dose and not like.dosed_features and set(dose) <= set(source.columns):
        return (), dose
    if recipe.action is not None and set(recipe.action.columns) <= set(source.columns):
        return recipe.action.columns, ()
    return ((like.roles.action,) if like.roles.action in source.columns else ()), ()


def _assemble(table: SortedTable, asked: Request, recipe: Recipe, faults: Faults) -> Trajectories:
    logged, propensity, eligible, group, control = None, None, None, None, None
    with faults.noting():
        features = read_features(table, asked, recipe.elapsed)
    with faults.noting():
        eligible = _eligible(table)
    with faults.noting():
        if "action" in table.layout.present:
            logged = read_log(table, asked)
            propensity = _propensities(table, logged, eligible, asked)
    with faults.noting():
        group = _groups(table)
    with faults.noting():
        control = _controls(table)
    faults.raise_any()
    data = Trajectories(
        sequence=features.sequence.values,
        offsets=table.offsets,
        schema=_schema(table, asked, recipe, features, logged),
        action=None if logged is None else logged.action,
        loss=None if logged is None else logged.loss,
        static=features.static.values,
        propensity=propensity,
        eligible=eligible,
        stay=table.stays,
        step=table.step,
        group=group,
        negative_control=control,
        missing_loss=asked.missing_loss,
    )
    if "loss" in table.layout.present and data.n_decisions == 0:
        fix = "A decision is a step with an action, a loss and a history"
        fix += "; with --lag 0 (lag=0) its own step is one." if data.lag else "."
        raise DataError(table.name, "must hold at least one decision", fix=fix)
    missing = count_missing_losses(data)
    if missing is not None:
        log.info("%s: %s", table.name, missing.tell())
    tell_lag(data, fixed=asked.like is not None)
    if asked.like is None:
        reward = asked.reward is not None
        remark_on_log(data, column=asked.columns["loss"], reward=reward)
    return data


def _schema(
    table: SortedTable,
    asked: Request,
    recipe: Recipe,
    features: TableFeatures,
    logged: LogColumns | None,
) -> Schema:
    layout = table.layout
    if asked.like is not None:
        known = asked.like.recipe
        if known is not None and logged is not None and "loss" in layout.present:
            known = replace(known, outcome=logged.outcome)  # another outcome may be asked about
        return replace(asked.like, roles=layout.roles, recipe=known)
    n_actions, names = asked.n_actions or 1, asked.actions
    numbered = tuple(role for role in ("stay", "step") if role not in layout.present)
    recipe = replace(recipe, kinds=features.kinds, numbered=numbered)
    if logged is not None:
        n_actions, names = logged.n_actions, logged.names
        recipe = replace(recipe, action=logged.reading, doses=logged.doses, outcome=logged.outcome)
    sequence, static = features.sequence, features.static
    return Schema(
        sequence=sequence.names,
        n_actions=n_actions,
        static=static.names,
        lag=asked.known_lag,
        actions=names,
        roles=layout.roles,
        categories={**sequence.levels, **static.levels},
        indicators=(*sequence.indicators, *static.indicators),
        recipe=recipe,
    )


def _propensities(
    table: SortedTable, logged: LogColumns, eligible: Bools | None, asked: Request
) -> Floats | None:
    """Known propensities; what stands where no decision can be is not looked at."""
    if "propensity" not in table.layout.present:
        return None
    chance, action = table.number("propensity"), logged.action
    idle = (action == NO_ACTION) | (np.arange(action.size) - table.starts < asked.known_lag)
    if "loss" in table.layout.present and asked.missing_loss == "drop":
        idle |= np.isnan(logged.loss)
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
    place, column = table.place("eligible"), table.column_cells(table.layout.roles.eligible)
    flags = text_flags(place, column)[0] if is_text(column.type) else numbers(place, column)
    flags = table.in_order(flags)
    rule, fix = "must be true or false", "Yes and no, or 1 and 0, will do too."
    require(place, rule, (flags == 0) | (flags == 1), rows=table.rows, fix=fix)
    return np.asarray(flags == 1)


def _groups(table: SortedTable) -> NDArray[Any] | None:
    if "group" not in table.layout.present:
        return None
    groups, code = table.label("group")
    first = code[table.offsets[:-1]]
    same = code == np.repeat(first, np.diff(table.offsets))
    fix = "Name the column of the patient: --group (group=)."
    require(table.place("group"), "must not change within a stay", same, rows=table.rows, fix=fix)
    return groups[first]
