"""What columns of text hold: numbers, dates, plain text, or a mixture that the user must mend.

Only distinct texts are looked at. No message quotes one, well-known marks of a missing value apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from etips.data.decisions import Bools, Ints
from etips.data.tables.date_cells import DateCells, DateOrder, sort_dates, to_dates
from etips.data.tables.number_cells import (
    MARKERS,
    Decimal,
    NumberCells,
    are_grouped,
    as_mask,
    as_values,
    beside_whole,
    clear_thousands,
    common_unit,
    matches,
    sort_numbers,
    to_numbers,
    units_differ,
    without_limits,
    without_thousands,
    without_unit,
    wrongly_grouped,
)
from etips.errors import DataError, as_option

_PYTHON_NULL = "None"  # none in small letters may be a dose of 0
FOOTER = "Is it a footer? Then delete it from the file."
"""How a remedy begins where only the last rows are at fault."""
_FOOTER = 3  # rows at the end that may be one
_MIXED = "mixes numbers and text"
_PAIR = r"^\d+(\.\d+)?\s*/\s*\d+(\.\d+)?$"  # 120/80
_FEW = 12  # different pairs that may still be the levels of a category


@dataclass(frozen=True)
class TextForm:
    """How to read a column of text, row by row.

    Args:
        kind: As what.
        decimal: Mark of a fraction, in numbers.
        order: What stands first in a date with the year at its end.
        missing: Marks of a missing value that occur.
        whole: Whether all numbers are whole, none of more than 18 digits.
        zeros: Whether some begin with zeros or are codes, as identifiers do and are.
        unit: What stands behind every number.
        limits: Whether cells such as <5 are read as their number.
        grouped: Whether there are separators of thousands.
        year_last: Whether some dates have the year at their end.
    """

    kind: Literal["text", "number", "date"] = "text"
    decimal: Decimal = "."
    order: DateOrder = "dmy"
    missing: tuple[str, ...] = ()
    whole: bool = False
    zeros: bool = False
    unit: str = ""
    limits: bool = False
    grouped: bool = False
    year_last: bool = False

    @property
    def type(self) -> pa.DataType:
        """Arrow type of what is read."""
        if self.kind == "number":
            return pa.int64() if self.whole else pa.float64()
        return pa.timestamp("us") if self.kind == "date" else pa.string()

    def apply(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """The column, or a part of it, read this way."""
        return column if self.kind == "text" else self.apply_to(TextCells.of(column))

    def apply_to(self, cells: "TextCells") -> pa.ChunkedArray:
        """The same of texts that are sorted; plain text is trimmed."""
        texts = self._bare(cells.without(cells.marker))
        if self.kind == "text":
            values = cells.without(cells.empty)
        elif self.kind == "date":
            stamps = to_dates(texts, self.order)[0].astype("datetime64[us]").astype(np.int64)
            values = as_values(stamps, self.type, _nulls(texts))
        elif self.whole:
            values = pc.cast(pc.utf8_ltrim(texts, "+"), self.type)
        else:
            values = as_values(to_numbers(texts, self.decimal), self.type, _nulls(texts))
        return pa.chunked_array([values.take(cells.index)], values.type)

    def _bare(self, texts: pa.Array) -> pa.Array:
        """Numbers without what is written around them."""
        if self.limits:
            texts = without_limits(texts)
        if self.unit:
            texts = without_unit(texts, self.unit)
        return without_thousands(texts, self.decimal) if self.grouped else texts


@dataclass(frozen=True, eq=False)
class TextCells:
    """Distinct texts of a column, trimmed.

    Args:
        texts: The texts, d of them.
        index: Which of them each row has, null where there is none, shape (n,).
        rows: How many rows have each, shape (d,).
        marker: Which are well-known marks of a missing value, shape (d,).
    """

    texts: pa.Array
    index: pa.Array
    rows: Ints
    marker: Bools

    @cached_property
    def numbers(self) -> NumberCells:
        """Which texts are numbers."""
        return sort_numbers(self.texts)

    @cached_property
    def dates(self) -> DateCells:
        """Which texts are dates."""
        return sort_dates(self.texts)

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> "TextCells":
        """Sort the texts of a column, which must be UTF-8."""
        encoded = pc.dictionary_encode(pc.cast(column, pa.string()).combine_chunks())
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        texts = pc.utf8_trim_whitespace(encoded.dictionary)
        texts = pc.replace_substring(texts, "\u2212", "-")  # the minus sign of typesetters
        known = pc.drop_null(encoded.indices).to_numpy(zero_copy_only=False)
        known_marks = pc.is_in(pc.utf8_lower(texts), value_set=_marks())
        marker = pc.or_(known_marks, pc.equal(texts, _PYTHON_NULL))
        return cls(
            texts,
            encoded.indices,
            np.bincount(known, minlength=len(texts)),
            marker.to_numpy(zero_copy_only=False),
        )

    @property
    def number(self) -> Bools:
        """Which texts can be read as numbers."""
        return self.numbers.number & ~self.marker

    @property
    def empty(self) -> Bools:
        """Which texts are nothing but spaces."""
        return matches(self.texts, "^$")

    def without(self, these: Bools) -> pa.Array:
        """The texts, null in place of `these`."""
        return pc.if_else(as_mask(these), pa.scalar(None, self.texts.type), self.texts)

    def where(self, these: Bools) -> Ints:
        """Rows that have one of `these` texts."""
        here = pc.fill_null(as_mask(these).take(self.index), False)
        return np.flatnonzero(here.to_numpy(zero_copy_only=False))


@cache
def _marks() -> pa.Array:
    return pa.array(["", *MARKERS], pa.string())


def _nulls(texts: pa.Array) -> Bools:
    missing: Bools = pc.is_null(texts).to_numpy(zero_copy_only=False)
    return missing


@dataclass(frozen=True)
class Habits:
    """How the numbers and dates of a file are written, where a column alone does not tell.

    Args:
        decimal: Mark of a fraction, None if nobody knows.
        dates: What stands first in a date, None if nobody said.
        limits: Whether cells such as <5 and 85+ are read as their number.
        na: Cells that mean "missing", as somebody said.
        usual: Mark of a fraction in such files, where nothing is seen; it tells no thousands.
    """

    decimal: Decimal | None = None
    dates: DateOrder | None = None
    limits: bool = False
    na: tuple[str, ...] = ()
    usual: Decimal | None = None


def read_text(
    where: str, name: str, cells: TextCells, habits: Habits
) -> tuple[TextForm, DataError | None]:
    """How to read a column of text, and what is wrong with it if it must be numbers or dates."""
    judge = _Judge(f"{where}, column {name}", name, cells, habits)
    filled = ~cells.marker
    unit, bare = _bare_numbers(cells, habits)
    if bare is not cells:
        form, fault = _Judge(judge.place, name, bare, habits).numbers()
        return replace(form, unit=unit, limits=habits.limits), fault
    if (filled & cells.number).any():
        return judge.numbers()
    if cells.dates.date.any():
        return judge.dates()
    if (filled & cells.dates.short_year).any() and (cells.dates.short_year | ~filled).all():
        return judge.refuse("has years of two digits", cells.dates.short_year, "Write all four.")
    pairs = matches(cells.texts, _PAIR)
    if pairs.sum() > _FEW and (pairs | ~filled).all():
        fix = "Write each into a column of its own."
        return judge.refuse("holds two numbers in a cell", pairs, fix)
    units = cells.numbers.unit
    if units.sum() > 1 and (units | ~filled).all() and units_differ(cells.texts, units):
        fix = "Write the number alone and the unit into the column's name."
        return judge.refuse("holds numbers with different units", units, fix)
    return TextForm(), None


def _bare_numbers(cells: "TextCells", habits: Habits) -> tuple[str, "TextCells"]:
    """The unit of a column of numbers, and its texts without it and without limits, if asked for.

    The texts themselves where nothing is to be taken off, or what is left would be no numbers.
    """
    bare, unit, filled = cells, "", ~cells.marker
    if habits.limits and cells.numbers.limit.any():
        bare = replace(bare, texts=without_limits(bare.texts))
    if not (bare.number & filled).any():  # otherwise not every number has one
        units = bare.numbers.unit
        if units.any() and (units | ~filled).all():
            unit = common_unit(bare.texts, units) or ""
            if unit:
                bare = replace(bare, texts=without_unit(bare.texts, unit))
    if bare is cells or not (bare.numbers.number | ~filled).all():
        return "", cells
    return unit, bare


@dataclass(frozen=True, eq=False)
class _Judge:
    """Decides about one column."""

    place: str
    name: str
    cells: TextCells
    habits: Habits

    def refuse(
        self, rule: str, these: Bools, fix: str, *, options: bool = True
    ) -> tuple[TextForm, DataError]:
        """Plain text for whoever needs no more, and why it is neither number nor date."""
        rows, total = self.cells.where(these), len(self.cells.index)
        if len(rows) <= _FOOTER < total // 3 and rows.min() >= total - _FOOTER:
            fix = f"{FOOTER} {fix}"
        elif rows.tolist() == [0] and total > 1 and rule == _MIXED:
            fix = f"Is it a second line of the header, with units? Then delete it. {fix}"
        if options:
            typed = as_option(self.name)
            named = f'--categorical {typed} (categorical=["{self.name}"])'
            fix = f'{fix} Or {named}, or --drop {typed} (drop=["{self.name}"]).'
        return TextForm(), DataError(self.place, rule, rows=rows, total=total, fix=fix)

    def numbers(self) -> tuple[TextForm, DataError | None]:
        cells, own = self.cells, self.cells.numbers
        other = ~cells.number & ~cells.marker
        if other.any():
            return self._mixed(other)
        point = own.point | clear_thousands(own.texts, ".")
        comma = own.comma | clear_thousands(own.texts, ",")
        if point.any() and comma.any():
            rule = "mixes decimal points and decimal commas"
            return self.refuse(rule, comma, "Write one of them.")
        decimal: Decimal | None = "." if point.any() else "," if comma.any() else self._doubtful()
        if decimal is None:
            rule = "may hold fractions or thousands (1,234)"
            fix = 'Say --decimal , or --decimal . (decimal="," or decimal=".").'
            return self.refuse(rule, own.maybe_comma | own.maybe_point, fix, options=False)
        grouped = are_grouped(own, decimal)
        wrong = wrongly_grouped(own, decimal)
        if wrong.any():
            rule = "has separators of thousands that do not fit its fractions"
            return self.refuse(rule, wrong, "Write 1234.5, not 1,234.5 or 1.234,5.")
        digits = matches(cells.texts, r"^[+-]?\d{1,18}$") | cells.marker
        zeros = bool(digits.all() and matches(cells.texts, r"^[+-]?0\d").any())
        coded = matches(cells.texts, r"^\d+[eE]\d+$") | cells.marker
        zeros |= bool(coded.all() or matches(cells.texts, r"^\d{19,}$").any())
        form = TextForm("number", decimal, missing=self._markers(), whole=bool(digits.all()))
        return replace(form, zeros=zeros, grouped=bool(grouped.any())), None

    def _mixed(self, other: Bools) -> tuple[TextForm, DataError]:
        """Numbers among which `other` texts stand."""
        cells, own = self.cells, self.cells.numbers
        kinds = [(own.limit, "limits such as < or >"), (own.unit, "numbers with a unit")]
        kinds += [(cells.dates.date, "dates"), (cells.dates.short_year, "dates")]
        told = list(dict.fromkeys(word for mask, word in kinds if (mask & other).any()))
        rule = _MIXED + (f" ({', '.join(told)})" if told else "")
        fix = 'Write numbers only, or name the texts that mean missing: --na TEXT (na=["TEXT"]).'
        if (own.limit | ~other).all():
            fix = 'Write numbers only, or --limits value (limits="value") reads <5 as 5, 85+ as 85.'
        return self.refuse(rule, other, fix)

    def _doubtful(self) -> Decimal | None:
        """The mark of a fraction where the column's own cells do not tell."""
        own, known = self.cells.numbers, self.habits.decimal
        doubtful = own.maybe_comma | own.maybe_point
        if known is not None:
            return known
        if not doubtful.any():
            return self.habits.usual or "."
        if beside_whole(own, ~self.cells.marker):
            return "." if own.maybe_comma.any() else ","
        plain_point = self.habits.usual == "." and not own.maybe_comma.any()
        return "." if plain_point else None

    def dates(self) -> tuple[TextForm, DataError | None]:
        cells, own = self.cells, self.cells.dates
        other = ~own.date & ~cells.marker
        if other.any():
            if cells.rows[own.date].sum() < cells.rows[other].sum():
                return TextForm(), None  # text, of which some looks like a date
            fix = "Write all as 2024-12-31 or 2024-12-31 23:59."
            return self.refuse("mixes dates and text", other, fix)
        forward = bool((own.day_first & ~own.dotted).any())
        backward = bool((own.month_first & ~own.dotted).any())
        if forward and backward:
            rule = "mixes day/month and month/day"
            return self.refuse(rule, own.month_first, "Write 2024-12-31.")
        order: DateOrder | None = "dmy" if forward else "mdy" if backward else self.habits.dates
        doubtful = own.year_last & ~own.dotted
        if order is None and doubtful.any():
            fix = 'Say --dates dmy or --dates mdy (dates="dmy" or dates="mdy").'
            rule = "may be day/month or month/day"
            return self.refuse(rule, doubtful, fix, options=False)
        mixed = own.zoned & own.date
        if mixed.any() and (own.timed & ~own.zoned & ~cells.marker).any():
            fix = "Write all with the zone (2024-12-31T23:59Z, +01:00), or none."
            return self.refuse("mixes times with and without a time zone", mixed, fix)
        form = TextForm("date", order=order or "dmy", missing=self._markers())
        form = replace(form, year_last=bool(own.year_last.any()))
        wrong = to_dates(cells.without(cells.marker), form.order)[1]
        if wrong.any():
            return self.refuse("must be dates that exist", wrong, "Mend or empty them.")
        return form, None

    def _markers(self) -> tuple[str, ...]:
        found: Sequence[str] = self.cells.texts.filter(as_mask(self.cells.marker)).to_pylist()
        return tuple(sorted({text for text in found if text}))
