"""What columns of text hold: numbers, dates, plain text, or a mixture that the user must mend.

`1.234` may be a little more than one or over a thousand, `1/2/2024` in January or February. A cell
is clear if only one reading is possible; what is not clear is decided by clear cells of its column,
then of its file, or not. Only distinct texts are looked at, and no message quotes one, well-known
marks of a missing value apart.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache, cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from etips.data.decisions import Bools, Floats, Ints
from etips.data.tables.arrow_columns import encode
from etips.errors import DataError, as_option

Decimal = Literal[",", "."]
DateOrder = Literal["dmy", "mdy"]

MARKERS = (
    *("-", "--", "---", ".", "..", "...", "?", "*", "n/a", "na", "n.a.", "n.a", "nil", "missing"),
    *("unknown", "unk", "unkn", "not known", "not available", "not recorded", "not measured"),
    *("not done", "not applicable", "nd", "n.d.", "no data", "undefined", "unbekannt", "k.a."),
    *("keine angabe", "inconnu", "desconocido", "sconosciuto", "desconhecido", "onbekend"),
    *("#n/a", "#value!", "#div/0!", "#ref!", "#name?", "#num!", "#null!"),
)
"""Cells, in small letters, that mean "missing" in a column of numbers or dates."""

FOOTER = "Is it a footer? Then delete it from the file."
"""How a remedy begins where only the last rows are at fault."""

_PYTHON_NULL = "None"  # none in small letters may be a dose of 0
_FOOTER_ROWS = 3  # at the end, that may be one
_MIXED = "mixes numbers and text"
_PAIR = r"^\d+(\.\d+)?\s*/\s*\d+(\.\d+)?$"  # 120/80
_FEW_PAIRS = 12  # different ones that may still be the levels of a category
_CODES = 12  # different cells such as 2b, in which one letter behind a number is no unit

_END = r"([eE][+-]?\d+)?$"
_PLAIN = rf"^[+-]?\d+{_END}|^[+-]?(?i:nan|inf|infinity)$"
_AMBIGUOUS = r"^[+-]?[1-9]\d{0,2}%s\d{3}$"
_FRACTION = rf"^[+-]?(\d+%s\d*|%s\d+){_END}"
_SPACES = r"[ '\x{2019}\x{a0}\x{202f}]"
_THOUSANDS = r"^[+-]?\d{1,3}([., '\x{2019}\x{a0}\x{202f}]\d{3})+([.,]\d*)?$"
_CLEAR_THOUSANDS = {  # that leave only this mark for fractions
    decimal: rf"^[+-]?\d{{1,3}}(?:(?:{other}\d{{3}}){{2,}}(?:{mark}\d*)?"
    rf"|(?:{other}\d{{3}})+{mark}\d*|(?:{_SPACES}\d{{3}})+{mark}\d*)$"
    for decimal, mark, other in ((".", r"\.", ","), (",", ",", r"\."))
}
_NUMBER = r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?"
_LIMIT = rf"^([<>≤≥~]=?\s*{_NUMBER}|{_NUMBER}\s*[+<>])"
_UNIT = (
    rf"^{_NUMBER}\s*(?i:%|‰|°c?|mg|g|kg|ug|µg|mcg|ng|ml|dl|l|cl|mm|cm|m|mmol|mol|umol|µmol|meq|iu|ie"
    r"|u|mu|mmhg|kpa|cmh2o|bpm|/min|h|hr|hrs|hours?|min|mins|minutes?|s|sec|d|days?|wks?|weeks?"
    r"|mos?|months?|y|yrs?|years?|jahre?|monate?|tage?|wochen?|stunden?|ans?|mois|jours?|anni|mesi"
    r"|kcal|w|hz|f|c)\.?(/[a-zA-Z0-9µ/.]+)?$"
)
_LEADING_NUMBER = re.compile(r"^[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?")

_TIME = (
    r"(?:[ T:]\s*(\d{1,2}):(\d{2})"
    r"(?::(\d{2})(?:[.,](\d{1,9}))?)?"
    r"\s*([AaPp]\.?[Mm]\.?)?"
    r"(?:Z|([+-])(\d{2})(?::?(\d{2}))?)?)?$"
)
_YEAR_FIRST = r"^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})" + _TIME
_YEAR_LAST = r"^(\d{1,2})([-/.])(\d{1,2})[-/.](\d{4})" + _TIME
_NAMED = r"^(\d{1,2})[-/ .]{0,2}(\pL{3})\pL*[-/ .,]{0,2}(\d{4})" + _TIME
_SHORT_YEAR = r"^\d{1,2}[-/]\d{1,2}[-/]\d{2}(?:[ T]\s*\d{1,2}:\d{2}(:\d{2})?)?$"
_OVER_12 = r"(?:1[3-9]|[2-9]\d)"
_DAY_AND_CLOCK = re.compile(
    r"^(\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}[-/ .]{0,2}[^\W\d_]{3,}[-/ .,]{0,2}\d{4})(.*)$"
)
_DAY_PARTS = re.compile(r"\d+|[^\W\d_]+")
_CLOCK = re.compile(_TIME)
_BEGINNING = r"^\d{1,4}[-/. \pL]"  # of every date
_DIGIT = r"\d|(?i:nan|inf)"  # in every number
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan", "feb fév", "mar mrz mär", "apr avr", "may mai", "jun", "jul", "aug aoû",
            "sep", "oct okt", "nov", "dec dez déc",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
_LATEST = 2_262  # the last year that nanoseconds can tell


def as_mask(these: Bools) -> pa.Array:
    """Yes and no for Arrow; its own `pa.array` imports pandas, which takes its time."""
    bits = pa.py_buffer(np.packbits(these, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(these), [None, bits])


def as_values(values: NDArray[Any], kind: pa.DataType, missing: Bools) -> pa.Array:
    """Numbers of eight bytes for Arrow, null where they are missing."""
    valid = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    cells = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [valid, cells])


def _matches(texts: pa.Array, pattern: str) -> Bools:
    matching = pc.fill_null(pc.match_substring_regex(texts, pattern), False)
    found: Bools = matching.to_numpy(zero_copy_only=False)
    return found


class NumberCells(NamedTuple):
    """Which of some texts spell which kind of number, shape (d,) each.

    Args:
        point: Only a decimal point is possible.
        comma: Only a decimal comma is possible.
        maybe_point: `1.234`: a decimal point, or thousands.
        maybe_comma: `1,234`: a decimal comma, or thousands.
        thousands: With separators of thousands for sure.
        any: Any of these, or a plain number.
    """

    point: Bools
    comma: Bools
    maybe_point: Bools
    maybe_comma: Bools
    thousands: Bools
    any: Bools


@dataclass(frozen=True, eq=False)
class TextCells:
    """Distinct texts of a column, trimmed, and what each could be, shape (d,) each.

    Args:
        texts: The texts.
        index: Which of them each row has, -1 where there is none, shape (n,).
        marker: Which are well-known marks of a missing value.
    """

    texts: pa.Array
    index: Ints
    marker: Bools

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> "TextCells":
        """Sort the texts of a column, which must be UTF-8."""
        texts, index = encode(column)
        texts = pc.utf8_trim_whitespace(pc.cast(texts, pa.string()))
        texts = pc.replace_substring(texts, "\u2212", "-")  # the minus sign of typesetters
        marks = pa.array(["", *MARKERS], pa.string())
        marked = pc.is_in(pc.utf8_lower(texts), value_set=marks)
        marker = pc.or_(marked, pc.equal(texts, _PYTHON_NULL))
        return cls(texts, index, marker.to_numpy(zero_copy_only=False))

    def matches(self, pattern: str, *, first: str = "") -> Bools:
        """Which texts match; `first` is looked for in no time, and must be in one of them."""
        if first and not _matches(self.texts, first).any():
            return np.zeros(len(self.texts), bool)
        return _matches(self.texts, pattern)

    @cached_property
    def spelt(self) -> NumberCells:
        """Which texts spell numbers, and how; marks of a missing value may be among them."""
        if not self.matches(_DIGIT).any():
            return NumberCells(*np.zeros((6, len(self.texts)), bool))
        maybe_point, maybe_comma = (self.matches(_AMBIGUOUS % mark) for mark in (r"\.", ","))
        point, comma = (self.matches(_FRACTION % (mark, mark)) for mark in (r"\.", ","))
        point, comma = point & ~maybe_point, comma & ~maybe_comma
        simple = self.matches(_PLAIN) | point | comma | maybe_point | maybe_comma
        thousands = self.matches(_THOUSANDS) & ~simple
        every = simple | thousands
        return NumberCells(point, comma, maybe_point, maybe_comma, thousands, every)

    @property
    def number(self) -> Bools:
        """Which can be read as numbers, once it is clear how."""
        return self.spelt.any & ~self.marker

    @cached_property
    def limit(self) -> Bools:
        """Below or above a number, and no number itself."""
        return self.matches(_LIMIT, first=_DIGIT) & ~self.spelt.any

    @cached_property
    def unit(self) -> Bools:
        """A number and its unit."""
        return self.matches(_UNIT, first=_DIGIT) & ~self.spelt.any & ~self.limit

    @cached_property
    def date(self) -> Bools:
        """Which can be read as a date, once it is clear how."""
        return self.matches("|".join((_YEAR_FIRST, _YEAR_LAST, _NAMED)), first=_BEGINNING)

    def without(self, these: Bools) -> pa.Array:
        """The texts, null in place of `these`."""
        return pc.if_else(as_mask(these), pa.scalar(None, self.texts.type), self.texts)

    def rows_of(self, these: Bools) -> Ints:
        """Rows that have one of `these` texts."""
        return np.flatnonzero(np.append(these, False)[self.index])

    def tails(self, these: Bools) -> list[str]:
        """What stands behind the number in each of `these` texts."""
        cells = self.texts.filter(as_mask(these)).to_pylist()
        return [_LEADING_NUMBER.sub("", cell) for cell in cells]


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

    def apply_to(self, cells: TextCells) -> pa.ChunkedArray:
        """The same of texts that are sorted; plain text is trimmed."""
        texts = cells.without(cells.marker)
        if self.limits:
            texts = without_limits(texts)
        if self.unit:
            texts = _without_unit(texts, self.unit)
        if self.grouped:
            other = r"\." if self.decimal == "," else ","
            texts = pc.replace_substring_regex(texts, rf"(\d)(?:{_SPACES}|{other})(\d)", r"\1\2")
        missing = pc.is_null(texts).to_numpy(zero_copy_only=False)
        if self.kind == "text":
            values = cells.without(cells.matches("^$"))
        elif self.kind == "date":
            stamps = to_dates(texts, self.order).astype(np.int64)
            values = as_values(stamps, self.type, missing)
        elif self.whole:
            values = pc.cast(pc.utf8_ltrim(texts, "+"), self.type)
        else:
            values = as_values(to_numbers(texts, self.decimal), self.type, missing)
        rows = as_values(cells.index, pa.int64(), cells.index < 0)
        return pa.chunked_array([values.take(rows)], values.type)


def without_limits(texts: pa.Array) -> pa.Array:
    """Cells such as <5 and 85+ as the number that they name; others as they are."""
    bare = pc.replace_substring_regex(texts, r"^[<>≤≥~]=?\s*", "")
    return pc.replace_substring_regex(bare, r"(\d)\s*[+<>]$", r"\1")


def _without_unit(texts: pa.Array, unit: str) -> pa.Array:
    return pc.replace_substring_regex(texts, rf"(?i)\s*{re.escape(unit)}$", "")


def to_numbers(texts: pa.Array, decimal: Decimal) -> Floats:
    """Texts that are numbers as float64; null is NaN."""
    lower = pc.utf8_lower(pc.replace_substring(texts, decimal, "."))
    odd = _matches(lower, r"nan|inf")
    plain = pc.if_else(as_mask(odd), pa.scalar(None, lower.type), lower)
    parsed = pc.fill_null(pc.cast(pc.utf8_ltrim(plain, "+"), pa.float64()), np.nan)
    values: Floats = parsed.to_numpy(zero_copy_only=False).copy()
    for at in np.flatnonzero(odd):
        values[at] = float(lower[int(at)].as_py())
    return values


def to_dates(texts: pa.Array, order: DateOrder) -> NDArray[np.datetime64]:
    """Dates in microseconds; NaT where there is none, or none that exists."""
    day, clock = cache(partial(_day, order=order)), cache(_clock)  # many texts share one of them
    stamps = np.full(len(texts), np.iinfo(np.int64).min)  # as NumPy writes NaT
    for at, text in enumerate(texts.to_pylist()):
        parts = None if text is None else _DAY_AND_CLOCK.match(text)
        if parts is not None:
            midnight, since = day(parts[1]), clock(parts[2])
            if midnight is not None and since is not None:
                stamps[at] = midnight + since
    return stamps.view("datetime64[us]")


def _day(text: str, order: DateOrder) -> int | None:
    """Midnight of a date in microseconds since 1970, in UTC; None where there is no such date."""
    first, second, third = _DAY_PARTS.findall(text)
    dotted = text[len(first)] == "."  # with dots the day always stands first
    if len(first) == 4:
        year, month, day = first, second, third
    elif dotted or order == "dmy" or not second.isdigit():
        day, month, year = first, second, third
    else:
        month, day, year = first, second, third
    number = int(month) if month.isdigit() else _MONTHS.get(month[:3].lower(), 0)
    try:
        found = date(int(year), number, int(day))
    except ValueError:
        return None
    days = found.toordinal() - date(1970, 1, 1).toordinal()
    return days * 86_400 * 10**6 if found.year < _LATEST else None


def _clock(text: str) -> int | None:
    """Microseconds from midnight in UTC to a time of day, which may be left out."""
    parts = _CLOCK.match(text)
    if parts is None:
        return None
    hour, minute, second, part, half, sign, ahead, more = (own or "" for own in parts.groups())
    hours = int(hour or 0)
    if half[:1] in ("p", "P") and hours < 12:
        hours += 12
    elif half[:1] in ("a", "A") and hours == 12:
        hours = 0
    minutes, seconds = int(minute or 0), int(second or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    minutes -= (60 * int(ahead or 0) + int(more or 0)) * (-1 if sign == "-" else 1)
    return ((hours * 60 + minutes) * 60 + seconds) * 10**6 + int(part.ljust(6, "0")[:6])


@dataclass(frozen=True)
class Habits:
    """How the numbers and dates of a file are written, where a column alone does not tell.

    Args:
        decimal: Mark of a fraction, None if it is not known.
        dates: What stands first in a date, None if it is not known.
        limits: Whether cells such as <5 and 85+ are read as their number.
        na: Cells that mean "missing" by the user's own words.
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
    empty = cells.marker
    unit, bare = _bare_numbers(cells, limits=habits.limits)
    if bare is not cells:
        form, fault = replace(judge, cells=bare).numbers()
        return replace(form, unit=unit, limits=habits.limits), fault
    if cells.number.any():
        return judge.numbers()
    if cells.date.any():
        return judge.dates()
    short = cells.matches(_SHORT_YEAR, first=_BEGINNING)
    if (~empty & short).any() and (short | empty).all():
        return judge.refuse("has years of two digits", short, "Write all four.")
    pairs = cells.matches(_PAIR)
    if pairs.sum() > _FEW_PAIRS and (pairs | empty).all():
        fix = "Write each into a column of its own."
        return judge.refuse("holds two numbers in a cell", pairs, fix)
    units = cells.unit
    different = {tail.strip().casefold() for tail in cells.tails(units)}
    if len(different) > 1 and (units | empty).all():
        fix = "Write the number alone and the unit into the column's name."
        return judge.refuse("holds numbers with different units", units, fix)
    return TextForm(), None


