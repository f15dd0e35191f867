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

    @property
    def clock(self) -> bool:
        """Whether steps are times rather than numbers."""
        return bool(np.issubdtype(self.step.dtype, np.datetime64))

    def place(self, column: str) -> str:
        """How a refusal calls a column."""
        return f"{self.name}, column {column}"

    def role(self, role: str) -> str | None:
        """The column that plays a part, if any does."""
        name: str = getattr(self.layout.roles, role)
        return name if role in self.layout.present else None

    def numbers(self, name: str) -> Floats:
        """A column that plays a part as numbers, NaN where it is missing."""
        return self.in_order(numbers(self.place(name), self.cells.column(name)))

    def times(self, name: str) -> NDArray[Any]:
        """A column that plays a part as times, NaT where it is missing."""
        return self.in_order(times(self.place(name), self.cells.column(name)))

    def levels(
        self, name: str, known: tuple[str, ...] | None = None
    ) -> tuple[tuple[str, ...], Ints]:
        """Levels of a column that plays a part, and that of each row, -1 where it is missing.

        A level that is not in `known` is -2.
        """
        column = self.cells.column(name)
        if is_text(column.type):
            column = plain_text(self.place(name), column)
        levels, code = levels_of(self.place(name), column, known)
        return levels, self.in_order(code)

    def in_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """What was found in the order of `cells`, by stay and step."""
        return values if self.order is None else values[self.order]


def read_sorted(source: Source, layout: Layout, *, repeats: bool = False) -> SortedTable:
    """Read the table part by part, numeric features straight to their place, and sort it.

    Args:
        source: The table.
        layout: The part of each column.
        repeats: Whether a step may occur twice in a stay.
    """
    names: dict[Kind, list[str]] = {
        "sequence": layout.numeric(layout.sequence),
        "static": layout.numeric(layout.static),
    }
    n = source.n_rows
    matrices = {kind: np.empty((n, len(own)), np.float32) for kind, own in names.items()}
    others, unseen = layout.other_columns(), dict[str, int]()
    cells, start = [], 0
    for part in source.parts(list(dict.fromkeys([*others, *names["sequence"], *names["static"]]))):
        stop = start + part.num_rows
        for kind, own in names.items():
            _fill(matrices[kind][start:stop], source.name, layout, part.select(own), unseen)
        cells.append(part.select(others))
        start = stop
    whole, columns, faults = pa.concat_tables(cells), layout.role_columns(), Faults()
    stays, stay, step = np.arange(n), np.arange(n), np.zeros(n, np.int64)
    where = {role: f"{source.name}, column {name}" for role, name in columns.items()}
    if "stay" in columns:
        with faults.noting():
            stays, stay = labels(where["stay"], whole.column(columns["stay"]))
    if "step" in columns:
        with faults.noting():
            step = moments(where["step"], whole.column(columns["step"]))
    faults.raise_any()
    rows = None
    if not _rises(stay, step).all():
        rows = np.lexsort((step, stay))
        stay, step = stay[rows], step[rows]
        if not repeats:
            _require_once(where, _rises(stay, step), rows)
        for matrix in matrices.values():  # half of the columns at a time to save memory
            middle = -(-matrix.shape[1] // 2)
            for half in (matrix[:, :middle], matrix[:, middle:]):
                half[:] = half[rows]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(stay))])
    table = SortedTable(
        source.name, layout, whole, matrices, stays, offsets, step, rows, rows, unseen
    )
    _fill_hours(table)
    return table


def _fill(
    out: Floats32, where: str, layout: Layout, part: pa.Table, unseen: dict[str, int]
) -> None:
    """Write columns into `out` as numbers; by itself, so that nothing of the part outlives it."""
    arrays = []
    for name in part.column_names:
        place, kind = f"{where}, column {name}", layout.kinds[name]
        values, odd = column_values(place, part.column(name), kind)
        unseen[name] = unseen.get(name, 0) + odd
        arrays.append(values)
    fill_columns(out, arrays)


def column_values(
    where: str, column: pa.ChunkedArray, kind: ColumnKind
) -> tuple[NDArray[Any], int]:
    """The column as numbers, NaN where it is missing, and how many cells could not be read."""
    if kind.kind == "yes_no" and is_text(column.type):
        return text_flags(where, column)
    if not is_number(column.type):
        if kind.kind == "years":
            return (times(where, column) - EPOCH) / YEAR, 0
        if kind.kind == "duration":
            return _hours(where, column), 0
        if kind.kind in ("hours", "age") or is_text(column.type):
            # Filled in later; or nothing but blanks, or it would have been read as numbers by now.
            return np.full(len(column), np.nan), 0
    return column.to_numpy() if is_plain(column) else numbers(where, column), 0


def _hours(where: str, column: pa.ChunkedArray) -> Floats:
    """A length of time, or a time of day, in hours."""
    if types.is_time(column.type):
        column = pc.cast(column, pa.time64("ns"))
        column = pc.cast(pc.cast(column, pa.int64()), pa.duration("ns"))
    elif not types.is_duration(column.type):
        raise DataError(where, "must be a length of time")
    lengths: NDArray[np.timedelta64] = column.to_numpy().astype("timedelta64[us]")
    return lengths / HOUR


def _require_once(where: Mapping[str, str], rises: Bools, rows: Ints) -> None:
    """Refuse a step that occurs twice, or a stay of several rows that nothing orders."""
    if "step" in where:
        fix = 'Correct it, or put rows into steps: --every 1h (every="1h").'
        require(where["step"], "must not occur twice in a stay", rises, rows=rows, fix=fix)
    rule = "must not occur twice where no step is named"
    fix = "Name the column that orders the rows of a stay: --step (step=)."
    require(where["stay"], rule, rises, rows=rows, fix=fix)


def _fill_hours(table: SortedTable) -> None:
    """Put times into the matrices as hours since the stay's first row, dates of birth as ages.

    Where the steps are no times themselves, a column counts from its own first time in the stay.
    """
    layout, offsets = table.layout, table.offsets
    for name in layout.timed:
        kind: Kind = "sequence" if name in layout.sequence else "static"
        moment, at = table.times(name), layout.kinds[name].at
        if at is not None:
            first = table.times(at)
        elif table.clock:
            first = table.step[table.starts]
        else:
            there = np.where(np.isnat(moment), len(moment) - 1, np.arange(len(moment)))
            first = moment[np.minimum.reduceat(there, offsets[:-1])]
            first = np.repeat(first, np.diff(offsets))
        position = layout.numeric(getattr(layout, kind)).index(name)
        age = layout.kinds[name].kind == "age"
        since = (first - moment) / YEAR if age else (moment - first) / HOUR
        table.matrices[kind][:, position] = since


def _rises(stay: Ints, step: NDArray[Any]) -> Bools:
    """Whether each row stands after the one before it, in a later stay or at a later step."""
    rises = np.ones(stay.size, bool)
    rises[1:] = (stay[1:] > stay[:-1]) | ((stay[1:] == stay[:-1]) & (step[1:] > step[:-1]))
    return rises
