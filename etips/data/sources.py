"""Anything that is a long table (CSV, CSV.gz, Parquet, a data frame, Arrow) as Arrow batches.

Errors of the readers quote the cell that they stumbled over. Here every one of them becomes a
refusal that names the place and the rule and quotes nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from etips.errors import DataError, FileError

CSV_NULLS = ["", "NA", "N/A", "#N/A", "<NA>", "null", "NULL", "None"]
"""Cells of a CSV that mean "missing"; the text NaN is a number that is not one."""

_BLOCK = 8 * 2**20  # bytes of CSV parsed together
_UNREADABLE = (pa.ArrowException, OSError, EOFError, UnicodeError, ValueError)


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
    except _UNREADABLE as error:
        raise refused from error

    def parts(wanted: Sequence[str]) -> Iterator[pa.Table]:
        for group in range(file.num_row_groups):
            try:
                part = file.read_row_group(group, columns=list(wanted))
            except _UNREADABLE as error:
                raise refused from error
            yield part

    return Source(path.name, _distinct(path.name, schema), n_rows, parts)


def _distinct(name: str, schema: pa.Schema) -> dict[str, pa.DataType]:
    if len(set(schema.names)) != len(schema.names):
        raise DataError(name, "column names must be distinct")
    return {field.name: field.type for field in schema}


def _to_arrow(table: ArrowStream) -> pa.Table:
    if not isinstance(table, ArrowStream):
        raise DataError("table", "must be a path or a pandas, polars or Arrow table")
    if type(table).__module__.startswith("pandas"):
        return _pandas_to_arrow(table)
    try:
        return pa.table(table)
    except _UNREADABLE as error:
        raise DataError("table", "cannot be read as an Arrow table") from error


def _pandas_to_arrow(frame: Any) -> pa.Table:  # noqa: ANN401  # a foreign object
    """A frame's columns without its index; a column of mixed types is refused by name."""
    if len(set(frame.columns)) != len(frame.columns):
        raise DataError("table", "column names must be distinct")
    arrays = {}
    for name in frame.columns:
        try:
            arrays[str(name)] = pa.Array.from_pandas(frame[name])
        except _UNREADABLE as error:
            raise DataError(f"table, column {name}", "must be of one type") from error
    return pa.table(arrays)


def _read_csv(path: Path) -> pa.Table:
    try:
        return _parse_csv(path, {})
    except _UNREADABLE:
        # Types are guessed from the first block; 1 in it and 1.5 further down is no fault.
        return _read_csv_as_text(path)


def _parse_csv(path: Path, types: dict[str, pa.DataType]) -> pa.Table:
    return pa_csv.read_csv(
        path,
        read_options=pa_csv.ReadOptions(block_size=_BLOCK),
        convert_options=pa_csv.ConvertOptions(
            null_values=CSV_NULLS, strings_can_be_null=True, column_types=types
        ),
    )


def _read_csv_as_text(path: Path) -> pa.Table:
    """Read every cell as text, then give each column the narrowest type all of it fits."""
    ragged: list[int] = []

    def note(row: Any) -> str:  # noqa: ANN401  # pyarrow's InvalidRow
        ragged.append(row.number - 2)  # the reader counts from 1 and counts the header
        return "skip"

    try:
        types = dict.fromkeys(_header(path), pa.string())
        table = pa_csv.read_csv(
            path,
            read_options=pa_csv.ReadOptions(block_size=_BLOCK, use_threads=False),
            parse_options=pa_csv.ParseOptions(invalid_row_handler=note),
            convert_options=pa_csv.ConvertOptions(
                null_values=CSV_NULLS, strings_can_be_null=True, column_types=types
            ),
        )
    except _UNREADABLE as error:
        raise FileError(
            str(path), "cannot be read as CSV", fix="Is it whole, and UTF-8?"
        ) from error
    if ragged:
        total = table.num_rows + len(ragged)
        rule = "every row must have as many fields as the header"
        raise DataError(path.name, rule, rows=ragged, total=total)
    return pa.table({name: narrow(table.column(name)) for name in table.column_names})


def _header(path: Path) -> list[str]:
    """Column names of a CSV that trips the reader further down."""
    options = pa_csv.ParseOptions(invalid_row_handler=lambda _: "skip")
    with pa_csv.open_csv(path, parse_options=options) as reader:
        return list(reader.schema.names)


def narrow(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column as whole numbers, numbers, booleans or times if all its text reads so."""
    for wanted in (pa.int64(), pa.float64(), pa.bool_(), pa.timestamp("us")):
        try:
            return pc.cast(column, wanted)
        except pa.ArrowInvalid:
            continue
    return column


def text_that_is_no_number(column: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Where a column of text or bytes holds something that is not a number, shape (n,)."""
    pattern = r"^\s*([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:true|false))\s*$"
    number = pc.match_substring_regex(pc.cast(column, pa.binary()), pattern)
    found: np.ndarray[Any, np.dtype[np.bool_]] = ~pc.fill_null(number, True).to_numpy()
    return found