def _bare_numbers(cells: TextCells, *, limits: bool) -> tuple[str, TextCells]:
    """The unit of a column of numbers, and its texts without it and without limits, if asked for.

    The texts themselves where nothing is to be taken off, or what is left would be no numbers.
    """
    bare, unit, empty = cells, "", cells.marker
    if limits and cells.limit.any():
        bare = replace(bare, texts=without_limits(bare.texts))
    with_unit = bare.unit.any() and (bare.unit | empty).all()
    if with_unit:
        tails = bare.tails(bare.unit)
        own = tails[0].strip()
        apart = any(tail[:1].isspace() for tail in tails)
        codes = len(own) == 1 and own.isalpha() and len(tails) <= _CODES and not apart  # 1a, 2b
        if not codes and len({tail.strip().casefold() for tail in tails}) == 1:
            unit = own
            bare = replace(bare, texts=_without_unit(bare.texts, unit))
    if bare is cells or not (bare.spelt.any | empty).all():
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
        """Plain text where no more is needed, and why it is neither number nor date."""
        rows, total = self.cells.rows_of(these), len(self.cells.index)
        if len(rows) <= _FOOTER_ROWS < total // 3 and rows.min() >= total - _FOOTER_ROWS:
            fix = f"{FOOTER} {fix}"
        elif rows.tolist() == [0] and total > 1 and rule == _MIXED:
            fix = f"Is it a second line of the header, with units? Then delete it. {fix}"
        if options:
            typed = as_option(self.name)
            named = f'--categorical {typed} (categorical=["{self.name}"])'
            fix = f'{fix} Or {named}, or --drop {typed} (drop=["{self.name}"]).'
        return TextForm(), DataError(self.place, rule, rows=rows, total=total, fix=fix)

    def numbers(self) -> tuple[TextForm, DataError | None]:
        cells = self.cells
        other = ~cells.number & ~cells.marker
        if other.any():
            return self._mixed(other)
        own = cells.spelt
        clear = {mark: cells.matches(pattern) for mark, pattern in _CLEAR_THOUSANDS.items()}
        point, comma = own.point | clear["."], own.comma | clear[","]
        if point.any() and comma.any():
            rule = "mixes decimal points and decimal commas"
            return self.refuse(rule, comma, "Write one of them.")
        decimal: Decimal | None = "." if point.any() else "," if comma.any() else self._doubtful()
        if decimal is None:
            rule = "may hold fractions or thousands (1,234)"
            fix = 'Say --decimal , or --decimal . (decimal="," or decimal=".").'
            return self.refuse(rule, own.maybe_comma | own.maybe_point, fix, options=False)
        grouped = own.thousands | (own.maybe_comma if decimal == "." else own.maybe_point)
        fits = clear[decimal] | cells.matches(rf"^[+-]?\d{{1,3}}(?:{_SPACES}\d{{3}})+$")
        # `1,234` beside `36.6` is as likely a slip for 1.234, unless `1,234.5` shows the habit.
        slip = not clear[decimal].any() and (own.point | own.comma).any()
        wrong = (grouped if slip else own.thousands) & ~fits
        if wrong.any():
            rule = "has separators of thousands that do not fit its fractions"
            return self.refuse(rule, wrong, "Write 1234.5, not 1,234.5 or 1.234,5.")
        digits = bool((cells.matches(r"^[+-]?\d{1,18}$") | cells.marker).all())
        zeros = digits and bool(cells.matches(r"^[+-]?0\d").any())
        zeros |= bool((cells.matches(r"^\d+[eE]\d+$") | cells.marker).all())
        zeros |= bool(cells.matches(r"^\d{19,}$").any())
        form = TextForm("number", decimal, missing=self._markers(), whole=digits)
        return replace(form, zeros=zeros, grouped=bool(grouped.any())), None

    def _mixed(self, other: Bools) -> tuple[TextForm, DataError]:
        """Numbers among which `other` texts stand."""
        cells = self.cells
        kinds = [(cells.limit, "limits such as < or >"), (cells.unit, "numbers with a unit")]
        kinds += [(cells.date | cells.matches(_SHORT_YEAR), "dates")]
        words = [word for mask, word in kinds if (mask & other).any()]
        rule = _MIXED + (f" ({', '.join(words)})" if words else "")
        fix = 'Write numbers only, or name the texts that mean missing: --na TEXT (na=["TEXT"]).'
        if (cells.limit | ~other).all():
            fix = 'Write numbers only, or --limits value (limits="value") reads <5 as 5, 85+ as 85.'
        return self.refuse(rule, other, fix)

    def _doubtful(self) -> Decimal | None:
        """The mark of a fraction where the column's own cells do not tell."""
        cells, known, own = self.cells, self.habits.decimal, self.cells.spelt
        doubtful = own.maybe_comma | own.maybe_point
        if known is not None:
            return known
        if not doubtful.any():
            return self.habits.usual or "."
        # Among whole numbers of up to three digits only, some over a hundred, `1,234` is more than
        # a thousand, not a little more than one.
        rest = ~cells.marker & ~doubtful
        one_mark = not (own.maybe_comma.any() and own.maybe_point.any())
        large, short = cells.matches(r"^[+-]?[1-9]\d{2}$"), cells.matches(r"^[+-]?\d{1,3}$")
        if one_mark and (rest & large).any() and not (rest & ~short).any():
            return "." if own.maybe_comma.any() else ","
        plain_point = self.habits.usual == "." and not own.maybe_comma.any()
        return "." if plain_point else None

    def dates(self) -> tuple[TextForm, DataError | None]:
        cells = self.cells
        other = ~cells.date & ~cells.marker
        if other.any():
            if cells.rows_of(cells.date).size < cells.rows_of(other).size:
                return TextForm(), None  # text, of which some looks like a date
            fix = "Write all as 2024-12-31 or 2024-12-31 23:59."
            return self.refuse("mixes dates and text", other, fix)
        year_last = cells.matches(_YEAR_LAST)
        doubtful = year_last & ~cells.matches(r"^\d{1,2}\.")
        forward = doubtful & cells.matches(rf"^{_OVER_12}[-/.]")
        backward = doubtful & cells.matches(rf"^\d{{1,2}}[-/.]{_OVER_12}[-/.]")
        if forward.any() and backward.any():
            rule = "mixes day/month and month/day"
            return self.refuse(rule, backward, "Write 2024-12-31.")
        order: DateOrder | None = self.habits.dates
        order = "dmy" if forward.any() else "mdy" if backward.any() else order
        if order is None and doubtful.any():
            fix = 'Say --dates dmy or --dates mdy (dates="dmy" or dates="mdy").'
            rule = "may be day/month or month/day"
            return self.refuse(rule, doubtful, fix, options=False)
        timed = cells.matches(r"\d[T :]\s*\d{1,2}:\d{2}")
        zoned = cells.date & cells.matches(r":\d{2}(?:[.,]\d+)?\s*(?:Z|[+-]\d{2}(?::?\d{2})?)$")
        if zoned.any() and (timed & ~zoned & ~cells.marker).any():
            fix = "Write all with the zone (2024-12-31T23:59Z, +01:00), or none."
            return self.refuse("mixes times with and without a time zone", zoned, fix)
        form = TextForm("date", order=order or "dmy", missing=self._markers())
        form = replace(form, year_last=bool(year_last.any()))
        wrong = np.isnat(to_dates(cells.texts, form.order)) & ~cells.marker
        if wrong.any():
            return self.refuse("must be dates that exist", wrong, "Mend or empty them.")
        return form, None

    def _markers(self) -> tuple[str, ...]:
        marks: Sequence[str] = self.cells.texts.filter(as_mask(self.cells.marker)).to_pylist()
        return tuple(sorted({text for text in marks if text}))
