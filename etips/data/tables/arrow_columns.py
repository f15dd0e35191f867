"""Arrow columns into NumPy arrays, refusing what they may not hold by place, rule and row."""

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from etips.data.coded import Floats32
from etips.data.decisions import Bools, Floats, Ints
from etips.errors import DataError, require

_ROWS = 4096  # rows turned from columns to rows together: about one level-2 cache
_LONGEST = 255  # characters of an identifier; NumPy gives every one the room of the longest

_TEXT = (types.is_string, types.is_large_string, types.is_string_view)
_BYTES = (types.is_binary, types.is_large_binary, types.is_binary_view)
_NUMBERS = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)


def is_text(kind: pa.DataType) -> bool:
    """Whether a column holds text (or bytes, which is text that is not UTF-8)."""
    return any(holds(kind) for holds in (*_TEXT, *_BYTES))


def is_categorical(kind: pa.DataType) -> bool:
    """Whether a column is dictionary-encoded: a pandas category, a polars categorical or enum."""
    return bool(types.is_dictionary(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether a column can become float32 as it stands; an all-null column counts."""
    return any(holds(kind) for holds in (*_NUMBERS, types.is_null))


def is_time(kind: pa.DataType) -> bool:
    """Whether a column holds dates, with or without a time of day."""
    return bool(types.is_timestamp(kind) or types.is_date(kind))


def require_number(where: str, column: pa.ChunkedArray, *, fix: str = "") -> None:
    """Refuse a column that is not numeric, saying how many rows are to blame."""
    kind = column.type.value_type if is_categorical(column.type) else column.type
    if is_number(kind):
        return
    if is_text(kind):
        bad = _no_number(column)
        require(where, "must be numeric, is text", ~bad if bad.any() else bad, fix=fix)
    raise DataError(where, "must be numeric or boolean", fix="Turn times into hours, say.")


def numbers(where: str, column: pa.ChunkedArray) -> Floats:
    """A numeric or boolean column as float64, NaN where it is null."""
    require_number(where, column)
    column = spell_out(column)
    if types.is_boolean(column.type):
        column = pc.cast(column, pa.int8())
    elif types.is_decimal(column.type) or types.is_null(column.type):
        column = pc.cast(column, pa.float64())
    values: Floats = column.to_numpy().astype(np.float64, copy=False)
    return values


def _no_number(column: pa.ChunkedArray) -> Bools:
    """Where a column of text or bytes holds something that is not a number, shape (n,)."""
    pattern = r"^\s*([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:true|false))\s*$"
    number = pc.match_substring_regex(pc.cast(spell_out(column), pa.binary()), pattern)
    odd: Bools = ~pc.fill_null(number, True).to_numpy()
    return odd


def fill_rows(out: Floats32, columns: list[pa.ChunkedArray]) -> None:
    """Write numeric columns side by side into `out`, shape (n, len(columns))."""
    arrays = [column.to_numpy() if is_plain(column) else numbers("", column) for column in columns]
    fill_columns(out, arrays)


def fill_columns(out: Floats32, arrays: Sequence[NDArray[Any]]) -> None:
    """Write arrays side by side into `out`, shape (n, len(arrays)).

    A few thousand rows at once: column after column over all rows would touch every cache line of
    `out` once a column.
    """
    with np.errstate(over="ignore"):  # too large for float32 becomes inf, which is refused later
        for start in range(0, len(out), _ROWS):
            block = out[start : start + _ROWS]
            for position, values in enumerate(arrays):
                block[:, position] = values[start : start + _ROWS]


def is_plain(column: pa.ChunkedArray) -> bool:
    """Whether a column is of floats that NumPy has too, so that it need not be turned into any."""
    return bool(types.is_floating(column.type)) and not types.is_float16(column.type)


def labels(where: str, column: pa.ChunkedArray) -> tuple[NDArray[Any], Ints]:
    """Identifiers: the distinct ones in order, and which of them each row has.

    Whole numbers order as numbers, anything else as text; null is refused.
    """
    require(where, "must not be missing", ~column.is_null(nan_is_null=True).to_numpy())
    kind = column.type
    if is_text(kind) or is_categorical(kind):
        names, codes = levels_of(where, column, None)
        sound = np.array([len(name) <= _LONGEST and "\0" not in name for name in names])
        rule = f"must be text of at most {_LONGEST} characters, none of them NUL"
        require(where, rule, sound[codes])
        return np.array(names, dtype=np.str_), codes
    if types.is_integer(kind):
        values = _to_int64(where, column)
    elif types.is_floating(kind):
        floats = column.to_numpy().astype(np.float64, copy=False)  # 2**53 is no float16
        exact = (np.abs(floats) < 2**53) & (floats == np.round(floats))
        require(where, "must be a whole number within 2**53, or text", exact)
        values = floats.astype(np.int64)
    else:
        raise DataError(where, "must be a whole number or text")
    if (values[1:] >= values[:-1]).all():  # already in order, the usual case: no sorting
        first = np.concatenate([[True], values[1:] > values[:-1]])
        return values[first], np.cumsum(first) - 1
    ids, codes = np.unique(values, return_inverse=True)
    return ids, codes


def _to_int64(where: str, column: pa.ChunkedArray) -> Ints:
    values = column.to_numpy()
    if values.dtype == np.uint64:
        require(where, "must be less than 2**63", values < np.uint64(2**63))
    whole: Ints = values.astype(np.int64, copy=False)
    return whole


def moments(where: str, column: pa.ChunkedArray) -> NDArray[Any]:
    """Step labels, which must order: numbers or times; null and text are refused."""
    column = _numbered(spell_out(column)) if is_text(spell_out(column).type) else column
    kind = column.type
    fix = "Steps are numbers or times, or one word with a number (V1, V2)."
    if is_text(kind) or is_categorical(kind) or not (is_number(kind) or types.is_temporal(kind)):
        raise DataError(
            where, "must order in time", rows=range(len(column)), total=len(column), fix=fix
        )
    there = ~column.is_null(nan_is_null=True).to_numpy()
    require(where, "must not be missing", there, fix="Leave rows without a time out.")
    if types.is_temporal(kind) and not types.is_duration(kind):
        return times(where, column)
    if types.is_duration(kind):
        column = pc.cast(column, pa.int64())
    if types.is_integer(column.type):
        return _to_int64(where, column)
    values = numbers(where, column)
    require(where, "must be finite", np.isfinite(values))
    whole = (values == np.round(values)).all() and (np.abs(values) < 2**53).all()
    return values.astype(np.int64) if whole else values


def _numbered(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The numbers of `V1`, `V2`, if all texts are one word and a number; else as it is."""
    try:
        text = pc.utf8_trim_whitespace(pc.cast(column, pa.string()))
    except pa.ArrowException:
        return column
    fields = pc.extract_regex(text, r"^(?P<word>\D+?)\s*[-_ ]?(?P<number>\d{1,9})(?P<end>\D*)$")
    around = [pc.utf8_lower(pc.struct_field(fields, part)) for part in ("word", "end")]
    if fields.null_count or any(pc.count_distinct(part).as_py() != 1 for part in around):
        return column
    return pc.cast(pc.struct_field(fields, "number"), pa.int64())


def times(where: str, column: pa.ChunkedArray) -> NDArray[Any]:
    """Dates and times in microseconds, NaT where it is null."""
    try:
        wanted = pc.CastOptions(pa.timestamp("us"), allow_time_truncate=True)
        stamps = pc.cast(column, options=wanted)
    except pa.ArrowException:
        rule = "must be a date, with or without a time of day"
        fix = "Write the date too: 2024-12-31 23:59."
        raise DataError(where, rule, fix=fix) from None
    found: NDArray[Any] = stamps.to_numpy().astype("datetime64[us]")
    return found


def levels_of(
    where: str, column: pa.ChunkedArray, known: tuple[str, ...] | None
) -> tuple[tuple[str, ...], Ints]:
    """Levels of a categorical column and that of each row: -1 if missing, -2 if it is not known.

    Args:
        where: The place, for a refusal.
        column: Text, dictionary, boolean or whole numbers.
        known: The levels there are, in their order; found and sorted if left out.
    """
    encoded = pc.dictionary_encode(as_text(where, column).combine_chunks())
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    names: list[str] = encoded.dictionary.to_pylist()
    levels = tuple(sorted(names)) if known is None else known
    position = {level: number for number, level in enumerate(levels)}
    to_level = np.array([position.get(level, -2) for level in names] + [-1])
    codes = to_level[pc.fill_null(encoded.indices, len(names)).to_numpy(zero_copy_only=False)]
    return levels, codes


def as_text(where: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Any column as text; whole numbers that a gap made floats are written as whole numbers."""
    column = spell_out(column)
    try:
        if types.is_floating(column.type):
            with contextlib.suppress(pa.ArrowException):
                column = pc.cast(column, pa.int64())
        return pc.cast(column, pa.string())
    except pa.ArrowException:
        if is_text(column.type) or types.is_binary(column.type):
            raise DataError(where, "must be UTF-8 text") from None
        fix = "Turn it into text, or leave it out."
        raise DataError(where, "must hold numbers, text or times", fix=fix) from None


def spell_out(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A dictionary column spelt out; Arrow itself cannot do it for the views polars makes."""
    if not is_categorical(column.type):
        return column
    kind = column.type.value_type
    values = pa.large_binary() if is_text(kind) else kind
    chunks = [chunk.dictionary.cast(values).take(chunk.indices) for chunk in column.chunks]
    return pa.chunked_array(chunks, values)


NO_WORDS = ("no", "n", "false", "nein", "non")
YES_WORDS = ("yes", "y", "true", "ja", "oui")

_BLANK = "^(nan|NaN|NAN|<NA>)?$"


def plain_text(where: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of text without spaces around it, null where it is blank or says NaN."""
    text = pc.utf8_trim_whitespace(as_text(where, column))
    blank = pc.match_substring_regex(text, _BLANK)
    return pc.if_else(blank, pa.scalar(None, pa.string()), text)


def text_flags(where: str, column: pa.ChunkedArray) -> tuple[Floats, int]:
    """Yes as 1, no as 0, NaN where it is missing or neither; and how many are neither."""
    text = pc.utf8_lower(plain_text(where, column))
    yes, no = (  # an Arrow array of the words would import pandas
        pc.fill_null(pc.match_substring_regex(text, f"^({'|'.join(words)})$"), False).to_numpy()
        for words in ((*YES_WORDS, "t"), (*NO_WORDS, "f"))
    )
    values = np.where(yes, 1.0, np.where(no, 0.0, np.nan))
    return values, int(np.isnan(values).sum()) - text.null_count


def yes_no_levels(words: Iterable[str]) -> tuple[str, str]:
    """What stands for no and for yes in these words, spelt as they are."""
    said = sorted(words)
    no = next((word for word in said if word.lower() in (*NO_WORDS, "f")), "no")
    return no, next((word for word in said if word.lower() in (*YES_WORDS, "t")), "yes")


def is_textual(kind: pa.DataType) -> bool:
    """Whether a column holds text, not as a dictionary."""
    return is_text(kind) and not types.is_dictionary(kind)
