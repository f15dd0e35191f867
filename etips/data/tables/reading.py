"""Long tables into Trajectories: one row a step, column roles by argument, rows in any order."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etips.data.alignment import align
from etips.data.decisions import NO_ACTION, Bools, Floats, MissingLoss
from etips.data.intake.actions import LogColumns, read_log
from etips.data.intake.features import TableFeatures, elapsed_feature, read_features
from etips.data.intake.log_remarks import remark_on_lag, remark_on_log
from etips.data.intake.step_grid import put_into_steps, step_rule
from etips.data.recipe import Missing, Recipe
from etips.data.schema import Schema
from etips.data.sizes import count_missing_losses
from etips.data.storage import MANIFEST, load_trajectories
from etips.data.tables.arrow_columns import is_text, labels, numbers, text_flags
from etips.data.tables.layout import lay_out
from etips.data.tables.sorting import SortedTable, read_sorted
from etips.data.tables.sources import Source, TableLike, open_source
from etips.data.tables.table_spec import TABLE_FILE, TableSpec
from etips.data.trajectories import Trajectories
from etips.errors import DataError, Faults, FileError, SettingError, require

log = logging.getLogger(__name__)

_OF_THE_SCHEMA = (
    *("static", "dose", "bins", "categorical", "features", "drop", "missing", "every", "combine"),
    *("n_actions", "actions", "lag"),
)


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
    arguments are described by `etips.data.tables.table_spec.TableSpec`, which has a field of the
    same name for each.
    """
    given = {name: value for name, value in locals().items() if name != "table"}
    return read_by(table, TableSpec.of_arguments(given))


def read_by(table: TableLike, spec: TableSpec) -> Trajectories:
    """Read a table by what is said of it; see `read_table`."""
    spec.require_consistent()
    source = open_source(table, spec)
    if source.n_rows == 0:
        raise DataError(source.name, "must have at least one row")
    faults = Faults()
    spec = _complete(source, spec)
    layout = lay_out(source, spec, faults)
    with faults.noting():  # what is wrong with some columns does not hide what is with others
        spec = spec.settled("step" in layout.present)
        rows = read_sorted(source.settled(layout.spelt), layout, repeats=spec.in_steps)
        rule, elapsed = step_rule(rows, spec), None
        if rule is not None:
            rows = put_into_steps(rows, rule)
        else:
            elapsed = elapsed_feature(rows, spec, source.columns)
        recipe = Recipe(elapsed=elapsed, every=rule, missing=spec.missing)
        return _assemble(rows, spec, recipe, faults)
    raise faults.all()


def _complete(source: Source, spec: TableSpec) -> TableSpec:
    """Take roles that were left out from `like`, where the table has their column."""
    columns, action, dose, like = dict(spec.columns), spec.action, spec.dose, spec.like
    if like is not None:
        recipe = like.recipe or Recipe()
        for role, column in columns.items():
            usual = getattr(like.roles, role)
            needed = role in ("stay", "step") or usual in source.columns
            if column is None and role not in recipe.numbered and needed:
                columns[role] = usual
        if not spec.treatment:
            doses = tuple(own.column for own in recipe.doses)
            actions = (like.roles.action,) if recipe.action is None else recipe.action.columns
            if doses and not like.dosed_features and set(doses) <= set(source.columns):
                dose = doses
            elif set(actions) <= set(source.columns):
                action = actions
            elif like.roles.action in source.columns:
                action = (like.roles.action,)
    if columns["stay"] is None and columns["step"] is not None:
        raise SettingError("stay", "must name a column where step does")
    if columns["loss"] is not None and not (action or dose):
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
    reward = columns.pop("loss") if spec.reward is not None else None
    roles = {"loss": None, "reward": reward, **columns}
    return spec.model_copy(update={**roles, "action": action, "dose": dose})


