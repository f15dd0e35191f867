"""Numbers as people write them: decimal points and commas, thousands, limits, units.

`1.234` may be a little more than one or over a thousand. A cell is clear if only one reading is
possible; what is not clear is decided by clear cells of its column, then of its file, or not.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from etips.data.decisions import Bools, Floats

Decimal = Literal[",", "."]

MARKERS = (
    *("-", "--", "---", ".", "..", "...", "?", "*", "n/a", "na", "n.a.", "n.a", "nil", "missing"),
    *("unknown", "unk", "unkn", "not known", "not available", "not recorded", "not measured"),
    *("not done", "not applicable", "nd", "n.d.", "no data", "undefined", "unbekannt", "k.a."),
    *("keine angabe", "inconnu", "desconocido", "sconosciuto", "desconhecido", "onbekend"),
    *("#n/a", "#value!", "#div/0!", "#ref!", "#name?", "#num!", "#null!"),
)
"""Cells, in small letters, that mean "missing" in a column of numbers or dates."""

_SIGN = r"\d|(?i:nan|inf)"  # of every number, and looked for in no time
_END = r"([eE][+-]?\d+)?$"
_PLAIN = rf"^[+-]?\d+{_END}|^[+-]?(?i:nan|inf|infinity)$"
_AMBIGUOUS = r"^[+-]?[1-9]\d{0,2}%s\d{3}$"
_FRACTION = rf"^[+-]?(\d+%s\d*|%s\d+){_END}"
_THOUSANDS = r"^[+-]?\d{1,3}([., '\x{2019}\x{a0}\x{202f}]\d{3})+([.,]\d*)?$"
_NUMBER = r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?"
_LIMIT = rf"^([<>≤≥~]=?\s*{_NUMBER}|{_NUMBER}\s*[+<>])"
_UNIT = (
    rf"^{_NUMBER}\s*(?i:%|‰|°c?|mg|g|kg|ug|µg|mcg|ng|ml|dl|l|cl|mm|cm|m|mmol|mol|umol|µmol|meq|iu|ie"
    r"|u|mu|mmhg|kpa|cmh2o|bpm|/min|h|hr|hrs|hours?|min|mins|minutes?|s|sec|d|days?|wks?|weeks?"
    r"|mos?|months?|y|yrs?|years?|jahre?|monate?|tage?|wochen?|stunden?|ans?|mois|jours?|anni|mesi"
    r"|kcal|w|hz|f|c)\.?(/[a-zA-Z0-9µ/.]+)?$"
)


@dataclass(frozen=True, eq=False)
class NumberCells:
    """Which of some texts are which kind of number, each of shape (n,).

    Args:
        plain: Whole numbers, or with an exponent; NaN and infinity.
        point: Only a decimal point is possible.
        comma: Only a decimal comma is possible.
        maybe_point: `1.234`: a decimal point, or thousands.
        maybe_comma: `1,234`: a decimal comma, or thousands.
        thousands: With separators of thousands for sure.
        texts: The texts themselves.
    """

    plain: Bools
    point: Bools
    comma: Bools
    maybe_point: Bools
    maybe_comma: Bools
    thousands: Bools
    texts: pa.Array

    @cached_property
    def limit(self) -> Bools:
        """Below or above a number, and no number itself."""
        return matches(self.texts, _LIMIT) & ~self.number

    @cached_property
    def unit(self) -> Bools:
        """A number and its unit."""
        return matches(self.texts, _UNIT) & ~self.number & ~self.limit

    @property
    def number(self) -> Bools:
        """Which can be read as a number, once it is clear how."""
        marked = self.point | self.comma | self.maybe_point | self.maybe_comma
        return self.plain | marked | self.thousands


def sort_numbers(texts: pa.Array) -> NumberCells:
    """Say of every text which kind of number it is, if any."""
    if not matches(texts, _SIGN).any():
        none = np.zeros(len(texts), bool)
        return NumberCells(none, none, none, none, none, none, texts)
    plain = matches(texts, _PLAIN)
    maybe_point, maybe_comma = (matches(texts, _AMBIGUOUS % mark) for mark in (r"\.", ","))
    point, comma = (matches(texts, _FRACTION % (mark, mark)) for mark in (r"\.", ","))
    point, comma = point & ~maybe_point, comma & ~maybe_comma
    simple = plain | point | comma | maybe_point | maybe_comma
    thousands = matches(texts, _THOUSANDS) & ~simple
    return NumberCells(plain, point, comma, maybe_point, maybe_comma, thousands, texts)


def as_mask(these: Bools) -> pa.Array:
    """Yes and no for Arrow; its own `pa.array` imports pandas, which takes its time."""
    bits = pa.py_buffer(np.packbits(these, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(these), [None, bits])


def as_values(values: NDArray[Any], kind: pa.DataType, missing: Bools) -> pa.Array:
    """Numbers of eight bytes for Arrow, null where they are missing."""
    valid = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    cells = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [valid, cells])


def matches(texts: pa.Array, pattern: str) -> Bools:
    """Which texts match, shape (n,)."""
    found: Bools = pc.fill_null(pc.match_substring_regex(texts, pattern), False).to_numpy(
        zero_copy_only=False
    )
    return found


def to_numbers(texts: pa.Array, decimal: Decimal) -> Floats:
    """Texts that are numbers as float64; null is NaN."""
    if decimal == ",":
        texts = pc.replace_substring(texts, ",", ".")
    lower = pc.utf8_lower(texts)
    odd = matches(lower, r"nan|inf")
    plain = pc.if_else(as_mask(odd), pa.scalar(None, lower.type), lower)
    parsed = pc.fill_null(pc.cast(pc.utf8_ltrim(plain, "+"), pa.float64()), np.nan)
    values: Floats = parsed.to_numpy(zero_copy_only=False).copy()
    for at in np.flatnonzero(odd):
        values[at] = float(lower[int(at)].as_py())
    return values


_SPACES = r"[ '\x{2019}\x{a0}\x{202f}]"
_ONLY = {
    decimal: rf"^[+-]?\d{{1,3}}(?:(?:{other}\d{{3}}){{2,}}(?:{mark}\d*)?"
    rf"|(?:{other}\d{{3}})+{mark}\d*|(?:{_SPACES}\d{{3}})+{mark}\d*)$"
    for decimal, mark, other in ((".", r"\.", ","), (",", ",", r"\."))
}
_EITHER = rf"^[+-]?\d{{1,3}}(?:{_SPACES}\d{{3}})+$"
_LEADING_NUMBER = re.compile(r"^[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?")
_CODES = 12  # different cells such as 2b, in which one letter behind a number is no unit
_LEAST_WHOLE = 100  # whole numbers from this on do not stand among fractions of three digits


def common_unit(texts: pa.Array, these: Bools) -> str | None:
    """The unit that all of `these` texts have behind their number; None if they differ."""
    cells = texts.filter(as_mask(these)).to_pylist()
    tails = [_LEADING_NUMBER.sub("", cell) for cell in cells]
    units = {tail.strip().casefold() for tail in tails}
    if len(units) != 1:
        return None
    unit = tails[0].strip()
    letter = len(unit) == 1 and unit.isalpha()
    codes = letter and len(cells) <= _CODES and not any(tail[:1].isspace() for tail in tails)
    return None if codes else unit


def units_differ(texts: pa.Array, these: Bools) -> bool:
    """Whether `these` numbers with a unit have different ones."""
    cells = texts.filter(as_mask(these)).to_pylist()
    return len({_LEADING_NUMBER.sub("", cell).strip().casefold() for cell in cells}) > 1


def without_unit(texts: pa.Array, unit: str) -> pa.Array:
    """The numbers alone."""
    return pc.replace_substring_regex(texts, rf"(?i)\s*{re.escape(unit)}$", "")


def without_limits(texts: pa.Array) -> pa.Array:
    """Cells such as <5 and 85+ as the number that they name; others as they are."""
    bare = pc.replace_substring_regex(texts, r"^[<>≤≥~]=?\s*", "")
    return pc.replace_substring_regex(bare, r"(\d)\s*[+<>]$", r"\1")


def clear_thousands(texts: pa.Array, decimal: Decimal) -> Bools:
    """Which texts have separators of thousands that leave only this mark for fractions."""
    return matches(texts, _ONLY[decimal])


def are_grouped(own: NumberCells, decimal: Decimal) -> Bools:
    """Which cells hold separators of thousands, if fractions have this mark."""
    doubtful = own.maybe_comma if decimal == "." else own.maybe_point
    return own.thousands | doubtful


def wrongly_grouped(own: NumberCells, decimal: Decimal) -> Bools:
    """Which cells with separators of thousands cannot be meant with this mark of fractions.

    `1,234` beside `36.6` is as likely a slip for 1.234, unless `1,234.5` shows the habit.
    """
    habit = clear_thousands(own.texts, decimal)
    fits = habit | matches(own.texts, _EITHER)
    if not habit.any() and (own.point | own.comma).any():
        return are_grouped(own, decimal) & ~fits
    return own.thousands & ~fits


def beside_whole(own: NumberCells, filled: Bools) -> bool:
    """Whether `1,234` stands among whole numbers of up to three digits only, some over a hundred.

    Then it is more than a thousand, not a little more than one.
    """
    rest = filled & ~(own.maybe_comma | own.maybe_point)
    short = matches(own.texts, r"^[+-]?\d{1,3}$")
    large = matches(own.texts, rf"^[+-]?[1-9]\d{{{len(str(_LEAST_WHOLE)) - 1}}}$")
    one_mark = not (own.maybe_comma.any() and own.maybe_point.any())
    return bool(one_mark and (rest & large).any() and not (rest & ~short).any())


def without_thousands(texts: pa.Array, decimal: Decimal) -> pa.Array:
    """Numbers without separators of thousands."""
    other = r"\." if decimal == "," else ","
    return pc.replace_substring_regex(texts, rf"(\d)(?:{_SPACES}|{other})(\d)", r"\1\2")
