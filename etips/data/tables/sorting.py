"""A long table put in order of stay and step, whatever order its rows came in."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from etips.data.coded import Floats32
from etips.data.decisions import Bools, Floats, Ints
from etips.data.tables.arrow_columns import fill_rows, labels, levels_of, moments, numbers
from etips.data.tables.features import FeatureBlock, join
from etips.data.tables.sources import Source
from etips.data.tables.table_layout import Layout
from etips.errors import DataError, require

Kind = Literal["sequence", "static"]

_MOST_LEVELS = 1000  # each becomes a column, and its name part of the schema: free text must not


@dataclass(frozen=True, eq=False)
class SortedTable:
    """A table in memory; what its methods return is in order of stay and step.

    Args:
        name: How refusals call it.
        layout: The part of each column.
        cells: The columns that are not numeric features, still in the table's order.
        matrices: Numeric features, shape (n, d) of each kind, in order.
        stays: Identifiers of the stays, in order.
        offsets: Where each stay starts.
        step: Step labels, in order.
        rows: Row of the user's table that stands at each place; None if it came in order.
    """

    name: str
    layout: Layout
    cells: pa.Table
    matrices: Mapping[Kind, Floats32]
    stays: NDArray[Any]
    offsets: Ints
    step: NDArray[Any]
    rows: Ints | None

    @cached_property
    def starts(self) -> Ints:
        """First row of the stay that each row belongs to."""
        return np.repeat(self.offsets[:-1], np.diff(self.offsets))

    def place(self, role: str) -> str:
        """How a refusal calls the column of `role`."""
        return _place(self.name, getattr(self.layout.roles, role))

    def number(self, role: str) -> Floats:
        """The column of `role` as numbers, NaN where it is missing."""
        return self.in_order(numbers(self.place(role), self._cell(role)))

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
        return self.in_order(numbers(_place(self.name, name), self.cells.column(name)))

    def column_levels(
        self, name: str, known: tuple[str, ...] | None = None
    ) -> tuple[tuple[str, ...], Ints]:
        """Levels of any column that plays a part, and that of each row, -1 where it is missing."""
        levels, code = levels_of(_place(self.name, name), self.cells.column(name), known)
        return levels, self.in_order(code)

    def column_cells(self, name: str) -> pa.ChunkedArray:
        """Any column that plays a part as it stands, in the table's own order; see `in_order`."""
        return self.cells.column(name)

    def in_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """What was found in the table's own order, by stay and step."""
        return values if self.rows is None else values[self.rows]

    def features(self, kind: Kind, known: Mapping[str, tuple[str, ...]]) -> FeatureBlock:
        """Features of one kind, categories spread out; `known` fixes the levels of some."""
        columns = self.layout.sequence if kind == "sequence" else self.layout.static
        numeric = {name: i for i, name in enumerate(self.layout.numeric(columns))}
        categories = {}
        for name in columns:
            if name in self.layout.categorical:
                place = _place(self.name, name)
                levels, code = levels_of(place, self.cells.column(name), known.get(name))
                if len(levels) > _MOST_LEVELS:
                    raise DataError(place, f"must have at most {_MOST_LEVELS} levels")
                categories[name] = (levels, self.in_order(code))
        return join(columns, numeric, self.matrices[kind], categories)

    def _cell(self, role: str) -> pa.ChunkedArray:
        return self.cells.column(getattr(self.layout.roles, role))


def read_sorted(source: Source, layout: Layout) -> SortedTable:
    """Read the table part by part, numeric features straight to their place, and sort it."""
    sequence, static = layout.numeric(layout.sequence), layout.numeric(layout.static)
    others = layout.other_columns()
    matrices: dict[Kind, Floats32] = {
        "sequence": np.empty((source.n_rows, len(sequence)), np.float32),
        "static": np.empty((source.n_rows, len(static)), np.float32),
    }
    cells, start = [], 0
    for part in source.parts([*others, *sequence, *static]):
        stop = start + part.num_rows
        fill_rows(matrices["sequence"][start:stop], [part.column(name) for name in sequence])
        fill_rows(matrices["static"][start:stop], [part.column(name) for name in static])
        cells.append(part.select(others))
        start = stop
    return _sort(source.name, layout, pa.concat_tables(cells), matrices)


def _sort(
    name: str, layout: Layout, cells: pa.Table, matrices: dict[Kind, Floats32]
) -> SortedTable:
    columns = layout.role_columns()
    stay_place, step_place = _place(name, columns["stay"]), _place(name, columns["step"])
    stays, stay = labels(stay_place, cells.column(columns["stay"]))
    step = moments(step_place, cells.column(columns["step"]))
    rows = None
    if not _rises(stay, step).all():
        rows = np.lexsort((step, stay))
        stay, step = stay[rows], step[rows]
        rule = "must not occur twice in a stay"
        require(step_place, rule, _rises(stay, step), rows=rows)
        for kind in matrices:
            matrices[kind] = matrices[kind][rows]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(stay))])
    return SortedTable(name, layout, cells, matrices, stays, offsets, step, rows)


def _rises(stay: Ints, step: NDArray[Any]) -> Bools:
    """Whether each row stands after the one before it, in a later stay or at a later step."""
    rises = np.ones(stay.size, bool)
    rises[1:] = (stay[1:] > stay[:-1]) | ((stay[1:] == stay[:-1]) & (step[1:] > step[:-1]))
    return rises


def _place(table: str, column: str) -> str:
    return f"{table}, column {column}"
