"""A feature column of any kind as numbers, row by row."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from etips.data.decisions import Floats
from etips.data.intake.recipe import ColumnKind
from etips.data.intake.text_columns import text_flags
from etips.data.tables.arrow_columns import is_number, is_plain, is_text, numbers, times
from etips.errors import DataError

EPOCH = np.datetime64("2000-01-01", "us")
"""Years are counted from here."""

HOUR = np.timedelta64(3600 * 10**6, "us")
YEAR = 365.25 * 24 * HOUR


def column_values(
    where: str, column: pa.ChunkedArray, kind: ColumnKind
) -> tuple[NDArray[Any], int]:
    """The column as numbers, NaN where it is missing, and how many cells could not be read.

    Args:
        where: The place, for a refusal.
        column: Part of a column, of any kind but a category; times of kind `hours` and `age` come
            out NaN, since they need to know the stay.
        kind: How it is read.
    """
    if kind.kind in ("hours", "age") and not is_number(column.type):
        return np.full(len(column), np.nan), 0
    if kind.kind == "yes_no" and is_text(column.type):
        return text_flags(where, column)
    if kind.kind == "years" and not is_number(column.type):
        return (times(where, column) - EPOCH) / YEAR, 0
    if kind.kind == "duration" and not is_number(column.type):
        return _hours(where, column), 0
    if is_text(column.type):  # nothing but blanks, or it would have been read as numbers by now
        return np.full(len(column), np.nan), 0
    return column.to_numpy() if is_plain(column) else numbers(where, column), 0


def _hours(where: str, column: pa.ChunkedArray) -> Floats:
    """A length of time, or a time of day, in hours."""
    kind = column.type
    if types.is_time(kind):
        column = pc.cast(column, pa.time64("ns"))
        column = pc.cast(pc.cast(column, pa.int64()), pa.duration("ns"))
    elif not types.is_duration(kind):
        raise DataError(where, "must be a length of time")
    lengths: NDArray[np.timedelta64] = column.to_numpy().astype("timedelta64[us]")
    return lengths / HOUR
