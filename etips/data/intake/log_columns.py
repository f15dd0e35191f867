"""What was done and what came of it: the action, its names, and the loss of every step."""

from dataclasses import dataclass, field

import numpy as np

from etips.data.decisions import NO_ACTION, Floats, Ints
from etips.data.intake.recipe import ActionReading, DoseClasses, Outcome
from etips.data.intake.request import Request
from etips.data.schema import MOST_ACTIONS
from etips.data.tables.sorting import SortedTable
from etips.errors import DataError, require


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
        table: The table in order; `column_numbers` and `column_levels` give any column that plays
            a part, rows already put into steps.
        asked: What the caller wants; `asked.like` is the schema to read it by, if there is one.
    """
    action, n_actions = _actions(table, asked.n_actions)
    return LogColumns(action, _losses(table, action), n_actions, asked.actions)


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
