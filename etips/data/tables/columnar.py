"""Parquet, Feather and Arrow files, read in parts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from etips.data.tables.data_frames import UNREADABLE
from etips.data.tables.file_kinds import TableFile
from etips.errors import FileError


@dataclass(frozen=True, eq=False)
class ColumnFile:
    """A file whose columns have types.

    Args:
        schema: Names and types.
        n_rows: Number of rows.
        parts: Given column names, the table in parts.
    """

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
