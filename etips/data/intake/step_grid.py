"""Rows at any time put into steps of equal length, counted from each stay's first row."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from etips.data.coded import Floats32
from etips.data.decisions import Bools, Floats, Ints
from etips.data.intake.dose_classes import is_rate
from etips.data.recipe import Combine, StepRule
from etips.data.tables.arrow_columns import numbers
from etips.data.tables.sorting import Kind, SortedTable, place_of
from etips.data.tables.table_spec import TableSpec
from etips.disclosure import FEW, are_few
from etips.errors import DataError, SettingError, require
from etips.notes import note

_UNITS = {"s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
_UNITS |= {"hr": 3600, "d": 86400, "day": 86400, "w": 604800, "week": 604800}
_EVERY = re.compile(r"^\s*(\d+\.?\d*|\.\d+)?\s*([a-z]*?)s?\s*$", re.IGNORECASE)
_MOST_STEPS = 100  # a row, on average: more is a slip, of a date or of the length
_SECOND = np.timedelta64(10**6, "us")


def parse_every(every: str) -> tuple[float, bool]:
    """Length of a step, and whether it is one of time (then in seconds) or a bare number."""
    found = _EVERY.match(every)
    amount, unit = (found[1], found[2].lower()) if found else (None, "?")
    unit = "s" if found and not unit and every.strip().lower().endswith("s") else unit
    if (unit and unit not in _UNITS) or not (amount or unit) or float(amount or 1) <= 0:
        raise SettingError("every", "must be a length of time", fix="Such as 4h, 30min or 1d.")
    return float(amount or 1) * _UNITS.get(unit, 1), bool(unit)


def step_rule(table: SortedTable, spec: TableSpec) -> StepRule | None:
    """The rule that the table is to be put into steps by, if there is one."""
    clock = bool(np.issubdtype(table.step.dtype, np.datetime64))
    if spec.like is not None:
        known = None if spec.like.recipe is None else spec.like.recipe.every
        if known is not None and known.clock and not clock:
            _require_steps(table, known)
            return None
        return known
    if spec.every is None:
        if spec.combine:
            raise SettingError("combine", "needs every", fix="Such as --every 4h.")
        return None
    length, of_time = parse_every(spec.every)
    if "step" not in table.layout.present:
        raise SettingError("every", "needs step", fix="Name the column of times: --step (step=).")
    if clock != of_time:
        rule = "must have a unit where the steps are times, and none where they are numbers"
        raise SettingError("every", rule, fix="Such as 4h, or 4.")
    return StepRule(spec.every.strip(), length, clock, _combine(table, spec))


def _require_steps(table: SortedTable, rule: StepRule) -> None:
    """Refuse numbers where times are due, unless they are steps, as `write_table` writes them."""
    counted = np.arange(len(table.step)) - table.starts
    told = f"must hold times, or steps of {rule.every} counted from 0"
    require(table.place("step"), told, table.step == counted, rows=table.rows)


def _combine(table: SortedTable, spec: TableSpec) -> dict[str, Combine]:
    """How to combine each column that does not keep its last value; doses add up, rates do not."""
    chosen: dict[str, Combine] = {name: "max" if is_rate(name) else "sum" for name in spec.dose}
    layout = table.layout
    known = {*layout.sequence, *layout.treatment, *layout.role_columns().values()}
    for name, how in spec.combine.items():
        if how not in get_args(Combine):
            raise SettingError(f"combine {name}", f"must be one of {', '.join(get_args(Combine))}")
        if name not in known:
            raise SettingError(f"combine {name}", "is no sequential feature and plays no part")
        if name in layout.categorical and how not in ("last", "first"):
            raise SettingError(f"combine {name}", "is a category: last or first")
        chosen[name] = cast(Combine, how)
    return {name: how for name, how in chosen.items() if how != "last"}


def put_into_steps(table: SortedTable, rule: StepRule) -> SortedTable:
    """One row a step from each stay's first row to its last; a step without a row is empty."""
    since = table.step - table.step[table.starts]
    elapsed = since / _SECOND if rule.clock else since.astype(np.float64)
    number = np.floor(elapsed / rule.length + 1e-9).astype(np.int64)  # within the stay
    lengths = number[table.offsets[1:] - 1] + 1
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    if offsets[-1] > _MOST_STEPS * len(number):
        fix = f"Choose a longer --every than {rule.every}, or correct the times."
        raise DataError(table.place("step"), "would make far more steps than rows", fix=fix)
    target = np.repeat(offsets[:-1], np.diff(table.offsets)) + number
    filled = np.zeros(offsets[-1], bool)
    filled[target] = True
    _tell(table, rule, filled)
    grid = _Grid(target, filled, table.starts, np.repeat(table.offsets[:-1], lengths))
    _tell_actions(table, grid, rule)
    own = np.arange(len(number)) if table.rows is None else table.rows
    return replace(
        table,
        cells=_cells(table, grid, rule.combine),
        matrices={kind: _matrix(table, kind, grid, rule.combine) for kind in table.matrices},
        offsets=offsets,
        step=np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths),
        rows=own[grid.before],
        order=None,
    )


