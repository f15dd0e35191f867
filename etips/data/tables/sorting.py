"""A long table put in order of stay and step, whatever order its rows came in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from etips.data.coded import Floats32
from etips.data.decisions import Bools, Floats, Ints
from etips.data.recipe import ColumnKind
from etips.data.tables.arrow_columns import (
    fill_columns,
    is_number,
    is_plain,
    is_text,
    is_textual,
    labels,
    levels_of,
    moments,
    numbers,
    plain_text,
    text_flags,
    times,
)
from etips.data.tables.layout import Layout
from etips.data.tables.sources import Source
from etips.errors import DataError, Faults, require

EPOCH = np.datetime64("2000-01-01", "us")
"""Years are counted from here."""

HOUR = np.timedelta64(3600 * 10**6, "us")
YEAR = 365.25 * 24 * HOUR


def column_values(
    where: str, column: pa.ChunkedArray, kind: ColumnKind
) -> tuple[NDArray[Any], int]:
    """The column as numbers, NaN where it is missing, and how many cells could not be read."""
    if kind.kind in ("hours", "age") and not is_number(column.type):
        return np.full(len(column), np.nan), 0
    if kind.kind == "yes_no" and is_text(column.type):
        return text_flags(where, column)
    if kind.kind == "years" and not is_number(column.type):
        return (times(where, column) - EPOCH) / YEAR, 0
    if kind.kind == "duration" and not is_number(column.type):
        return _hours(where, column), 0
    if is_text(column.type):  # nothing but blanks, or it would have been read as numbers by now
        return np.full(len(column), np.nan), 0
    return column.to_numpy() if is_plain(column) else numbers(where, column), 0


def _hours(where: str, column: pa.ChunkedArray) -> Floats:
    """A length of time, or a time of day, in hours."""
    kind = column.type
    if types.is_time(kind):
        column = pc.cast(column, pa.time64("ns"))
        column = pc.cast(pc.cast(column, pa.int64()), pa.duration("ns"))
    elif not types.is_duration(kind):
        raise DataError(where, "must be a length of time")
    lengths: NDArray[np.timedelta64] = column.to_numpy().astype("timedelta64[us]")
    return lengths / HOUR


Kind = Literal["sequence", "static"]


@dataclass(frozen=True, eq=False)
class SortedTable:
    """A table in memory; what its methods return is in order of stay and step.

    Args:
        name: How refusals call it.
        layout: The part of each column.
        cells: The columns that are not numeric features, in the order that `order` undoes.
        matrices: Numeric features, shape (n, d) of each kind, in order.
        stays: Identifiers of the stays, in order.
        offsets: Where each stay starts.
        step: Step labels, in order.
        rows: Row of the user's table that stands at each place; None if it came in order.
        order: Row of `cells` that stands at each place; None if they are in order.
        unseen: Cells of a column that could not be read by what is known of it.
    """

    name: str
    layout: Layout
    cells: pa.Table
    matrices: Mapping[Kind, Floats32]
    stays: NDArray[Any]
    offsets: Ints
    step: NDArray[Any]
    rows: Ints | None
    order: Ints | None
    unseen: dict[str, int] = field(default_factory=dict)

    @cached_property
    def starts(self) -> Ints:
        """First row of the stay that each row belongs to."""
        return np.repeat(self.offsets[:-1], np.diff(self.offsets))

    def place(self, role: str) -> str:
        """How a refusal calls the column of `role`."""
        return place_of(self.name, getattr(self.layout.roles, role))

    def number(self, role: str) -> Floats:
        """The column of `role` as numbers, NaN where it is missing."""
        return self.column_numbers(getattr(self.layout.roles, role))

    def is_nan(self, role: str) -> Bools:
        """Where the column of `role` says NaN rather than nothing."""
        column = self._cell(role)
        nan: Bools = column.is_null(nan_is_null=True).to_numpy() & ~column.is_null().to_numpy()
        return self.in_order(nan)

    def label(self, role: str) -> tuple[NDArray[Any], Ints]:
        """The distinct labels in the column of `role`, and which each row has."""
        names, code = labels(self.place(role), self._cell(role))
        return names, self.in_order(code)

    def column_numbers(self, name: str) -> Floats:
        """Any column that plays a part as numbers, NaN where it is missing."""
        return self.in_order(numbers(place_of(self.name, name), self.cells.column(name)))

    def column_levels(
        self, name: str, known: tuple[str, ...] | None = None
    ) -> tuple[tuple[str, ...], Ints]:
        """Levels of any column that plays a part, and that of each row, -1 where it is missing.

        A level that is not in `known` is -2.
        """
        place, column = place_of(self.name, name), self.cells.column(name)
        if is_textual(column.type):
            column = plain_text(place, column)
        levels, code = levels_of(place, column, known)
        return levels, self.in_order(code)

    def column_cells(self, name: str) -> pa.ChunkedArray:
        """Any column that plays a part as it stands, in the order of `cells`; see `in_order`."""
        return self.cells.column(name)

    def in_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """What was found in the order of `cells`, by stay and step."""
        return values if self.order is None else values[self.order]

    def _cell(self, role: str) -> pa.ChunkedArray:
        return self.cells.column(getattr(self.layout.roles, role))


def read_sorted(source: Source, layout: Layout, *, repeats: bool = False) -> SortedTable:
    """Read the table part by part, numeric features straight to their place, and sort it."""
    names: dict[Kind, list[str]] = {
        "sequence": layout.numeric(layout.sequence),
        "static": layout.numeric(layout.static),
    }
    matrices = {
        kind: np.empty((source.n_rows, len(own)), np.float32) for kind, own in names.items()
    }
    others, unseen = layout.other_columns(), dict[str, int]()
    cells, start = [], 0
    for part in source.parts(list(dict.fromkeys([*others, *names["sequence"], *names["static"]]))):
        stop = start + part.num_rows
        for kind, own in names.items():
            _fill(matrices[kind][start:stop], source.name, layout, part.select(own), unseen)
        cells.append(part.select(others))
        start = stop
    table = _sort(source, layout, pa.concat_tables(cells), matrices, repeats)
    table.unseen.update(unseen)
    _fill_hours(table)
    return table


def _fill(
    out: Floats32, where: str, layout: Layout, part: pa.Table, unseen: dict[str, int]
) -> None:
    """Write columns into `out` as numbers; by itself, so that nothing of the part outlives it."""
    arrays = []
    for name in part.column_names:
        place = place_of(where, name)
        values, odd = column_values(place, part.column(name), layout.kinds[name])
        unseen[name] = unseen.get(name, 0) + odd
        arrays.append(values)
    fill_columns(out, arrays)


def _sort(
    source: Source,
    layout: Layout,
    cells: pa.Table,
    matrices: dict[Kind, Floats32],
    repeats: bool,
) -> SortedTable:
    columns, n = layout.role_columns(), source.n_rows
    stays, stay, faults = np.arange(n), np.arange(n), Faults()
    if "stay" in columns:
        place = place_of(source.name, columns["stay"])
        with faults.noting():
            stays, stay = labels(place, cells.column(columns["stay"]))
    step: NDArray[Any] = np.zeros(n, np.int64)
    if "step" in columns:
        with faults.noting():
            step = moments(place_of(source.name, columns["step"]), cells.column(columns["step"]))
    faults.raise_any()
    rows = None
    if not _rises(stay, step).all():
        rows = np.lexsort((step, stay))
        stay, step = stay[rows], step[rows]
        if not repeats:
            _require_once(source, columns, _rises(stay, step), rows)
        for own in matrices.values():  # half of the columns at a time to save memory
            middle = -(-own.shape[1] // 2)
            for half in (own[:, :middle], own[:, middle:]):
                half[:] = half[rows]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(stay))])
    return SortedTable(source.name, layout, cells, matrices, stays, offsets, step, rows, rows)


def _require_once(source: Source, columns: Mapping[str, str], rises: Bools, rows: Ints) -> None:
    """Refuse a step that occurs twice, or a stay of several rows that nothing orders."""
    if "step" in columns:
        place = place_of(source.name, columns["step"])
        fix = 'Correct it, or put rows into steps: --every 1h (every="1h").'
        require(place, "must not occur twice in a stay", rises, rows=rows, fix=fix)
    place = place_of(source.name, columns["stay"])
    rule = "must not occur twice where no step is named"
    fix = "Name the column that orders the rows of a stay: --step (step=)."
    require(place, rule, rises, rows=rows, fix=fix)


def _fill_hours(table: SortedTable) -> None:
    """Put times into the matrices as hours since the stay's first row, dates of birth as ages.

    Where the steps are no times themselves, a column counts from its own first time in the stay.
    """
    clock = np.issubdtype(table.step.dtype, np.datetime64)
    for name in table.layout.timed:
        kind: Kind = "sequence" if name in table.layout.sequence else "static"
        columns = table.layout.sequence if kind == "sequence" else table.layout.static
        column = table.cells.column(name)
        moment = table.in_order(times(place_of(table.name, name), column))
        own = table.layout.kinds[name]
        if own.at is not None:
            first = table.in_order(times(place_of(table.name, own.at), table.cells.column(own.at)))
        elif clock:
            first = table.step[table.starts]
        else:
            there = np.where(np.isnat(moment), len(moment) - 1, np.arange(len(moment)))
            first = moment[np.minimum.reduceat(there, table.offsets[:-1])]
            first = np.repeat(first, np.diff(table.offsets))
        position = table.layout.numeric(columns).index(name)
        age = own.kind == "age"
        table.matrices[kind][:, position] = (
            (first - moment) / YEAR if age else (moment - first) / HOUR
        )


def _rises(stay: Ints, step: NDArray[Any]) -> Bools:
    """Whether each row stands after the one before it, in a later stay or at a later step."""
    rises = np.ones(stay.size, bool)
    rises[1:] = (stay[1:] > stay[:-1]) | ((stay[1:] == stay[:-1]) & (step[1:] > step[:-1]))
    return rises


def place_of(table: str, column: str) -> str:
    """How a refusal calls a column."""
    return f"{table}, column {column}"
