"""Rows at any time put into steps of equal length, counted from each stay's first row."""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast, get_args

import numpy as np
import pyarrow as pa

from etips.data.coded import Floats32
from etips.data.decisions import Bools, Floats, Ints
from etips.data.intake.dose_classes import is_rate
from etips.data.recipe import Combine, StepRule
from etips.data.tables.arrow_columns import numbers
from etips.data.tables.sorting import Kind, SortedTable
from etips.data.tables.table_spec import TableSpec
from etips.disclosure import shown_or_few
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
    if spec.like is not None:
        known = None if spec.like.recipe is None else spec.like.recipe.every
        if known is not None and known.clock and not table.clock:
            # Numbers where times are due may be steps already, as `write_table` writes them.
            counted = np.arange(len(table.step)) - table.starts
            rule = f"must hold times, or steps of {known.every} counted from 0"
            place = table.place(table.layout.roles.step)
            require(place, rule, table.step == counted, rows=table.rows)
            return None
        return known
    if spec.every is None:
        if spec.combine:
            raise SettingError("combine", "needs every", fix="Such as --every 4h.")
        return None
    length, of_time = parse_every(spec.every)
    if "step" not in table.layout.present:
        raise SettingError("every", "needs step", fix="Name the column of times: --step (step=).")
    if table.clock != of_time:
        rule = "must have a unit where the steps are times, and none where they are numbers"
        raise SettingError("every", rule, fix="Such as 4h, or 4.")
    return StepRule(spec.every.strip(), length, table.clock, _combine(table, spec))


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
    n_steps = int(offsets[-1])
    if n_steps > _MOST_STEPS * len(number):
        fix = f"Choose a longer --every than {rule.every}, or correct the times."
        place = table.place(table.layout.roles.step)
        raise DataError(place, "would make far more steps than rows", fix=fix)
    grid = _Grid(np.repeat(offsets[:-1], np.diff(table.offsets)) + number, n_steps)
    _remark(table, rule, grid)
    own = np.arange(len(number)) if table.rows is None else table.rows
    first = np.repeat(table.offsets[:-1], lengths)
    return replace(
        table,
        cells=_cells(table, grid, rule, first),
        matrices={kind: _matrix(table, kind, grid, rule) for kind in table.matrices},
        offsets=offsets,
        step=np.arange(n_steps) - np.repeat(offsets[:-1], lengths),
        rows=own[grid.before],
        order=None,
    )


@dataclass(frozen=True, eq=False)
class _Grid:
    """Which step each row falls into, shape (n_rows,), never falling; and how many steps."""

    target: Ints
    n_steps: int

    @cached_property
    def begin(self) -> Ints:
        """First row of each step that has one."""
        return np.flatnonzero(np.diff(self.target, prepend=-1))

    @cached_property
    def before(self) -> Ints:
        """Last row of each step, or of one before."""
        last = np.zeros(self.n_steps, np.int64)
        last[self.target] = np.arange(self.target.size)  # of several the last is kept
        return np.maximum.accumulate(last)

    def chosen(self, there: Bools, how: Combine) -> Ints:
        """Row that speaks for each step, -1 where none has a value."""
        row = np.arange(there.size)
        found = np.full(self.n_steps, -1)
        rows = row[there] if how == "last" else row[there][::-1]
        found[self.target[rows]] = rows
        return found

    def combined(self, values: Floats, how: Combine) -> Floats:
        """Numbers of each step put together; NaN where none has a value."""
        there = ~np.isnan(values)
        if how in ("last", "first"):
            row = self.chosen(there, how)
            return np.where(row >= 0, values[row], np.nan)
        count = np.bincount(self.target[there], minlength=self.n_steps)
        if how in ("sum", "mean"):
            sums = np.bincount(self.target[there], values[there], minlength=self.n_steps)
            made = sums.astype(np.float64)
            made = made / np.maximum(count, 1) if how == "mean" else made
        else:
            made = np.zeros(self.n_steps)
            reduce, none = (np.minimum, np.inf) if how == "min" else (np.maximum, -np.inf)
            least_or_most = reduce.reduceat(np.where(there, values, none), self.begin)
            made[self.target[self.begin]] = least_or_most
        return np.where(count > 0, made, np.nan)


def _matrix(table: SortedTable, kind: Kind, grid: _Grid, rule: StepRule) -> Floats32:
    values = table.matrices[kind]
    if kind == "static":  # the same on every row, so that an empty step has it too
        return values[grid.before]
    names = table.layout.numeric(table.layout.sequence)
    made = np.empty((grid.n_steps, len(names)), np.float32)
    for position, name in enumerate(names):
        column = values[:, position].astype(np.float64)
        made[:, position] = grid.combined(column, rule.combine.get(name, "last"))
    return made


def _cells(table: SortedTable, grid: _Grid, rule: StepRule, first: Ints) -> pa.Table:
    """The columns that are read whole; `first` is the first row of each step's stay."""
    roles, layout = table.layout.roles, table.layout
    constant = {roles.stay, roles.group, *layout.static}
    made: dict[str, pa.Array | pa.ChunkedArray] = {}
    for name in table.cells.column_names:
        column, how = table.cells.column(name), rule.combine.get(name, "last")
        if table.order is not None:
            column = column.take(pa.array(table.order))
        if name in constant:
            made[name] = column.take(pa.array(first))
        elif how in ("last", "first"):
            there = ~column.is_null(nan_is_null=name != roles.loss).to_numpy()
            row = grid.chosen(there, how)
            made[name] = column.take(pa.array(row, mask=row < 0))
        else:
            values = grid.combined(numbers(table.place(name), column), how)
            made[name] = pa.array(values, from_pandas=True)
    if "eligible" in layout.present:  # an empty step cannot be a decision
        made[roles.eligible] = made[roles.eligible].fill_null(False)
    return pa.table(made)


def _remark(table: SortedTable, rule: StepRule, grid: _Grid) -> None:
    """Say what became of the rows, and how many steps hold different actions."""
    how = ", ".join(f"{name} ({how})" for name, how in rule.combine.items())
    others = f", but {how}" if how else ""
    empty = grid.n_steps - grid.begin.size
    gaps = f"; {shown_or_few(empty)} steps have no row and are no decisions" if empty else ""
    made = f"every {rule.every}: {len(table.step):,} rows make {grid.n_steps:,} steps"
    note(f"{made}, of which the last value counts{others}{gaps}")
    differ = np.zeros(grid.begin.size, bool)
    for name in table.layout.treatment:  # doses are put together
        if rule.combine.get(name, "last") in ("last", "first"):
            code = table.levels(name)[1]
            known = np.where(code < 0, np.iinfo(np.int64).max, code)
            least = np.minimum.reduceat(known, grid.begin)
            differ |= np.maximum.reduceat(code, grid.begin) > least
    if differ.any():
        count = shown_or_few(int(differ.sum()))
        note(f"{count} steps hold different actions, of which the last counts; see --every")