class _Grid:
    """Which step each row falls into, and what stands there.

    Args:
        target: Step of each row, shape (n_rows,), never falling.
        filled: Whether a step has a row, shape (n_steps,).
        starts: First row of each row's stay.
        first: First row of each step's stay, shape (n_steps,).
    """

    def __init__(self, target: Ints, filled: Bools, starts: Ints, first: Ints) -> None:
        self.target, self.filled, self.starts, self.first = target, filled, starts, first
        self.begin = np.flatnonzero(np.concatenate([[True], target[1:] != target[:-1]]))
        self.used = target[self.begin]
        last = np.zeros(filled.size, np.int64)
        last[self.used] = np.append(self.begin[1:], target.size) - 1
        self.before = np.maximum.accumulate(last)  # last row of the step, or of one before

    def chosen(self, there: Bools, how: Combine) -> Ints:
        """Row that speaks for each step, -1 where none has a value."""
        row = np.arange(there.size)
        found = np.full(self.filled.size, -1)
        if how == "first":
            own = np.minimum.reduceat(np.where(there, row, there.size), self.begin)
            found[self.used] = np.where(own < there.size, own, -1)
        else:
            found[self.used] = np.maximum.reduceat(np.where(there, row, -1), self.begin)
        return found

    def combined(self, values: Floats, how: Combine) -> Floats:
        """Numbers of each step put together; NaN where none has a value."""
        there = ~np.isnan(values)
        if how in ("last", "first"):
            row = self.chosen(there, how)
            return np.where(row >= 0, values[row], np.nan)
        count = np.bincount(self.target[there], minlength=self.filled.size)
        if how in ("sum", "mean"):
            total = np.bincount(self.target[there], values[there], minlength=self.filled.size)
            share = total / np.maximum(count, 1) if how == "mean" else total
            return np.where(count > 0, share, np.nan)
        found = np.full(self.filled.size, np.nan)
        reduce, none = (np.minimum, np.inf) if how == "min" else (np.maximum, -np.inf)
        found[self.used] = reduce.reduceat(np.where(there, values, none), self.begin)
        return np.where(count > 0, found, np.nan)


def _matrix(
    table: SortedTable, kind: Kind, grid: _Grid, combine: Mapping[str, Combine]
) -> Floats32:
    values = table.matrices[kind]
    if kind == "static":  # the same on every row, so that an empty step has it too
        return values[grid.before]
    names = table.layout.numeric(table.layout.sequence)
    made = np.empty((grid.filled.size, len(names)), np.float32)
    for position, name in enumerate(names):
        column = values[:, position].astype(np.float64)
        made[:, position] = grid.combined(column, combine.get(name, "last"))
    return made


def _cells(table: SortedTable, grid: _Grid, combine: Mapping[str, Combine]) -> pa.Table:
    roles, layout = table.layout.roles, table.layout
    constant = {roles.stay, roles.group, *layout.static}
    made: dict[str, pa.Array | pa.ChunkedArray] = {}
    for name in table.cells.column_names:
        column, how = table.cells.column(name), combine.get(name, "last")
        if table.order is not None:
            column = column.take(pa.array(table.order))
        if name in constant:
            made[name] = column.take(pa.array(grid.first))
        elif how in ("last", "first"):
            there = ~column.is_null(nan_is_null=name != roles.loss).to_numpy()
            row = grid.chosen(there, how)
            made[name] = column.take(pa.array(row, mask=row < 0))
        else:
            values = numbers(place_of(table.name, name), column)
            made[name] = pa.array(grid.combined(values, how), from_pandas=True)
    if "eligible" in layout.present:  # an empty step cannot be a decision
        made[roles.eligible] = made[roles.eligible].fill_null(False)
    return pa.table(made)


def _tell_actions(table: SortedTable, grid: _Grid, rule: StepRule) -> None:
    """Say how many steps hold different actions, of which one counts; doses are put together."""
    differ = np.zeros(grid.begin.size, bool)
    for name in table.layout.treatment:
        how = rule.combine.get(name, "last")
        if how in ("last", "first"):
            code = table.column_levels(name)[1]
            known = np.where(code < 0, np.iinfo(np.int64).max, code)
            least = np.minimum.reduceat(known, grid.begin)
            differ |= np.maximum.reduceat(code, grid.begin) > least
    count = int(differ.sum())
    if count:
        shown = FEW if are_few(count) else f"{count:,}"
        note(f"{shown} steps hold different actions, of which the last counts; see --every")


def _tell(table: SortedTable, rule: StepRule, filled: NDArray[Any]) -> None:
    how = ", ".join(f"{name} ({how})" for name, how in rule.combine.items())
    others = f", but {how}" if how else ""
    rows, steps, empty = len(table.step), filled.size, int((~filled).sum())
    shown = FEW if are_few(empty) else f"{empty:,}"
    gaps = f"; {shown} steps have no row and are no decisions" if empty else ""
    told = f"every {rule.every}: {rows:,} rows make {steps:,} steps"
    note(f"{told}, of which the last value counts{others}{gaps}")
