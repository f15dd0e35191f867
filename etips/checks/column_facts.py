"""What a column of a table holds, whatever part it may play."""

import re
from dataclasses import dataclass, replace
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
