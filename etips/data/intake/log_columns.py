"""What was done and what came of it: the action, its names, and the loss of every step."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from etips.data.decisions import NO_ACTION, Floats, Ints
from etips.data.intake.action_labels import (
    LabelledActions,
    apply_labels,
    apply_names,
    find_actions,
    range_actions,
)
from etips.data.intake.dose_classes import (
    DoseClasses,
    action_of,
    dose_names,
    require_dose_values,
)
from etips.data.intake.outcome_reading import read_outcome
from etips.data.intake.recipe import ActionReading, Outcome
from etips.data.intake.request import Request
from etips.data.intake.treatment_cells import LabelledColumn, label_column
from etips.data.tables.arrow_columns import numbers, require_number
from etips.data.tables.sorting import SortedTable
from etips.errors import DataError, SettingError, require
from etips.notes import note

_NO_DOSE = "Treatments that are no amounts go into --action (action=...)."


@dataclass(frozen=True, eq=False)
class LogColumns:
    """Actions and losses of every step, and how they were read.

    Args:
        action: 0..K-1, -1 where there is none, shape (n_steps,).
        loss: NaN where it is not known, shape (n_steps,).
        n_actions: K.
        names: Names of the actions, K or none.
        reading: What the table calls them, where it is not 0..K-1.
        doses: Classes of doses.
        outcome: Where the loss comes from.
    """

    action: Ints
    loss: Floats
    n_actions: int
    names: tuple[str, ...] = ()
    reading: ActionReading | None = None
    doses: tuple[DoseClasses, ...] = ()
    outcome: Outcome = field(default_factory=Outcome)


def read_log(table: SortedTable, asked: Request) -> LogColumns:
    """Read the columns of the action (`asked.treatment`) and of the outcome.

    Args:
        table: The table in order, rows already put into steps.
        asked: What the caller wants; `asked.like` is the schema to read it by, if there is one.
    """
    doses: tuple[DoseClasses, ...] = ()
    if asked.dose:
        found, doses = _of_doses(table, asked)
    elif asked.like is not None:
        found = _as_before(table, asked)
    else:
        columns = _labelled(table, asked.action)
        found = find_actions(columns, n_actions=asked.n_actions, actions=asked.actions)
    action = table.in_order(found.action)
    if not (action != NO_ACTION).any():
        where = ", ".join(asked.treatment)
        raise DataError(f"{table.name}, column {where}", "must hold at least one action")
    loss, outcome = _losses(table, asked, action)
    return LogColumns(action, loss, found.n_actions, found.names, found.reading, doses, outcome)


def _labelled(table: SortedTable, names: Sequence[str]) -> list[LabelledColumn]:
    return [
        label_column(f"{table.name}, column {name}", name, table.column_cells(name))
        for name in names
    ]


def _as_before(table: SortedTable, asked: Request) -> LabelledActions:
    """Actions by the labels of the log that a policy was fitted on."""
    assert asked.like is not None
    known, names, k = asked.like.recipe, asked.like.actions, asked.like.n_actions
    columns = _labelled(table, asked.action)
    reading = None if known is None else known.action
    if reading is not None and len(columns) == len(reading.columns):
        return LabelledActions(apply_labels(columns, reading), k, names, reading)
    if len(columns) > 1:
        raise SettingError("action", "must be one column, as in the data the policy was fitted on")
    if reading is not None or (known is not None and known.doses):
        return LabelledActions(apply_names(columns[0], names), k, names, reading)
    return LabelledActions(range_actions(columns[0], k)[0], k, names)


def _of_doses(
    table: SortedTable, asked: Request
) -> tuple[LabelledActions, tuple[DoseClasses, ...]]:
    """Actions that are classes of one or two doses, the first the slow index."""
    before = None if asked.like is None or asked.like.recipe is None else asked.like.recipe.doses
    if before is not None and len(before) != len(asked.dose):
        raise SettingError("dose", "must be as in the data the policy was fitted on")
    people = _people(table)
    doses, classes = [], []
    for place, name in enumerate(asked.dose):
        where = f"{table.name}, column {name}"
        require_number(where, table.column_cells(name), fix=_NO_DOSE)
        dose = numbers(where, table.column_cells(name))
        require_dose_values(where, dose, some=before is None)
        if before is None:
            fitted = DoseClasses.fit(name, table.in_order(dose), bins=asked.bins, people=people)
            _tell_classes(where, fitted, asked.bins, gaps=bool(np.isnan(dose).any()))
        else:
            fitted = before[place]
        doses.append(fitted)
        classes.append(fitted.apply(where, dose))
    k = int(np.prod([own.n_classes for own in doses]))
    if asked.n_actions is not None and asked.n_actions != k:
        rule = f"must be the number of classes, which is {k} here"
        raise SettingError("n_actions", rule, fix="Leave it out.")
    names = asked.actions or dose_names(doses)
    action = action_of(classes, [own.n_classes for own in doses])
    return LabelledActions(action, k, names), tuple(doses)


def _people(table: SortedTable) -> Ints:
    """The patient of each step, or its stay where patients are not named."""
    if "group" in table.layout.present:
        return table.label("group")[1]
    lengths = np.diff(table.offsets)
    return np.repeat(np.arange(lengths.size), lengths)


def _tell_classes(where: str, classes: DoseClasses, bins: int, *, gaps: bool) -> None:
    if classes.n_classes < bins:
        fewer = "too many doses are alike for more"
        note(f"{where}: doses make {classes.n_classes} classes, not {bins}: {fewer}.")
    if not classes.none:
        empty = " Empty cells are no decisions: write 0 where none was given." if gaps else ""
        note(f"{where}: no dose is 0, so there is no class of none.{empty}")


def _losses(table: SortedTable, asked: Request, action: Ints) -> tuple[Floats, Outcome]:
    if "loss" not in table.layout.present:
        return np.full(action.size, np.nan), Outcome()  # to be computed from the stay
    known = None
    if asked.like is not None and asked.like.recipe is not None:
        known = asked.like.recipe.outcome
    usual = asked.like is not None and asked.loss == asked.like.roles.loss
    reward = asked.reward is not None or (usual and known is not None and known.kind == "reward")
    place, column = table.place("loss"), table.column_cells(table.layout.roles.loss)
    same = asked.like is not None and asked.columns["loss"] == asked.like.roles.loss
    kind = "reward" if reward else "loss"
    before = known if same and known is not None and known.kind == kind else None
    values, outcome = read_outcome(place, column, reward=reward, bad=asked.bad, known=before)
    loss = table.in_order(values)
    odd = np.isinf(loss) | (table.is_nan("loss") & (action != NO_ACTION))
    fix = "Leave the cell empty where the loss of an action is not known."
    require(place, "must be finite", ~odd, rows=table.rows, fix=fix)
    return loss, outcome
