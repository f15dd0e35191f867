"""What was done and what came of it: the action, its names, and the loss of every step."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from etips.data.decisions import NO_ACTION, Floats, Ints
from etips.data.intake.action_labels import (
    LabelledActions,
    LabelledColumn,
    apply_labels,
    apply_names,
    find_actions,
    label_column,
    range_actions,
)
from etips.data.intake.dose_classes import (
    DoseClasses,
    action_of,
    dose_names,
    require_dose_values,
)
from etips.data.intake.outcomes import read_outcome
from etips.data.recipe import ActionReading, Outcome
from etips.data.tables.arrow_columns import numbers, require_number
from etips.data.tables.sorting import SortedTable
from etips.data.tables.table_spec import TableSpec
from etips.errors import DataError, SettingError, require
from etips.notes import note

_NO_DOSE = "Treatments that are no amounts go into --action (action=...)."


@dataclass(frozen=True, eq=False)
class LogColumns:
    """Actions and losses of every step, and how they were read."""

    action: Ints
    loss: Floats
    n_actions: int
    names: tuple[str, ...] = ()
    reading: ActionReading | None = None
    doses: tuple[DoseClasses, ...] = ()
    outcome: Outcome = field(default_factory=Outcome)


def read_log(table: SortedTable, spec: TableSpec) -> LogColumns:
    """Read the columns of the action (`spec.treatment`) and of the outcome."""
    doses: tuple[DoseClasses, ...] = ()
    if spec.dose:
        found, doses = _of_doses(table, spec)
    elif spec.like is not None:
        found = _as_before(table, spec)
    else:
        columns = _labelled(table, spec.action)
        found = find_actions(columns, n_actions=spec.n_actions, actions=spec.actions)
    action = table.in_order(found.action)
    if not (action != NO_ACTION).any():
        where = ", ".join(spec.treatment)
        raise DataError(f"{table.name}, column {where}", "must hold at least one action")
    loss, outcome = _losses(table, spec, action)
    return LogColumns(action, loss, found.n_actions, found.names, found.reading, doses, outcome)


def _labelled(table: SortedTable, names: Sequence[str]) -> list[LabelledColumn]:
    return [
        label_column(f"{table.name}, column {name}", name, table.column_cells(name))
        for name in names
    ]


def _as_before(table: SortedTable, spec: TableSpec) -> LabelledActions:
    """Actions by the labels of the log that a policy was fitted on."""
    assert spec.like is not None
    known, names, k = spec.like.recipe, spec.like.actions, spec.like.n_actions
    columns = _labelled(table, spec.action)
    reading = None if known is None else known.action
    if reading is not None and len(columns) == len(reading.columns):
        return LabelledActions(apply_labels(columns, reading), k, names, reading)
    if len(columns) > 1:
        raise SettingError("action", "must be one column, as in the data the policy was fitted on")
    if reading is not None or (known is not None and known.doses):
        return LabelledActions(apply_names(columns[0], names), k, names, reading)
    return LabelledActions(range_actions(columns[0], k)[0], k, names)


def _of_doses(
    table: SortedTable, spec: TableSpec
) -> tuple[LabelledActions, tuple[DoseClasses, ...]]:
    """Actions that are classes of one or two doses, the first the slow index."""
    before = None if spec.like is None or spec.like.recipe is None else spec.like.recipe.doses
    if before is not None and len(before) != len(spec.dose):
        raise SettingError("dose", "must be as in the data the policy was fitted on")
    people = np.repeat(np.arange(len(table.stays)), np.diff(table.offsets))
    if "group" in table.layout.present:
        people = table.label("group")[1]
    doses, classes = [], []
    for place, name in enumerate(spec.dose):
        where = f"{table.name}, column {name}"
        require_number(where, table.column_cells(name), fix=_NO_DOSE)
        dose = numbers(where, table.column_cells(name))
        require_dose_values(where, dose, some=before is None)
        if before is None:
            fitted = DoseClasses.fit(name, table.in_order(dose), bins=spec.bins, people=people)
            if fitted.n_classes < spec.bins:
                fewer = f"{fitted.n_classes} classes, not {spec.bins}: too many doses are alike"
                note(f"{where}: doses make {fewer} for more.")
            if not fitted.none:
                gaps = bool(np.isnan(dose).any())
                empty = (
                    " Empty cells are no decisions: write 0 where none was given." if gaps else ""
                )
                note(f"{where}: no dose is 0, so there is no class of none.{empty}")
        else:
            fitted = before[place]
        doses.append(fitted)
        classes.append(fitted.apply(where, dose))
    k = int(np.prod([own.n_classes for own in doses]))
    if spec.n_actions is not None and spec.n_actions != k:
        rule = f"must be the number of classes, which is {k} here"
        raise SettingError("n_actions", rule, fix="Leave it out.")
    names = spec.actions or dose_names(doses)
    action = action_of(classes, [own.n_classes for own in doses])
    return LabelledActions(action, k, names), tuple(doses)


def _losses(table: SortedTable, spec: TableSpec, action: Ints) -> tuple[Floats, Outcome]:
    if "loss" not in table.layout.present:
        return np.full(action.size, np.nan), Outcome()  # to be computed from the stay
    known = None
    if spec.like is not None and spec.like.recipe is not None:
        known = spec.like.recipe.outcome
    usual = spec.like is not None and spec.loss == spec.like.roles.loss
    reward = spec.reward is not None or (usual and known is not None and known.kind == "reward")
    place, column = table.place("loss"), table.column_cells(table.layout.roles.loss)
    same = spec.like is not None and spec.columns["loss"] == spec.like.roles.loss
    kind = "reward" if reward else "loss"
    before = known if same and known is not None and known.kind == kind else None
    values, outcome = read_outcome(place, column, reward=reward, bad=spec.bad, known=before)
    loss = table.in_order(values)
    odd = np.isinf(loss) | (table.is_nan("loss") & (action != NO_ACTION))
    fix = "Leave the cell empty where the loss of an action is not known."
    require(place, "must be finite", ~odd, rows=table.rows, fix=fix)
    return loss, outcome
