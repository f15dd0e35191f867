"""Arrow columns into NumPy arrays, refusing what they may not hold by place, rule and row."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from etips.data.coded import Floats32
from etips.data.decisions import Floats, Ints
from etips.data.sources import text_that_is_no_number
from etips.errors import DataError, require

_ROWS = 4096  # rows turned from columns to rows together: about one level-2 cache


def is_text(kind: pa.DataType) -> bool:
    """Whether a column holds text (or bytes, which is text that is not UTF-8)."""
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def is_categorical(kind: pa.DataType) -> bool:
    """Whether a column is dictionary-encoded: a pandas category, a polars categorical or enum."""
    return bool(pa.types.is_dictionary(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether a column can become float32 as it stands; an all-null column counts."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    )


def require_number(where: str, column: pa.ChunkedArray) -> None:
    """Refuse a column that is not numeric, saying how many rows are to blame."""
    kind = column.type
    if is_number(kind):
        return
    if is_text(kind) or is_categorical(kind):
        fix = "Drop it, turn it into numbers, or name it in categorical."
        bad = text_that_is_no_number(column)
        require(where, "must be numeric, is text", ~bad if bad.any() else bad, fix=fix)
    raise DataError(where, "must be numeric or boolean", fix="Turn times into hours, say.")


def numbers(where: str, column: pa.ChunkedArray) -> Floats:
    """A numeric or boolean column as float64, NaN where it is null."""
    require_number(where, column)
    if pa.types.is_boolean(column.type):
        column = pc.cast(column, pa.int8())
    elif pa.types.is_decimal(column.type) or pa.types.is_null(column.type):
        column = pc.cast(column, pa.float64())
    found: Floats = column.to_numpy().astype(np.float64, copy=False)
    return found


def fill_rows(out: Floats32, columns: list[pa.ChunkedArray]) -> None:
    """Write numeric columns side by side into `out`, shape (n, len(columns)).

    A few thousand rows at once: column after column over all rows would touch every cache line of
    `out` once a column.
    """
    found = [column.to_numpy() if _is_plain(column) else numbers("", column) for column in columns]
    with np.errstate(over="ignore"):  # too large for float32 becomes inf, which is refused later
        for start in range(0, len(out), _ROWS):
            block = out[start : start + _ROWS]
            for position, values in enumerate(found):
                block[:, position] = values[start : start + _ROWS]


def _is_plain(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_floating(column.type)) and not pa.types.is_float16(column.type)


def labels(where: str, column: pa.ChunkedArray) -> tuple[NDArray[Any], Ints]:
    """Identifiers: the distinct ones in order, and which of them each row has.

    Whole numbers order as numbers, anything else as text; null is refused.
    """
    require(where, "must not be missing", ~column.is_null(nan_is_null=True).to_numpy())
    kind = column.type
    if is_text(kind) or is_categorical(kind):
        names, codes = levels_of(where, column, None)
        return np.array(names, dtype=np.str_), codes
    if pa.types.is_integer(kind):
        values = _to_int64(where, column)
    elif pa.types.is_floating(kind):
        found = column.to_numpy()
        require(where, "must be a whole number or text", np.isfinite(found) & (found % 1 == 0))
        values = found.astype(np.int64)
    else:
        raise DataError(where, "must be a whole number or text")
    rises = np.diff(values)
    if (rises >= 0).all():  # already in order, the usual case: no sorting
        first = np.concatenate([[True], rises > 0])
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
    kind = column.type
    fix = "Steps are numbers or times."
    if is_text(kind) or is_categorical(kind) or not (is_number(kind) or pa.types.is_temporal(kind)):
        raise DataError(
            where, "must order in time", rows=range(len(column)), total=len(column), fix=fix
        )
    require(where, "must not be missing", ~column.is_null(nan_is_null=True).to_numpy())
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
        return _times(where, column)
    if pa.types.is_duration(kind):
        column = pc.cast(column, pa.int64())
    if pa.types.is_integer(column.type):
        return _to_int64(where, column)
    values = numbers(where, column)
    require(where, "must be finite", np.isfinite(values))
    whole = (values == np.round(values)).all() and (np.abs(values) < 2**53).all()
    return values.astype(np.int64) if whole else values


def _times(where: str, column: pa.ChunkedArray) -> NDArray[Any]:
    try:
        stamps = pc.cast(column, pa.timestamp("us"), safe=False)
    except pa.ArrowException as error:
        raise DataError(where, "must be a date with or without a time of day") from error
    found: NDArray[Any] = stamps.to_numpy().astype("datetime64[us]")
    return found


def levels_of(
    where: str, column: pa.ChunkedArray, known: tuple[str, ...] | None
) -> tuple[tuple[str, ...], Ints]:
    """Levels of a categorical column and the level of each row, -1 where it is missing.

    Args:
        where: The place, for a refusal.
        column: Text, dictionary, boolean or whole numbers.
        known: The only levels allowed, in their order; found and sorted if left out.
    """
    encoded = pc.dictionary_encode(_as_text(where, column).combine_chunks())
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    found: list[str] = encoded.dictionary.to_pylist()
    levels = tuple(sorted(found)) if known is None else known
    position = {level: number for number, level in enumerate(levels)}
    to_level = np.array([position.get(level, -2) for level in found] + [-1])
    codes = to_level[pc.fill_null(encoded.indices, len(found)).to_numpy(zero_copy_only=False)]
    require(where, "must be one of the levels known so far", codes != -2)
    return levels, codes


def _as_text(where: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return pc.cast(column, pa.string())
    except pa.ArrowException as error:
        raise DataError(where, "must be UTF-8 text") from error
