"""Where queries run: DuckDB over files or a database file, PostgreSQL, Spark.

Extraction is written once in Ibis (`extract.py`). An engine only finds the tables, runs a query,
and keeps large results in a DuckDB file of its own on local disk, so that everything after
extraction is the same whichever engine delivered the rows.
"""

import contextlib
import hashlib
import json
import re
import secrets
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import duckdb
import ibis  # type: ignore[import-untyped, unused-ignore]
import ibis.expr.types as ir  # type: ignore[import-untyped, unused-ignore]
import polars as pl
import pyarrow as pa

from etips.cohorts.mimic3 import tablefiles
from etips.cohorts.mimic3.source import KNOWN_TABLES
from etips.cohorts.mimic3.store import Store
from etips.errors import DataError, EtipsError, FileError, ResourceError

_BATCH_ROWS: Final = 1_000_000
_FIX = "Check the file, or download it again."


class DuckDBSource:
    """A folder of CSV, CSV.gz or Parquet tables, or a DuckDB database file.

    Args:
        address: The folder or the file.
        work: Folder for temporary files; the system's own if left out.
        keep: Folder for files that a killed build is taken up from; see `Store`.
        memory_limit: What DuckDB may use before it spills to disk.
    """

    def __init__(
        self,
        address: Path,
        *,
        work: Path | None = None,
        keep: Path | None = None,
        memory_limit: str = "2GB",
    ) -> None:
        self.name = str(address)
        self._files = tablefiles.find(address, KNOWN_TABLES) if address.is_dir() else {}
        with refusals(self.name):
            self._ibis = ibis.duckdb.connect()
            self._duckdb: duckdb.DuckDBPyConnection = self._ibis.con
            self._duckdb.execute("SET TimeZone = 'UTC'")  # the same times on every machine
            if not address.is_dir():
                _require_file(address)
                path = tablefiles.quoted(self.name)
                self._duckdb.execute(f"ATTACH {path} AS source (READ_ONLY)")
            self._attached = _attached_tables(self._duckdb, self.name)
            self.kept = Store(self._duckdb, work=work, keep=keep, memory_limit=memory_limit)
        paths = [Path(file.path) for file in self._files.values()] or [address]
        self._state = [_state_of(path) for path in sorted(paths)]

    def begin(self, settings: str) -> None:
        """Take up what was stored from the same files under the same settings, or begin anew."""
        text = json.dumps([version("etips"), self.name, self._state, settings])
        self.kept.begin(hashlib.sha256(text.encode()).hexdigest())

    def tables(self) -> Mapping[str, frozenset[str]]:
        """Column names by table name, all in lower case."""
        if self._files:
            return {name: frozenset(file.columns) for name, file in self._files.items()}
        return {name: table.columns for name, table in self._attached.items()}

    def table(self, name: str, columns: Mapping[str, str]) -> ibis.Table:
        """Return a table with exactly these columns, in these types."""
        if self._files:
            with refusals(self._files[name].name):
                self._duckdb.execute(self._files[name].view(name, columns))
                return typed(self._ibis.table(name), columns, where=self._files[name].name)
        attached = self._attached[name]
        with refusals(self.name):
            place = ("source", attached.schema)
            table = self._ibis.table(attached.name, database=place)
            return typed(table, columns, where=f"{self.name}: {name}")

    def fetch(self, query: ibis.Table) -> pl.DataFrame:
        """Run a query whose result is small."""
        with refusals(self.name):
            frame: pl.DataFrame = self._relation(query).pl()
            return frame

    def batches(self, query: ibis.Table) -> Iterator[pl.DataFrame]:
        """Run a query whose result may be large, a piece at a time; at least one, maybe empty."""
        with refusals(self.name):
            reader = self._relation(query).fetch_arrow_reader(_BATCH_ROWS)
            empty = True
            try:
                for batch in reader:
                    empty = False
                    yield _polars(pa.Table.from_batches([batch]))
            except OSError as error:  # how a complaint of DuckDB arrives here
                raise _refusal(self.name, str(error)) from None
            if empty:
                yield _polars(reader.schema.empty_table())

    def store(self, query: ibis.Table, table: str) -> None:
        """Run a query whose result may be large and keep it on disk under a name, once."""
        if self.kept.has(table):
            return
        with refusals(self.name):
            self._ibis.create_table(table, query, database=("store", "main"), overwrite=True)
            self.kept.mark(table)

    def _relation(self, query: ibis.Table) -> duckdb.DuckDBPyRelation:
        """A query for DuckDB itself: Ibis would import pandas, and cannot stream from DuckDB 2."""
        return self._duckdb.sql(str(self._ibis.compile(query)))

    def close(self, *, keep: bool = False) -> None:
        """Let go of connections and, unless they are to be taken up again, stored results."""
        self.kept.close(keep=keep)
        self._ibis.disconnect()


def _state_of(path: Path) -> list[list[object]]:
    """Name, size and time of a file, or of each part that a pattern names."""
    parts = sorted(path.parent.glob(path.name)) if "*" in path.name else [path]
    return [[part.name, part.stat().st_size, part.stat().st_mtime_ns] for part in parts]


