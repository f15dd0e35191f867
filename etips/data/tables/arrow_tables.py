"""Tables whose columns have types (frames, Parquet, Feather, Arrow) as Arrow tables."""

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from etips.data.tables.arrow_columns import is_categorical, is_text, spell_out
from etips.data.tables.file_kinds import TableFile
from etips.errors import DataError, Faults, FileError
from etips.notes import note

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


@dataclass(frozen=True, eq=False)
class ColumnFile:
    """A file whose columns have types."""

    schema: pa.Schema
    n_rows: int
    parts: Callable[[Sequence[str]], Iterator[pa.Table]]


def open_parquet(table_file: TableFile) -> ColumnFile:
    """Open a Parquet file; a part is a row group."""
    path = table_file.path
    refused = FileError(str(path), "cannot be read as Parquet", fix="Is it whole?")
    try:
        file = pq.ParquetFile(path, pre_buffer=False)  # else a part is held twice
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    except UNREADABLE:
        raise refused from None
    if min(sizes, default=0) < 0 or sum(sizes) != n_rows:
        raise refused

    def parts(wanted: Sequence[str]) -> Iterator[pa.Table]:
        for group, size in enumerate(sizes):
            try:
                part = file.read_row_group(group, columns=list(wanted))
            except UNREADABLE:
                raise refused from None
            if part.num_rows != size:
                raise refused
            yield part
            del part
            pa.default_memory_pool().release_unused()  # what the part took is the next one's

    return ColumnFile(schema, n_rows, parts)


def read_arrow(table_file: TableFile) -> pa.Table:
    """Read a Feather or Arrow file; what it claims about itself is checked cell by cell."""
    refused = FileError(str(table_file.path), "cannot be read as Arrow", fix="Is it whole?")
    try:
        with pa.OSFile(str(table_file.path)) as file, pa.ipc.open_file(file) as reader:
            table = reader.read_all()
            table.validate(full=True)
    except UNREADABLE:
        raise refused from None
    return table


def without_marks(table: pa.Table, marks: Sequence[str]) -> pa.Table:
    """The same with empty cells in place of those marks.

    Args:
        table: The table, or a part of it.
        marks: Texts, spelt in small or capital letters and with blanks around them or not; those
            that are numbers are taken out of columns of numbers too. `age=999` is of column age.
    """
    for at, field in enumerate(table.schema):
        own = [mark for entry in marks if (mark := _mark_of(entry, field.name, table)) is not None]
        if not own:
            continue
        words = pa.array(sorted({mark.strip().casefold() for mark in own}), pa.string())
        found = set()
        for mark in own:
            with contextlib.suppress(ValueError):
                found.add(float(mark))
        numbers = pa.array(sorted(found))
        column = table.column(at)
        coded = is_categorical(field.type) and is_text(field.type.value_type)
        if coded:
            column = pc.cast(spell_out(column), pa.string())
        if is_text(column.type):
            plain = pc.utf8_lower(pc.utf8_trim_whitespace(pc.cast(column, pa.string())))
            there = pc.is_in(plain, words)
        elif len(numbers) and (types.is_integer(field.type) or types.is_floating(field.type)):
            there = pc.is_in(pc.cast(column, pa.float64(), safe=False), numbers)
        else:
            continue
        if pc.any(there).as_py():
            left = pc.if_else(there, pa.scalar(None, column.type), column)
            left = pc.dictionary_encode(left) if coded else left
            table = table.set_column(at, field.name, left)
    return table


def _mark_of(entry: str, column: str, table: pa.Table) -> str | None:
    """The mark that an entry names for a column; None if it is about another one."""
    name, equals, mark = entry.rpartition("=")
    if not equals or name.strip() not in table.column_names:
        return entry
    return mark if name.strip() == column else None


_NAMES = "Give every column a name in the first line; of two lines of names keep one."


def one_line(name: str) -> str:
    """A name as it is called: without blanks around it, and in one line."""
    return " ".join(name.split()) if any(sign in name for sign in "\r\n\t") else name.strip()


def name_columns(where: str, table: pa.Table) -> pa.Table:
    """Trim names, leave out columns without name or content, refuse what cannot be told apart.

    A first column without a name that counts the rows is the index that pandas and R write.
    """
    names = [one_line(name) for name in table.column_names]
    kept, unnamed = [], []
    for position, name in enumerate(names):
        column = table.column(position)
        if name or not (column.null_count == len(column) or _counts(position, column)):
            kept.append(position)
        if not name and position in kept:
            unnamed.append(position + 1)
    if unnamed:
        shown = ", ".join(str(number) for number in unnamed[:5])
        rest = f" and {len(unnamed) - 5} more" if len(unnamed) > 5 else ""
        one = len(unnamed) == 1
        rule = f"column {shown} has no name" if one else f"columns {shown}{rest} have no name"
        raise DataError(where, rule, fix=_NAMES)
    left = len(names) - len(kept)
    if left:
        said = "1 column without a name was" if left == 1 else f"{left} columns without a name were"
        note(f"{where}: {said} left out")
    require_distinct(where, [names[position] for position in kept])
    return table.select(kept).rename_columns([names[position] for position in kept])


def _counts(position: int, column: pa.ChunkedArray) -> bool:
    if position or not pa.types.is_integer(column.type) or column.null_count or not len(column):
        return False
    values = column.to_numpy()
    return bool(values[0] in (0, 1) and (values[1:] - values[:-1] == 1).all())
