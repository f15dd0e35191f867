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
_LARGEST = 2**53  # whole numbers that a float64 holds exactly

_TEXT = (
    *(types.is_string, types.is_large_string, types.is_string_view),
    *(types.is_binary, types.is_large_binary, types.is_binary_view),
)
_NUMBERS = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)

NO_WORDS = ("no", "n", "false", "nein", "non")
YES_WORDS = ("yes", "y", "true", "ja", "oui")


def is_text(kind: pa.DataType) -> bool:
    """Whether a column holds text (or bytes, which is text that is not UTF-8)."""
    return any(holds(kind) for holds in _TEXT)


def is_categorical(kind: pa.DataType) -> bool:
    """Whether a column is dictionary-encoded: a pandas category, a polars categorical or enum."""
    return bool(types.is_dictionary(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether a column can become float32 as it stands; an all-null column counts."""
    return any(holds(kind) for holds in _NUMBERS)


def is_time(kind: pa.DataType) -> bool:
    """Whether a column holds dates, with or without a time of day."""
    return bool(types.is_timestamp(kind) or types.is_date(kind))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the cells, those of a dictionary if it is one."""
    return kind.value_type if is_categorical(kind) else kind


def encode(column: pa.ChunkedArray) -> tuple[pa.Array, Ints]:
    """The distinct values of a column that occur, and which of them each row has, -1 for null.

    A dictionary is not spelt out: that would take rows times the length of its texts. Its values
    are cast first, since Arrow cannot take from the views that polars makes.
    """
    if types.is_null(column.type):
        return pa.array([], pa.null()), np.full(len(column), -1)
    if not is_categorical(column.type):
        encoded = pc.dictionary_encode(column.combine_chunks())
        if isinstance(encoded, pa.ChunkedArray):  # more text than an array holds
            encoded = encoded.combine_chunks()
        return encoded.dictionary, _indices(encoded)
    kind = column.type.value_type
    kind = pa.large_binary() if is_text(kind) else kind
    levels = [chunk.dictionary.cast(kind) for chunk in column.chunks]
    distinct = pc.dictionary_encode(pa.concat_arrays(levels or [pa.array([], kind)]))
    place = np.append(_indices(distinct), -1)
    starts = np.cumsum([0, *map(len, levels)])
    code = np.full(len(column), -1)
    row = 0
    for chunk, start in zip(column.chunks, starts, strict=False):
        own = np.asarray(pc.fill_null(chunk.indices.cast(pa.int64()), place.size - 1 - start))
        code[row : row + len(chunk)] = place[own + start]
        row += len(chunk)
    used, code = np.unique(np.append(code, -1), return_inverse=True)
    return distinct.dictionary.take(pa.array(used[1:])), code[:-1] - 1


def _indices(encoded: pa.DictionaryArray) -> Ints:
    indices = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    whole: Ints = indices.astype(np.int64)
    return whole


def require_number(where: str, column: pa.ChunkedArray, *, fix: str = "") -> None:
    """Refuse a column that is not numeric, saying how many rows are to blame."""
    kind = plain_type(column.type)
    if is_number(kind):
        return
    if is_text(kind):
        texts, code = encode(column)
        pattern = r"^\s*([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:true|false))\s*$"
        number = pc.match_substring_regex(pc.cast(texts, pa.binary()), pattern)
        spelt: Bools = np.append(pc.fill_null(number, True).to_numpy(zero_copy_only=False), True)
        rule, holds = "must be numeric, is text", spelt[code]
        require(where, rule, ~holds if holds.all() else holds, fix=fix)
    raise DataError(where, "must be numeric or boolean", fix="Turn times into hours, say.")


def numbers(where: str, column: pa.ChunkedArray) -> Floats:
    """A numeric or boolean column as float64, NaN where it is null."""
    require_number(where, column)
    if is_categorical(column.type):
        values, code = encode(column)
        return np.append(numbers(where, pa.chunked_array([values])), np.nan)[code]
    if types.is_boolean(column.type):
        column = pc.cast(column, pa.int8())
    elif types.is_decimal(column.type) or types.is_null(column.type):
        column = pc.cast(column, pa.float64())
    whole: Floats = column.to_numpy().astype(np.float64, copy=False)
    return whole


def fill_rows(out: Floats32, columns: Sequence[pa.ChunkedArray]) -> None:
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
        exact = (np.abs(floats) < _LARGEST) & (floats == np.round(floats))
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
    column = _numbered(column) if is_text(column.type) else column
    kind = column.type
    fix = "Steps are numbers or times, or one word with a number (V1, V2)."
    if is_text(kind) or is_categorical(kind) or not (is_number(kind) or types.is_temporal(kind)):
        every = range(len(column))
        raise DataError(where, "must order in time", rows=every, total=len(column), fix=fix)
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
    whole = (values == np.round(values)).all() and (np.abs(values) < _LARGEST).all()
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
        stamps: NDArray[Any] = pc.cast(column, options=wanted).to_numpy()
    except pa.ArrowException:
        rule = "must be a date, with or without a time of day"
        raise DataError(where, rule, fix="Write the date too: 2024-12-31 23:59.") from None
    return stamps.astype("datetime64[us]")


def levels_of(
    where: str, column: pa.ChunkedArray, known: tuple[str, ...] | None
) -> tuple[tuple[str, ...], Ints]:
    """Levels of a column and that of each row: -1 if missing, -2 if it is not one of those known.

    Levels that are not known yet are found and sorted.
    """
    try:
        values, code = encode(column)
    except pa.ArrowException:  # intervals of pandas, lists
        fix = "Turn it into text, or leave it out."
        raise DataError(where, "must hold numbers, text or times", fix=fix) from None
    names = as_text(where, values).to_pylist()
    levels = tuple(sorted(set(names))) if known is None else known
    position = {level: number for number, level in enumerate(levels)}
    return levels, np.array([position.get(name, -2) for name in names] + [-1])[code]


def as_text(where: str, values: Any) -> Any:  # noqa: ANN401  # an array or a column of Arrow
    """Any values as text; whole numbers that a gap made floats are written as whole numbers."""
    try:
        if types.is_floating(values.type):
            with contextlib.suppress(pa.ArrowException):
                values = pc.cast(values, pa.int64())
        return pc.cast(values, pa.string())
    except pa.ArrowException:
        if is_text(values.type):
            raise DataError(where, "must be UTF-8 text") from None
        fix = "Turn it into text, or leave it out."
        raise DataError(where, "must hold numbers, text or times", fix=fix) from None


def plain_text(where: str, column: Any) -> Any:  # noqa: ANN401  # an array or a column of Arrow
    """Text without spaces around it, null where it is blank or says NaN; no dictionary."""
    text = pc.utf8_trim_whitespace(as_text(where, column))
    blank = pc.match_substring_regex(text, "^(nan|NaN|NAN|<NA>)?$")
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
    found = sorted(words)
    no = next((word for word in found if word.lower() in (*NO_WORDS, "f")), "no")
    return no, next((word for word in found if word.lower() in (*YES_WORDS, "t")), "yes")
