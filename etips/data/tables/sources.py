"""Anything that is a long table (CSV, CSV.gz, Parquet, a data frame, Arrow) as Arrow batches.

Errors of the readers quote the cell that they stumbled over. Here every one of them becomes a
refusal that names the place and the rule and quotes nothing, nor carries the error that does.
"""

import codecs
import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from etips.errors import DataError, EtipsError, FileError

CSV_NULLS = ["", "NA", "N/A", "#N/A", "<NA>", "null", "NULL", "None"]
"""Cells of a CSV that mean "missing"; the text NaN is a number that is not one."""

_BLOCK = 8 * 2**20  # bytes of CSV parsed together
_UNREADABLE = (pa.ArrowException, OSError, EOFError, OverflowError, TypeError, ValueError)


@runtime_checkable
class ArrowStream(Protocol):
    """A pandas, polars or Arrow table: anything that offers the Arrow stream interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


TableLike = str | Path | ArrowStream
"""What `read_table` takes: a path, or a data frame of any library that speaks Arrow."""


@dataclass(frozen=True)
class Source:
    """A table that can be read in parts.

    Args:
        name: How refusals call it.
        columns: Arrow type of each column.
        n_rows: Number of rows.
        parts: Given column names, the table in parts small enough to hold beside the result.
    """

    name: str
    columns: dict[str, pa.DataType]
    n_rows: int
    parts: Callable[[Sequence[str]], Iterator[pa.Table]]


def open_source(table: TableLike) -> Source:
    """Open a table without reading more than it must."""
    if not isinstance(table, str | Path):
        return _from_arrow("table", _to_arrow(table))
    path = Path(table)
    if not path.is_file():
        raise FileError(str(path), "is not a file that exists")
    kind = path.name.lower()
    if kind.endswith((".parquet", ".pq")):
        return _from_parquet(path)
    if kind.endswith((".csv", ".csv.gz")):
        return _from_arrow(path.name, _read_csv(path))
    raise FileError(str(path), "must end in .csv, .csv.gz or .parquet")


def whole_column(source: Source, name: str) -> pa.ChunkedArray:
    """All of one column, in the order of the table."""
    return pa.concat_tables(list(source.parts([name]))).column(name)


def _from_arrow(name: str, table: pa.Table) -> Source:
    columns = _distinct(name, table.schema)
    return Source(name, columns, table.num_rows, lambda wanted: iter([table.select(list(wanted))]))


def _from_parquet(path: Path) -> Source:
    refused = FileError(str(path), "cannot be read as Parquet", fix="Is it whole?")
    try:
        file = pq.ParquetFile(path)
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    except _UNREADABLE:
        raise refused from None
    if min(sizes, default=0) < 0 or sum(sizes) != n_rows:
        raise refused

    def parts(wanted: Sequence[str]) -> Iterator[pa.Table]:
        for group, size in enumerate(sizes):
            try:
                part = file.read_row_group(group, columns=list(wanted))
            except _UNREADABLE:
                raise refused from None
            if part.num_rows != size:
                raise refused
            yield part

    return Source(path.name, _distinct(path.name, schema), n_rows, parts)


def _distinct(name: str, schema: pa.Schema) -> dict[str, pa.DataType]:
    try:
        names = schema.names
    except UnicodeDecodeError:
        raise DataError(name, "column names must be UTF-8 text") from None
    if len(set(names)) != len(names):
        raise DataError(name, "column names must be distinct")
    return dict(zip(names, schema.types, strict=True))


def _to_arrow(table: ArrowStream) -> pa.Table:
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
    except _UNREADABLE:
        raise DataError("table", "cannot be read as an Arrow table") from None


def _pandas_to_arrow(frame: Any) -> pa.Table:  # noqa: ANN401  # a foreign object
    """A frame's columns without its index; a column of mixed types is refused by name."""
    if not hasattr(frame, "columns"):
        raise DataError("table", "must be a frame, not a series")
    names = [str(name) for name in frame.columns]
    if len(set(names)) != len(names):
        raise DataError("table", "column names must be distinct")
    arrays = {}
    for position, name in enumerate(names):
        try:
            arrays[name] = pa.Array.from_pandas(frame.iloc[:, position])
        except _UNREADABLE:
            raise DataError(f"table, column {name}", "must be of one type") from None
    return pa.table(arrays)


def _read_csv(path: Path) -> pa.Table:
    with contextlib.suppress(*_UNREADABLE), _open(path) as file:
        return pa_csv.read_csv(
            file,
            read_options=pa_csv.ReadOptions(block_size=_BLOCK),
            convert_options=pa_csv.ConvertOptions(null_values=CSV_NULLS, strings_can_be_null=True),
        )
    raise _complaint(path)


def _open(path: Path) -> Any:  # noqa: ANN401  # pyarrow's NativeFile
    return pa.input_stream(str(path), compression="gzip" if path.suffix.lower() == ".gz" else None)


def _complaint(path: Path) -> EtipsError:
    """Why the reader stumbles over a CSV: rows with too few or too many fields, or all of it."""
    ragged: list[int] = []

    def note(row: Any) -> str:  # noqa: ANN401  # pyarrow's InvalidRow
        ragged.append(row.number - 2)  # the reader counts from 1 and counts the header
        return "skip"

    unreadable = FileError(str(path), "cannot be read as CSV", fix="Is it whole, and UTF-8?")
    try:
        _require_utf8(path)  # first, since `note` is handed the text of a row
        with _open(path) as file:
            sound = pa_csv.read_csv(
                file,
                read_options=pa_csv.ReadOptions(block_size=_BLOCK, use_threads=False),
                parse_options=pa_csv.ParseOptions(invalid_row_handler=note),
            )
    except _UNREADABLE:
        return unreadable
    rule, total = "every row must have as many fields as the header", sound.num_rows + len(ragged)
    return DataError(path.name, rule, rows=ragged, total=total) if ragged else unreadable


def _require_utf8(path: Path) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")()
    with _open(path) as file:
        while block := file.read(_BLOCK):
            decoder.decode(block)
    decoder.decode(b"", final=True)
