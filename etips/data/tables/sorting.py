"""A long table put in order of stay and step, whatever order its rows came in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from etips.data.coded import Floats32
from etips.data.decisions import Bools, Floats, Ints
from etips.data.intake.column_values import HOUR, YEAR, column_values
from etips.data.intake.text_columns import is_textual, plain_text
from etips.data.tables.arrow_columns import fill_columns, labels, levels_of, moments, numbers, times
from etips.data.tables.features import FeatureBlock, join
from etips.data.tables.sources import Source
from etips.data.tables.table_layout import Layout
from etips.errors import DataError, Faults, require

Kind = Literal["sequence", "static"]

_MOST_LEVELS = 1000  # each becomes a column, and its name part of the schema: free text must not


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

    def features(
        self, kind: Kind, known: Mapping[str, tuple[str, ...]], *, strict: bool = True
    ) -> FeatureBlock:
        """Features of one kind, categories spread out.

        Args:
            kind: Which features.
            known: Levels of some categories, in their order.
            strict: Refuse a level that is not known; otherwise it is missing, and counted.
        """
        columns = self.layout.sequence if kind == "sequence" else self.layout.static
        numeric = {name: i for i, name in enumerate(self.layout.numeric(columns))}
        categories, faults = {}, Faults()
        for name in [own for own in columns if own in self.layout.categorical]:
            with faults.noting():
                levels, code = self.column_levels(name, known.get(name))
                place, rule = place_of(self.name, name), "must be one of the levels known so far"
                if len(levels) > _MOST_LEVELS:
                    raise DataError(place, f"must have at most {_MOST_LEVELS} levels")
                if strict:
                    require(place, rule, code != -2, rows=self.rows)
                self.unseen[name] = int((code == -2).sum())
                categories[name] = (levels, np.maximum(code, -1))
        faults.raise_any()
        return join(columns, numeric, self.matrices[kind], categories)

    def _cell(self, role: str) -> pa.ChunkedArray:
        return self.cells.column(getattr(self.layout.roles, role))


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
        for own in matrices.values():
            _reorder(own, rows)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(stay))])
    return SortedTable(source.name, layout, cells, matrices, stays, offsets, step, rows, rows)


def _reorder(matrix: Floats32, rows: Ints) -> None:
    """Put rows into another order in place, half of the columns at a time to save memory."""
    middle = -(-matrix.shape[1] // 2)
    for half in (matrix[:, :middle], matrix[:, middle:]):
        half[:] = half[rows]


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