def _assemble(table: SortedTable, spec: TableSpec, recipe: Recipe, faults: Faults) -> Trajectories:
    """Put together what the columns of each part hold; a new role of a column is read here."""
    features, logged, group = None, None, None
    per_step: dict[str, NDArray[Any]] = {}
    with faults.noting():
        features = read_features(table, spec, recipe.elapsed)
    with faults.noting():
        if (name := table.role("eligible")) is not None:
            per_step["eligible"] = _flags(table, name)
    with faults.noting():
        if "action" in table.layout.present:
            logged = read_log(table, spec)
            per_step |= {"action": logged.action, "loss": logged.loss}
            if (name := table.role("propensity")) is not None:
                eligible = per_step.get("eligible")
                per_step["propensity"] = _propensities(table, name, logged, eligible, spec)
    with faults.noting():
        if (name := table.role("group")) is not None:
            group = _groups(table, name)
    with faults.noting():
        if (name := table.role("negative_control")) is not None:
            control = per_step["negative_control"] = table.numbers(name)
            rule = "must be finite, or empty where it is not known"
            require(table.place(name), rule, ~np.isinf(control), rows=table.rows)
    faults.raise_any()
    assert features is not None
    data = Trajectories(
        sequence=features.sequence.values,
        offsets=table.offsets,
        schema=_schema(table, spec, recipe, features, logged),
        static=features.static.values,
        stay=table.stays,
        step=table.step,
        group=group,
        missing_loss=spec.missing_loss,
        **per_step,  # type: ignore[arg-type]  # each of its own kind
    )
    if "loss" in table.layout.present and data.n_decisions == 0:
        fix = "A decision is a step with an action, a loss and a history"
        fix += "; with --lag 0 (lag=0) its own step is one." if data.lag else "."
        raise DataError(table.name, "must hold at least one decision", fix=fix)
    missing = count_missing_losses(data)
    if missing is not None:
        log.info("%s: %s", table.name, missing.tell())
    remark_on_lag(data, fixed=spec.like is not None)
    if spec.like is None:
        remark_on_log(data, column=spec.columns["loss"], reward=spec.reward is not None)
    return data


def _schema(
    table: SortedTable,
    spec: TableSpec,
    recipe: Recipe,
    features: TableFeatures,
    logged: LogColumns | None,
) -> Schema:
    layout, sequence, static = table.layout, features.sequence, features.static
    if spec.like is not None:
        known = spec.like.recipe
        if known is not None and logged is not None and "loss" in layout.present:
            known = replace(known, outcome=logged.outcome)  # another outcome may be asked about
        return replace(spec.like, roles=layout.roles, recipe=known)
    numbered = tuple(role for role in ("stay", "step") if role not in layout.present)
    recipe = replace(recipe, kinds=features.kinds, numbered=numbered)
    if logged is not None:
        recipe = replace(recipe, action=logged.reading, doses=logged.doses, outcome=logged.outcome)
    return Schema(
        sequence=sequence.names,
        n_actions=(spec.n_actions or 1) if logged is None else logged.n_actions,
        static=static.names,
        lag=spec.known_lag,
        actions=spec.actions if logged is None else logged.names,
        roles=layout.roles,
        categories={**sequence.levels, **static.levels},
        indicators=(*sequence.indicators, *static.indicators),
        recipe=recipe,
    )


def _propensities(
    table: SortedTable, name: str, logged: LogColumns, eligible: Bools | None, spec: TableSpec
) -> Floats:
    """Known propensities; what stands where no decision can be is not looked at."""
    chance, action = table.numbers(name), logged.action
    idle = (action == NO_ACTION) | (np.arange(action.size) - table.starts < spec.known_lag)
    if "loss" in table.layout.present and spec.missing_loss == "drop":
        idle |= np.isnan(logged.loss)
    if eligible is not None:
        idle |= ~eligible
    valid = (chance > 0) & (chance <= 1)
    rule = "must be in (0, 1] at every decision"
    require(table.place(name), rule, valid | idle, rows=table.rows)
    return np.where(valid, chance, np.nan)


def _flags(table: SortedTable, name: str) -> Bools:
    place, column = table.place(name), table.cells.column(name)
    flags = text_flags(place, column)[0] if is_text(column.type) else numbers(place, column)
    flags = table.in_order(flags)
    rule, fix = "must be true or false", "Yes and no, or 1 and 0, will do too."
    require(place, rule, (flags == 0) | (flags == 1), rows=table.rows, fix=fix)
    return np.asarray(flags == 1)


