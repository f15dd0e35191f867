"""DuckDB over a folder of files or a database file.

An engine finds the tables, runs a query, and keeps large results in a DuckDB file of its own on
local disk, so that everything after extraction is the same whichever engine delivered the rows.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

import duckdb
import ibis  # type: ignore[import-untyped, unused-ignore]
import polars as pl
import pyarrow as pa

from etips.cohorts.engines import tablefiles
from etips.cohorts.engines.complaints import refusal_of, refusals
from etips.cohorts.engines.layouts import Layout, typed
from etips.cohorts.engines.store import Scratch, Store, as_frame
from etips.errors import DataError, FileError

_BATCH_ROWS: Final = 1_000_000


class DuckDBSource:
    """A folder of CSV, CSV.gz or Parquet tables, or a DuckDB database file."""

    def __init__(self, address: Path, layouts: Layout, scratch: Scratch | None = None) -> None:
        self.name = str(address)
        if not (address.is_dir() or address.is_file()):
            raise FileError(self.name, "must be a folder of tables or a DuckDB file")
        self._files = tablefiles.find(address, layouts) if address.is_dir() else {}
        with refusals(self.name):
            self._ibis = ibis.duckdb.connect()
            self._duckdb: duckdb.DuckDBPyConnection = self._ibis.con
            try:
                self._duckdb.execute("SET TimeZone = 'UTC'")  # the same times on every machine
                if not address.is_dir():
                    path = tablefiles.quoted(self.name)
                    self._duckdb.execute(f"ATTACH {path} AS source (READ_ONLY)")
                self._attached = self._attached_tables(layouts)
                self.kept = Store(self._duckdb, scratch or Scratch())
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
        return {name: frozenset(columns) for name, (_, _, columns) in self._attached.items()}

    def _attached_tables(self, layouts: Layout) -> dict[str, tuple[str, str, list[str]]]:
        """Schema, name and columns of what an attached database holds, by lower-case name."""
        rows = self._duckdb.execute(
            "SELECT schema_name, table_name, list(lower(column_name)) FROM duckdb_columns() "
            "WHERE database_name = 'source' GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        attached: dict[str, tuple[str, str, list[str]]] = {}
        for schema, table, columns in rows:
            name = table.lower()
            if name in attached and name in layouts.names:
                rule = f"must hold {name} once; it is there more than once"
                raise DataError(self.name, rule, fix=f"Give a file with one {layouts.label} in it.")
            attached[name] = (schema, table, columns)
        return attached

    def table(self, name: str, columns: Mapping[str, str]) -> ibis.Table:
        """Return a table with exactly these columns, in these types."""
        if self._files:
            with refusals(self._files[name].name):
                self._duckdb.execute(self._files[name].view(name, columns))
                return typed(self._ibis.table(name), columns, where=self._files[name].name)
        schema, own, _ = self._attached[name]
        with refusals(self.name):
            table = self._ibis.table(own, database=("source", schema))
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
