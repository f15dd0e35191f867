"""DuckDB over a folder of files or a database file.

An engine finds the tables, runs a query, and keeps large results in a DuckDB file of its own on
local disk, so that everything after extraction is the same whichever engine delivered the rows.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

import duckdb
import ibis  # type: ignore[import-untyped, unused-ignore]
import polars as pl
import pyarrow as pa

from etips.cohorts.engines import tablefiles
from etips.cohorts.engines.casting import typed
from etips.cohorts.engines.complaints import refusal_of, refusals
from etips.cohorts.engines.layouts import Layouts
from etips.cohorts.engines.store import Store, as_frame
from etips.errors import DataError, FileError

_BATCH_ROWS: Final = 1_000_000


class DuckDBSource:
    """A folder of CSV, CSV.gz or Parquet tables, or a DuckDB database file.

    Args:
        address: The folder or the file.
        layouts: Which tables to look for.
        work: Folder for temporary files; the system's own if left out.
        keep: Folder for files that a killed build is taken up from; see `Store`.
        memory_limit: What DuckDB may use before it spills to disk.
    """

    def __init__(
        self,
        address: Path,
        layouts: Layouts,
        *,
        work: Path | None = None,
        keep: Path | None = None,
        memory_limit: str = "2GB",
    ) -> None:
        self.name = str(address)
        self._files = tablefiles.find(address, layouts) if address.is_dir() else {}
        with refusals(self.name):
            self._ibis = ibis.duckdb.connect()
            self._duckdb: duckdb.DuckDBPyConnection = self._ibis.con
            try:
                self._duckdb.execute("SET TimeZone = 'UTC'")  # the same times on every machine
                if not address.is_dir():
                    _require_file(address)
                    path = tablefiles.quoted(self.name)
                    self._duckdb.execute(f"ATTACH {path} AS source (READ_ONLY)")
                self._attached = _attached_tables(self._duckdb, self.name, layouts)
                self.kept = Store(self._duckdb, work=work, keep=keep, memory_limit=memory_limit)
            except BaseException:
                self._ibis.disconnect()
                raise
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
                    yield as_frame(pa.Table.from_batches([batch]))
            except OSError as error:  # how a complaint of DuckDB arrives here
                raise refusal_of(self.name, str(error)) from None
            if empty:
                yield as_frame(reader.schema.empty_table())

    def store(self, query: ibis.Table, table: str, *, by: str) -> None:
        """Run a query whose result may be large and keep it on disk under a name, once."""
        del by  # DuckDB writes as it reads
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


def _require_file(address: Path) -> None:
    if not address.is_file():
        raise FileError(str(address), "must be a folder of tables or a DuckDB file")


@dataclass(frozen=True)
class _Attached:
    """A table or view of an attached database, with its columns in lower case."""

    schema: str
    name: str
    columns: frozenset[str]


def _attached_tables(
    connection: duckdb.DuckDBPyConnection, where: str, layouts: Layouts
) -> dict[str, _Attached]:
    """What the attached database holds, by lower-case name; a needed table must be there once."""
    rows = connection.execute(
        "SELECT schema_name, table_name, list(lower(column_name)) FROM duckdb_columns() "
        "WHERE database_name = 'source' GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    attached: dict[str, _Attached] = {}
    for schema, name, columns in rows:
        if name.lower() in attached and name.lower() in layouts.names:
            rule = f"must hold {name.lower()} once; it is there more than once"
            raise DataError(where, rule, fix=f"Give a file with one {layouts.label} in it.")
        attached[name.lower()] = _Attached(schema, name, frozenset(columns))
    return attached