def typed(table: ibis.Table, columns: Mapping[str, str], *, where: str) -> ibis.Table:
    """Pick columns whatever their case, and cast those that have another type.

    Args:
        table: As the engine has it.
        columns: Names in lower case, and types.
        where: How refusals call the table.
    """
    by_name = {name.lower(): table[name] for name in table.columns}
    picked = {}
    for name, kind in columns.items():
        if by_name[name].type().is_nested():
            raise DataError(where, f"column {name} must hold one value a row", fix=_FIX)
        picked[name] = _cast(by_name[name], kind, code=name == "gsn")
    return table.select(**picked)


def _cast(column: ir.Value, kind: str, *, code: bool) -> ir.Value:
    """Cast a column that has another type.

    Codes that a builder stored as numbers get their leading zeros back. A text with something
    behind the time, such as PM, is spoilt first: engines would pass over it in silence.
    """
    if column.type() == ibis.dtype(kind):
        return column
    if code and column.type().is_numeric():
        return column.cast("int64").cast("string").lpad(6, "0")
    if kind == "timestamp" and column.type().is_string():
        plain = column.isnull() | column.re_search(tablefiles.PLAIN_TIME)
        column = plain.ifelse(column, "not a time")
    return column.cast(kind)


class ServerSource:
    """Tables behind an Ibis connection to a server; large results are copied to a local store.

    Args:
        backend: The Ibis connection.
        name: How refusals call it; no password in it.
        database: Schema or catalogue database that holds the tables.
        tables: Names of the tables in it.
        temporary_tables: Whether large results may be kept there while they are fetched in pieces.
        work: Folder for temporary files; the system's own if left out.
        keep: Folder for them instead; what a killed process left there is removed, not taken up.
        memory_limit: What DuckDB may use for the local store before it spills to disk.
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
        keep: Path | None = None,
        memory_limit: str = "2GB",
    ) -> None:
        self.name, self._ibis, self._database = name, backend, database
        self._temporary_tables = temporary_tables
        self._names = {table.lower(): table for table in tables}
        self.kept = Store(duckdb.connect(), work=work, keep=keep, memory_limit=memory_limit)

    def begin(self, settings: str) -> None:
        """Begin anew: nothing tells whether the tables of a server have changed."""
        self.kept.begin(f"{settings} {secrets.token_hex(8)}")

    def tables(self) -> Mapping[str, frozenset[str]]:
        """Column names by table name, all in lower case."""
        with refusals(self.name):
            return {
                name: frozenset(column.lower() for column in self._raw(name).columns)
                for name in self._names
            }

    def table(self, name: str, columns: Mapping[str, str]) -> ibis.Table:
        """Return a table with exactly these columns, in these types."""
        return typed(self._raw(name), columns, where=f"{self.name}: {name}")

    def fetch(self, query: ibis.Table) -> pl.DataFrame:
        """Run a query whose result is small."""
        with refusals(self.name):
            return _polars(self._ibis.to_pyarrow(query))

    def store(self, query: ibis.Table, table: str) -> None:
        """Run a query whose result may be large and keep it on disk under a name."""
        with refusals(self.name):
            if not self._temporary_tables:
                self.kept.put(table, self._ibis.to_pyarrow(query), append=False)
                return
            for number, rows in enumerate(self._pieces(query)):
                self.kept.put(table, rows, append=number > 0)

    def _pieces(self, query: ibis.Table) -> Iterator[pa.Table]:
        """Keep a result on the server and fetch it by groups of stays.

        A driver takes a whole result into memory before it gives out the first row.
        """
        with query.cache() as kept:
            n_rows = int(self._ibis.to_pyarrow(kept.count()).as_py())
            n_pieces = -(-n_rows // _BATCH_ROWS) or 1
            for number in range(n_pieces):
                yield self._ibis.to_pyarrow(kept.filter(kept.icustay_id % n_pieces == number))

    def close(self, *, keep: bool = False) -> None:
        """Let go of connections and stored results, which a server's never outlive."""
        del keep
        self.kept.close(keep=False)
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
    except (duckdb.InterruptException, RuntimeError) as error:
        if "interrupted" in str(error).lower():  # how DuckDB passes Ctrl-C on
            raise KeyboardInterrupt from None
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
    full = re.search("no space left|file too large|quota exceeded", complaint, re.IGNORECASE)
    if complaint.startswith("Out of Memory") or full:
        spent = "disk" if full else "memory"
        fix = "Give --memory more." if spent == "memory" else "Free some space."
        return ResourceError(where, f"needs more {spent} than there is", fix=fix)
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


@dataclass(frozen=True)
class _Attached:
    """A table or view of an attached database, with its columns in lower case."""

    schema: str
    name: str
    columns: frozenset[str]


def _attached_tables(connection: duckdb.DuckDBPyConnection, where: str) -> dict[str, _Attached]:
    """What the attached database holds, by lower-case name; a needed table must be there once."""
    rows = connection.execute(
        "SELECT schema_name, table_name, list(lower(column_name)) FROM duckdb_columns() "
        "WHERE database_name = 'source' GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    found: dict[str, _Attached] = {}
    for schema, name, columns in rows:
        if name.lower() in found and name.lower() in KNOWN_TABLES:
            rule = f"must hold {name.lower()} once; it is there more than once"
            raise DataError(where, rule, fix="Give a file with one MIMIC-III in it.")
        found[name.lower()] = _Attached(schema, name, frozenset(columns))
    return found


def _polars(result: Any) -> pl.DataFrame:  # noqa: ANN401 - a pyarrow table
    frame = pl.from_arrow(result)
    assert isinstance(frame, pl.DataFrame)
    return frame