def _groups(table: SortedTable, name: str) -> NDArray[Any]:
    groups, code = labels(table.place(name), table.cells.column(name))
    code = table.in_order(code)
    first = code[table.offsets[:-1]]
    same = code == np.repeat(first, np.diff(table.offsets))
    fix = "Name the column of the patient: --group (group=)."
    require(table.place(name), "must not change within a stay", same, rows=table.rows, fix=fix)
    return groups[first]


def read_data(
    data: Path,
    columns: TableSpec,
    *,
    like: Schema | None = None,
    earlier: Sequence[TableSpec] = (),
) -> Trajectories:
    """A folder of Trajectories, or a table.

    Args:
        data: The folder or the table.
        columns: What was said about it.
        like: Schema of the data a policy was fitted on: fills what was left out, `lag` too.
        earlier: What was said of those data, for each policy.
    """
    lag = columns.lag
    if like is not None:
        _require_like(columns, like, earlier)
        lag, columns = like.lag, _taken_over(columns, earlier)
    if data.is_dir():
        stays = _read_folder(data, columns, lag)
        return stays if like is None else align(stays, like)
    if like is not None:
        columns = columns.but(like=like, **dict.fromkeys(_OF_THE_SCHEMA))
        if columns.negative_control in (*like.sequence, *like.static):
            # What a policy sees stays a feature; the evaluation finds it by its name.
            columns = columns.but(negative_control=None)
    return read_by(data, columns)


def as_read(columns: TableSpec, stays: Trajectories) -> TableSpec:
    """What was said, with what the data themselves settled: for the record of a run."""
    if stays.missing_loss == "weight":
        columns = columns.but(missing_loss="weight")
    return columns.but(lag=stays.lag)


def require_log(data: Path, columns: TableSpec) -> None:
    """Refuse a table to learn from if it is not said where actions and losses are."""
    if data.is_dir() or not data.exists():
        return
    missing = []
    if not columns.treatment:
        missing.append("--action (or --dose)")
    if columns.columns["loss"] is None:
        missing.append("--loss (or --reward)")
    if missing:
        fix = f"`etips check {data}` guesses which and writes them into a {TABLE_FILE}."
        raise SettingError(" and ".join(missing), "must name columns of the table", fix=fix)


def _read_folder(data: Path, columns: TableSpec, lag: int | None) -> Trajectories:
    if columns.given.keys() - {"negative_control", "missing_loss", "lag"}:
        raise SettingError("column options", "go with a table; a folder knows its columns")
    if not (data / MANIFEST).exists():
        raise FileError(str(data), f"holds no {MANIFEST}, so it is no Trajectories folder")
    stays = load_trajectories(data)
    if "missing_loss" in columns.given:
        stays = replace(stays, missing_loss=columns.missing_loss)
    return stays if lag is None or lag == stays.lag else stays.with_lag(lag)


def _taken_over(columns: TableSpec, earlier: Sequence[TableSpec]) -> TableSpec:
    """What a schema does not know: what becomes of missing losses, how files are written."""
    for name in ("decimal", "dates", "limits", "na"):
        habits = {getattr(own, name) for own in earlier}
        if name not in columns.given and len(habits) == 1:
            columns = columns.but(**{name: habits.pop() or None})
    if "missing_loss" in columns.given or not earlier:
        return columns
    fates = {own.missing_loss for own in earlier}
    if len(fates) > 1:
        rule = "is drop for one of the policies and weight for another"
        raise SettingError("--missing-loss", rule, fix="Say which is meant.")
    return columns.but(missing_loss=fates.pop())


def _require_like(columns: TableSpec, like: Schema, earlier: Sequence[TableSpec]) -> None:
    """Refuse what contradicts the data a policy was fitted on; it cannot read them otherwise."""
    known = {name for column in like.static for name in (column, column.partition("=")[0])}
    for name in [own for own in _OF_THE_SCHEMA if own in columns.given]:
        value = getattr(columns, name)
        if name == "static":
            agrees = set(value) <= known
        elif name in ("lag", "n_actions", "actions"):
            agrees = value == getattr(like, name)
        else:
            agrees = all(value == getattr(own, name) for own in earlier)
        if not agrees:
            rule = "must be as in the data the policy was fitted on"
            raise SettingError(f"--{name.replace('_', '-')}", rule, fix="Leave it out.")
