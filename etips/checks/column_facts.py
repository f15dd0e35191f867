"""What columns of a table hold, whatever part they may play, and how rows lie in its stays."""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from etips.data.tables.sources import Source, whole_column
from etips.errors import EtipsError

Shape = Literal["number", "yes_no", "text", "time", "mixed", "other"]
"""What stands in the cells; `mixed` what is refused as numbers and is no text either."""

Codes = NDArray[np.int64]
MOST_LEVELS = 50
YES_NO = (
    *({"y", "n"}, {"yes", "no"}, {"true", "false"}, {"t", "f"}, {"j", "n"}, {"ja", "nein"}),
    *({"oui", "non"}, {"o", "n"}, {"si", "no"}, {"s", "n"}, {"sim", "nao"}, {"ja", "nee"}),
)
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ]|$)|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}([T ]|$)")
_LOOKED_AT = 50  # cells that tell a date


@dataclass(frozen=True)
class ColumnFacts:
    """A column in figures.

    Args:
        name: Of the column.
        position: Its place in the table, from 0.
        shape: What stands in its cells.
        n_rows: Rows of the table.
        n_missing: Cells that hold nothing.
        n_distinct: Different values.
        whole: Whether it holds numbers without a fraction.
        low: Smallest number.
        high: Largest number.
        levels: The texts, where there are at most fifty.
    """

    name: str
    position: int
    shape: Shape
    n_rows: int
    n_missing: int = 0
    n_distinct: int = 0
    whole: bool = False
    low: float | None = None
    high: float | None = None
    levels: tuple[str, ...] = ()

    @property
    def unique(self) -> bool:
        """Whether no value occurs twice."""
        return self.n_distinct == self.n_rows - self.n_missing and self.n_missing == 0

    @property
    def zero_one(self) -> bool:
        """Whether it holds 0 and 1, or yes and no, and nothing else."""
        binary = self.shape == "number" and (self.low, self.high) == (0, 1) and self.whole
        return self.shape == "yes_no" or (binary and self.n_distinct == 2)

    @property
    def names_things(self) -> bool:
        """Whether its values could be identifiers: whole numbers or text, none missing."""
        return (self.whole or self.shape == "text") and not self.n_missing


def look_at(source: Source) -> tuple[ColumnFacts, ...]:
    """Every column of a table; one that cannot be read is "other"."""
    facts = []
    for position, name in enumerate(source.columns):
        try:
            form, fault = source.form(name)
            column = _plain(whole_column(source, name))
            if form.kind != "text":
                column = form.apply(column)
            own = _facts(name, position, column)
        except (EtipsError, pa.ArrowException):
            own, fault = ColumnFacts(name, position, "other", source.n_rows), None
        slips = fault is not None and own.shape == "text"  # a date meant in two ways is one
        facts.append(replace(own, shape="mixed", levels=()) if slips else own)
    return tuple(facts)


def codes_of(source: Source, name: str) -> Codes:
    """Number of each row's value, -1 where it is missing, shape (n_rows,)."""
    column = _plain(whole_column(source, name)).combine_chunks()
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    coded = column.dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    return np.asarray(pc.fill_null(coded.indices, -1)).astype(np.int64)


def hours_of(source: Source, name: str) -> NDArray[np.float64]:
    """Times of a column as hours since 1970, NaN where there is none, shape (n_rows,)."""
    form, _ = source.form(name)
    column = form.apply(_plain(whole_column(source, name)))
    try:
        micros = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    except pa.ArrowException:
        return np.full(source.n_rows, np.nan)
    known = pc.fill_null(micros.cast(pa.float64(), safe=False), np.nan)
    return np.asarray(known, np.float64) / 3.6e9


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column


def _facts(name: str, position: int, column: pa.ChunkedArray) -> ColumnFacts:
    kind, n_rows = column.type, len(column)
    if pa.types.is_floating(kind):
        column = pc.if_else(pc.is_nan(column), None, column)
    missing = int(column.null_count)
    if missing == n_rows:
        return ColumnFacts(name, position, "other", n_rows, missing)
    distinct = int(pc.count_distinct(column).as_py())
    if pa.types.is_boolean(kind):
        return ColumnFacts(name, position, "yes_no", n_rows, missing, distinct)
    if pa.types.is_temporal(kind):
        return ColumnFacts(name, position, "time", n_rows, missing, distinct)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _number(name, position, column.cast(pa.float64()), missing, distinct)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _text(name, position, column, missing, distinct)
    return ColumnFacts(name, position, "other", n_rows, missing, distinct)


def _number(
    name: str, position: int, column: pa.ChunkedArray, missing: int, distinct: int
) -> ColumnFacts:
    limits = pc.min_max(column).as_py()
    whole = bool(pc.all(pc.equal(pc.floor(column), column)).as_py())
    low, high = limits["min"], limits["max"]
    return ColumnFacts(name, position, "number", len(column), missing, distinct, whole, low, high)


def _text(
    name: str, position: int, column: pa.ChunkedArray, missing: int, distinct: int
) -> ColumnFacts:
    levels: tuple[str, ...] = ()
    if distinct <= MOST_LEVELS:
        levels = tuple(
            sorted(level for level in pc.unique(column).to_pylist() if level is not None)
        )
    shape: Shape = "text"
    if {level.strip().lower() for level in levels} in YES_NO:
        shape = "yes_no"
    some = pc.drop_null(column).slice(0, _LOOKED_AT).to_pylist()
    if all(DATE.match(cell.strip()) for cell in some):
        shape, levels = "time", ()
    return ColumnFacts(name, position, shape, len(column), missing, distinct, levels=levels)


@dataclass(frozen=True)
class Structure:
    """The rows of a table by stay."""

    source: Source
    stay: str

    @cached_property
    def _order(self) -> tuple[Codes, Codes]:
        """Rows sorted by stay, and where each stay begins."""
        codes = codes_of(self.source, self.stay)
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=codes.min() - 1))
        return order, starts

    @property
    def n_stays(self) -> int:
        """How many stays there are."""
        return self._order[1].size

    @property
    def longest(self) -> int:
        """Rows of the longest stay."""
        order, starts = self._order
        return int(np.diff(np.append(starts, order.size)).max(initial=0))

    def is_constant(self, column: str) -> bool:
        """Whether a column has one value in each stay; a gap is no other value."""
        order, starts = self._order
        codes = codes_of(self.source, column)[order]
        most = np.maximum.reduceat(codes, starts)
        least = np.minimum.reduceat(np.where(codes < 0, np.iinfo(np.int64).max, codes), starts)
        return bool(((most < 0) | (most == least)).all())

    def is_unique(self, column: str) -> bool:
        """Whether no value of a column occurs twice in a stay."""
        order, starts = self._order
        codes = codes_of(self.source, column)
        stay = np.zeros(codes.size, np.int64)
        stay[order] = np.repeat(np.arange(starts.size), np.diff(np.append(starts, order.size)))
        pairs = stay * (codes.max(initial=0) + 2) + codes + 1
        return bool(np.unique(pairs).size == pairs.size and (codes >= 0).all())

    def hours_per_row(self, column: str) -> float | None:
        """Hours that a stay lasts for each of its rows, the median stay; None if not known."""
        order, starts = self._order
        hours = hours_of(self.source, column)[order]
        last = np.fmax.reduceat(hours, starts)
        span = last - np.fmin.reduceat(hours, starts)
        rows = np.diff(np.append(starts, order.size))
        each = (span / rows)[np.isfinite(span) & (span > 0)]
        return float(np.median(each)) if each.size else None
