"""Frames of pandas, polars and whatever else speaks Arrow, as Arrow tables."""

import json
from collections import Counter
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from etips.errors import DataError, Faults

UNREADABLE = (pa.ArrowException, OSError, EOFError, OverflowError, TypeError, ValueError)
"""What readers raise over input; their words quote it and are never passed on."""


INDEX = b"etips.index"
"""Where a table of Arrow keeps the names of a frame's index."""


@runtime_checkable
class ArrowStream(Protocol):
    """A pandas, polars or Arrow table: anything that offers the Arrow stream interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


def to_arrow(table: ArrowStream) -> pa.Table:
    """Any frame as an Arrow table."""
    if not isinstance(table, ArrowStream):
        raise DataError("table", "must be a path or a pandas, polars or Arrow table")
    if isinstance(table, pa.Table):
        return table
    if type(table).__module__.startswith("pandas"):
        return _pandas_to_arrow(table)
    # The Arrow interface ends a name at NUL, and polars ends the process over one.
    if any(isinstance(name, str) and "\0" in name for name in getattr(table, "columns", ())):
        raise DataError("table", "column names must not hold NUL characters")
    try:
        return pa.table(table)
    except UNREADABLE:
        raise DataError("table", "cannot be read as an Arrow table") from None


def _pandas_to_arrow(frame: Any) -> pa.Table:  # noqa: ANN401  # a foreign object
    """A frame's columns without its index; all columns of mixed types are refused by name."""
    if not hasattr(frame, "columns"):
        raise DataError("table", "must be a frame, not a series")
    if getattr(frame.columns, "nlevels", 1) > 1:
        fix = 'Join them: frame.columns = ["_".join(map(str, names)) for names in frame.columns].'
        raise DataError("table", "must have one name a column, not several levels", fix=fix)
    names = [str(name) for name in frame.columns]
    require_distinct("table", names)
    arrays, faults = {}, Faults()
    for position, name in enumerate(names):
        with faults.noting():
            try:
                arrays[name] = pa.Array.from_pandas(frame.iloc[:, position])
            except UNREADABLE:
                fix = "Turn it into numbers, or into text with .astype(str), or leave it out."
                place = f"table, column {name}"
                raise DataError(place, "must be of one type", fix=fix) from None
    faults.raise_any()
    index = [str(name) for name in getattr(frame.index, "names", ()) if name is not None]
    kept = json.dumps([name for name in index if name not in names])
    return pa.table(arrays).replace_schema_metadata({INDEX: kept})


def index_names(schema: pa.Schema) -> tuple[str, ...]:
    """Names of the index of the pandas frame that a table was made of; it is no column."""
    return tuple(json.loads((schema.metadata or {}).get(INDEX, b"[]")))


def require_distinct(where: str, names: list[str]) -> None:
    """Refuse columns of one name."""
    counts = Counter(names)
    twice = [name for name, times in counts.items() if times > 1]
    if twice:
        shown = ", ".join(f'"{name}"' for name in twice[:5]) + (", ..." if len(twice) > 5 else "")
        rule = f"column names must be distinct; {shown} occurs more than once"
        raise DataError(where, rule, fix="Rename the columns in the table.")
