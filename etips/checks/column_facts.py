"""What columns of a table hold, whatever part they may play, and how rows lie in its stays."""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from etips.data.decisions import Floats, Ints
from etips.data.tables.arrow_columns import encode, is_text
from etips.data.tables.layout import MOST_LEVELS
from etips.data.tables.sources import Source, whole_column
from etips.errors import EtipsError

Shape = Literal["number", "yes_no", "text", "time", "mixed", "other"]
"""What stands in the cells; `mixed` what is refused as numbers and is no text either."""

_YES_NO = (
    *({"y", "n"}, {"yes", "no"}, {"true", "false"}, {"t", "f"}, {"j", "n"}, {"ja", "nein"}),
    *({"oui", "non"}, {"o", "n"}, {"si", "no"}, {"s", "n"}, {"sim", "nao"}, {"ja", "nee"}),
)
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ]|$)|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}([T ]|$)")
_LOOKED_AT = 50  # different texts that tell a date


@dataclass(frozen=True)
class ColumnFacts:
    """A column in figures: its place in the table from 0, and what stands in its cells.

    Args:
        whole: Whether it holds numbers without a fraction.
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
        own, fault = ColumnFacts(name, position, "other", source.n_rows), None
        try:
            form, fault = source.form(name)
            own = _with_values(own, *_values(form.apply(whole_column(source, name))))
        except (EtipsError, pa.ArrowException):
            fault = None
        slips = fault is not None and own.shape == "text"  # a date meant in two ways is one
        facts.append(replace(own, shape="mixed", levels=()) if slips else own)
    return tuple(facts)


def _values(column: pa.ChunkedArray) -> tuple[pa.Array, Ints]:
    """The distinct values of a column, and which each row has, -1 where it is null or NaN."""
    values, code = encode(column)
    if pa.types.is_floating(values.type):
        nan = np.append(pc.is_nan(values).to_numpy(zero_copy_only=False), False)
        code = np.where(nan[code], -1, code)
        if nan.any():
            kept = np.flatnonzero(~nan[:-1])
            place = np.full(nan.size, -1)
            place[kept] = np.arange(kept.size)
            values, code = values.take(pa.array(kept)), place[code]
    return values, code


def _with_values(own: ColumnFacts, values: pa.Array, code: Ints) -> ColumnFacts:
    own = replace(own, n_missing=int((code < 0).sum()), n_distinct=len(values))
    kind = values.type
    if not len(values):
        return replace(own, n_distinct=0)
    if pa.types.is_boolean(kind):
        return replace(own, shape="yes_no")
    if pa.types.is_temporal(kind):
        return replace(own, shape="time")
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = values.cast(pa.float64()).to_numpy()
        whole = bool((np.floor(numbers) == numbers).all())
        low, high = float(numbers.min()), float(numbers.max())
        return replace(own, shape="number", whole=whole, low=low, high=high)
    if not is_text(kind):
        return own
    texts = values.cast(pa.string())
    if all(_DATE.match(cell.strip()) for cell in texts[:_LOOKED_AT].to_pylist()):
        return replace(own, shape="time")
    levels = tuple(sorted(texts.to_pylist())) if len(texts) <= MOST_LEVELS else ()
    yes_no = {level.strip().lower() for level in levels} in _YES_NO
    return replace(own, shape="yes_no" if yes_no else "text", levels=levels)


@dataclass(frozen=True)
class Structure:
    """The rows of a table by stay."""

    source: Source
    stay: str

    @cached_property
    def _order(self) -> tuple[Ints, Ints]:
        """Rows sorted by stay, and where each stay begins."""
        codes = self._codes(self.stay)
        order = np.argsort(codes, kind="stable")
        return order, np.flatnonzero(np.diff(codes[order], prepend=codes.min() - 1))

    def _codes(self, column: str) -> Ints:
        return _values(whole_column(self.source, column))[1]

    @property
    def n_stays(self) -> int:
        """How many stays there are."""
        return self._order[1].size

    @property
    def lengths(self) -> Ints:
        """Rows of each stay."""
        order, starts = self._order
        return np.diff(np.append(starts, order.size))

    def is_constant(self, column: str) -> bool:
        """Whether a column has one value in each stay; a gap is no other value."""
        order, starts = self._order
        codes = self._codes(column)[order]
        most = np.maximum.reduceat(codes, starts)
        least = np.minimum.reduceat(np.where(codes < 0, np.iinfo(np.int64).max, codes), starts)
        return bool(((most < 0) | (most == least)).all())

    def is_unique(self, column: str) -> bool:
        """Whether no value of a column occurs twice in a stay."""
        codes = self._codes(column)
        pairs = self._codes(self.stay) * (codes.max(initial=0) + 2) + codes + 1
        return bool(np.unique(pairs).size == pairs.size and (codes >= 0).all())

    def hours_per_row(self, column: str) -> float | None:
        """Hours that a stay lasts for each of its rows, the median stay; None if not known."""
        order, starts = self._order
        hours = self._hours(column)[order]
        span = np.fmax.reduceat(hours, starts) - np.fmin.reduceat(hours, starts)
        each = (span / self.lengths)[np.isfinite(span) & (span > 0)]
        return float(np.median(each)) if each.size else None

    def _hours(self, column: str) -> Floats:
        """Times as hours since 1970, NaN where there is none, shape (n_rows,)."""
        form, _ = self.source.form(column)
        times = form.apply(whole_column(self.source, column))
        try:
            micros: NDArray[np.datetime64] = times.cast(pa.timestamp("us"), safe=False).to_numpy()
        except pa.ArrowException:
            return np.full(self.source.n_rows, np.nan)
        hours = micros.astype("datetime64[us]") - np.datetime64(0, "us")
        return np.asarray(hours / np.timedelta64(1, "h"), np.float64)
