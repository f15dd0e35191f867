"""What people write around numbers and what is taken off them: units, limits, thousands."""

import re

import pyarrow as pa
import pyarrow.compute as pc

from etips.data.decisions import Bools
from etips.data.tables.number_cells import Decimal, NumberCells, as_mask, matches

_SPACES = r"[ '\x{2019}\x{a0}\x{202f}]"
_ONLY = {
    decimal: rf"^[+-]?\d{{1,3}}(?:(?:{other}\d{{3}}){{2,}}(?:{mark}\d*)?"
    rf"|(?:{other}\d{{3}})+{mark}\d*|(?:{_SPACES}\d{{3}})+{mark}\d*)$"
    for decimal, mark, other in ((".", r"\.", ","), (",", ",", r"\."))
}
_EITHER = rf"^[+-]?\d{{1,3}}(?:{_SPACES}\d{{3}})+$"
_NUMBER = re.compile(r"^[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?")
_CODES = 12  # different cells such as 2b, in which one letter behind a number is no unit
_LEAST_WHOLE = 100  # whole numbers from this on do not stand among fractions of three digits


def common_unit(texts: pa.Array, these: Bools) -> str | None:
    """The unit that all of `these` texts have behind their number; None if they differ.

    Args:
        texts: Cells of a column, trimmed.
        these: Those that hold a number with a unit.
    """
    cells = texts.filter(as_mask(these)).to_pylist()
    tails = [_NUMBER.sub("", cell) for cell in cells]
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
    return len({_NUMBER.sub("", cell).strip().casefold() for cell in cells}) > 1


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
