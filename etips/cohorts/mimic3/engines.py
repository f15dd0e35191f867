"""Where queries run: DuckDB over files or a database file, PostgreSQL, Spark.

Extraction is written once in Ibis (`extract.py`). An engine only finds the tables, runs a query,
and keeps large results in a DuckDB file of its own on local disk, so that everything after
extraction is the same whichever engine delivered the rows.
"""

import contextlib
import re
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import duckdb
import ibis  # type: ignore[import-untyped, unused-ignore]
import polars as pl
import pyarrow as pa

from etips.cohorts.mimic3 import tablefiles
from etips.errors import DataError, EtipsError, FileError

_BATCH_ROWS: Final = 1_000_000
_FIX = "Check the file, or download it again."


class Store:
    """Large query results in a temporary DuckDB file, removed on close.

    Args:
        connection: The DuckDB connection that holds them.
        work: Folder for the file; patient data lies there while the builder runs.
        memory_limit: What DuckDB may use before it spills, such as "2GB".
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, *, work: Path | None, memory_limit: str
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix=".etips-cohort-", dir=work)
        self.connection = connection
        folder = self._folder.name
        connection.execute(f"SET memory_limit = {tablefiles.quoted(memory_limit)}")
        connection.execute(f"SET temp_directory = {tablefiles.quoted(folder)}")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"ATTACH {tablefiles.quoted(folder + '/store.duckdb')} AS store")

    def rows(
        self,
        table: str,
        *,
        stays: tuple[int, int] | None = None,
        items: Iterable[int] | None = None,
    ) -> pl.DataFrame:
        """Rows of a kept result, of a range of stays or of some items."""
        kept = self.connection.table(f"store.{table}")
        if stays is not None:
            kept = kept.filter(f"icustay_id BETWEEN {int(stays[0])} AND {int(stays[1])}")
        if items is not None:
            listed = ", ".join(str(int(item)) for item in items)
            kept = kept.filter(f"itemid IN ({listed})" if listed else "false")
        frame: pl.DataFrame = kept.pl()
        return frame

    def put(self, table: str, rows: pa.Table, *, append: bool) -> None:
        """Keep rows, after those already kept under the name or instead of them."""
        self.connection.register("etips_rows", rows)
        make = "INSERT INTO" if append else "CREATE OR REPLACE TABLE"
        keyword = "" if append else "AS"
        self.connection.execute(
            f"{make} store.{table} {keyword} SELECT * FROM etips_rows"  # noqa: S608
        )
        self.connection.unregister("etips_rows")

    def close(self) -> None:
        """Remove the file."""
        self.connection.execute("DETACH store")
        self._folder.cleanup()


class DuckDBSource:
    """A folder of CSV, CSV.gz or Parquet tables, or a DuckDB database file.

    Args:
        address: The folder or the file.
        work: Folder for temporary files; the system's own if left out.
        memory_limit: What DuckDB may use before it spills to `work`.
    """

    def __init__(
        self, address: Path, *, work: Path | None = None, memory_limit: str = "2GB"
    ) -> None:
        self.name = str(address)
        self._files = tablefiles.find(address) if address.is_dir() else {}
        with refusals(self.name):
            self._ibis = ibis.duckdb.connect()
            self._duckdb: duckdb.DuckDBPyConnection = self._ibis.con
            if not address.is_dir():
                _require_file(address)
                path = tablefiles.quoted(self.name)
                self._duckdb.execute(f"ATTACH {path} AS source (READ_ONLY)")
            self._store = Store(self._duckdb, work=work, memory_limit=memory_limit)

    def tables(self) -> Mapping[str, frozenset[str]]:
        """Column names by table name, all in lower case."""
        if self._files:
            return {name: frozenset(file.columns) for name, file in self._files.items()}
        rows = self._duckdb.execute(
            "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = 'source'"
        ).fetchall()
        return _grouped(rows)

    def table(self, name: str, columns: Mapping[str, str]) -> ibis.Table:
        """Return a table with exactly these columns, in these types."""
        with refusals(self.name):
            if self._files:
                self._duckdb.execute(self._files[name].view(name, columns))
                return typed(self._ibis.table(name), columns)
            schema = self._duckdb.execute(
                "SELECT schema_name, table_name FROM duckdb_tables() "
                "WHERE database_name = 'source' AND lower(table_name) = ?",
                [name],
            ).fetchall()[0]
            return typed(self._ibis.table(schema[1], database=("source", schema[0])), columns)

    def fetch(self, query: ibis.Table) -> pl.DataFrame:
        """Run a query whose result is small."""
        with refusals(self.name):
            return _polars(self._ibis.to_pyarrow(query))

    def store(self, query: ibis.Table, table: str) -> None:
        """Run a query whose result may be large and keep it on disk under a name."""
        with refusals(self.name):
            self._ibis.create_table(table, query, database=("store", "main"), overwrite=True)

    def stored(
        self,
        table: str,
        *,
        stays: tuple[int, int] | None = None,
        items: Iterable[int] | None = None,
    ) -> pl.DataFrame:
        """Rows of a kept result, of a range of stays (both ends included) or of some items."""
        return self._store.rows(table, stays=stays, items=items)

    def close(self) -> None:
        """Let go of connections and temporary files."""
        self._store.close()
        self._ibis.disconnect()


def typed(table: ibis.Table, columns: Mapping[str, str]) -> ibis.Table:
    """Pick columns whatever their case, and cast those that have another type.

    Codes such as `gsn` that a builder stored as numbers get their leading zeros back.
    """
    by_name = {name.lower(): table[name] for name in table.columns}
    picked = {}
    for name, kind in columns.items():
        column = by_name[name]
        if name == "gsn" and column.type().is_numeric():
            column = column.cast("int64").cast("string").lpad(6, "0")
        elif column.type() != ibis.dtype(kind):
            column = column.cast(kind)
        picked[name] = column
    return table.select(**picked)


class ServerSource:
    """Tables behind an Ibis connection to a server; large results are copied to a local store.

    Args:
        backend: The Ibis connection.
        name: How refusals call it; no password in it.
        database: Schema or catalogue database that holds the tables.
        tables: Names of the tables in it.
        temporary_tables: Whether large results may be kept there while they are fetched in pieces.
        work: Folder for temporary files; the system's own if left out.
        memory_limit: What DuckDB may use for the local store before it spills to `work`.
    """

    def __init__(
        self,
        backend: Any,  # noqa: ANN401 - an Ibis backend, which ships no types
        *,
        name: str,
        database: str | None,
        tables: Iterable[str],
        temporary_tables: bool,
        work: Path | None = None,
        memory_limit: str = "2GB",
    ) -> None:
        self.name, self._ibis, self._database = name, backend, database
        self._temporary_tables = temporary_tables
        self._names = {table.lower(): table for table in tables}
        self._store = Store(duckdb.connect(), work=work, memory_limit=memory_limit)

    def tables(self) -> Mapping[str, frozenset[str]]:
        """Column names by table name, all in lower case."""
        with refusals(self.name):
            return {
                name: frozenset(column.lower() for column in self._raw(name).columns)
                for name in self._names
            }

    def table(self, name: str, columns: Mapping[str, str]) -> ibis.Table:
        """Return a table with exactly these columns, in these types."""
        return typed(self._raw(name), columns)

    def fetch(self, query: ibis.Table) -> pl.DataFrame:
        """Run a query whose result is small."""
        with refusals(self.name):
            return _polars(self._ibis.to_pyarrow(query))

    def store(self, query: ibis.Table, table: str) -> None:
        """Run a query whose result may be large and keep it on disk under a name."""
        with refusals(self.name):
            if not self._temporary_tables:
                self._store.put(table, self._ibis.to_pyarrow(query), append=False)
                return
            for number, rows in enumerate(self._pieces(query)):
                self._store.put(table, rows, append=number > 0)

    def _pieces(self, query: ibis.Table) -> Iterator[pa.Table]:
        """Keep a result on the server and fetch it by groups of stays.

        A driver takes a whole result into memory before it gives out the first row.
        """
        with query.cache() as kept:
            n_rows = int(self._ibis.to_pyarrow(kept.count()).as_py())
            n_pieces = -(-n_rows // _BATCH_ROWS) or 1
            for number in range(n_pieces):
                yield self._ibis.to_pyarrow(kept.filter(kept.icustay_id % n_pieces == number))

    def stored(
        self,
        table: str,
        *,
        stays: tuple[int, int] | None = None,
        items: Iterable[int] | None = None,
    ) -> pl.DataFrame:
        """Rows of a kept result, of a range of stays (both ends included) or of some items."""
        return self._store.rows(table, stays=stays, items=items)

    def close(self) -> None:
        """Let go of connections and temporary files."""
        self._store.close()
        self._ibis.disconnect()

    def _raw(self, name: str) -> ibis.Table:
        return self._ibis.table(self._names[name], database=self._database)


@contextlib.contextmanager
def refusals(where: str) -> Iterator[None]:
    """Turn an engine's complaint, which may quote a patient's value, into a line that does not."""
    try:
        with warnings.catch_warnings():
            # Ibis 12 calls what DuckDB 2 marks as deprecated; nothing a user could act on.
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    except EtipsError:
        raise
    except duckdb.Error as error:
        raise _refusal(where, str(error)) from None
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("psycopg", "pyspark", "py4j"):
            raise
        rule = f"the engine refused a query ({type(error).__name__})"
        raise DataError(where, rule, fix="Check the address, the rights and the tables.") from None


_KINDS: Final = {
    "TIMESTAMP": "times as YYYY-MM-DD HH:MM:SS",
    "BIGINT": "whole numbers",
    "DOUBLE": "numbers",
}


def _refusal(where: str, complaint: str) -> EtipsError:
    """Keep from DuckDB's message only the file, the column, its type and the line."""
    file = re.search(r"([^/\\\s\"']+\.(?:csv\.gz|csv|parquet))", complaint, re.IGNORECASE)
    place = file[1] if file else where
    line = re.search(r"CSV Error on Line: (\d+)", complaint)
    at = f"; fails at line {line[1]}" if line else ""
    column = re.search(r"Column (\w+) is being converted as type (\w+)", complaint)
    if column:
        kind = _KINDS.get(column[2], "text")
        return DataError(place, f"column {column[1]} must hold {kind}{at}", fix=_FIX)
    if "gzip" in complaint.lower():
        return FileError(place, "must be a whole gzip file", fix=_FIX)
    if line:
        return DataError(place, f"must be a well-formed table{at}", fix=_FIX)
    if complaint.startswith("Conversion Error"):
        return DataError(place, "times and numbers must be written as such", fix=_FIX)
    return FileError(place, "cannot be read", fix=_FIX)


def _require_file(address: Path) -> None:
    if not address.is_file():
        raise FileError(str(address), "must be a folder of tables or a DuckDB file")


def _grouped(rows: list[tuple[Any, ...]]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for table, column in rows:
        found.setdefault(table.lower(), set()).add(column.lower())
    return {table: frozenset(columns) for table, columns in found.items()}


def _polars(result: Any) -> pl.DataFrame:  # noqa: ANN401 - a pyarrow table
    frame = pl.from_arrow(result)
    assert isinstance(frame, pl.DataFrame)
    return frame
