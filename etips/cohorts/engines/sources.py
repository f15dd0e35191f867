"""Raw tables behind an Ibis connection: a folder or a DuckDB file, or a server.

A source finds the tables, runs queries where the data is, and keeps large results in a DuckDB file
on local disk, so that everything after it is the same whichever engine delivered the rows.
"""

import contextlib
import hashlib
import json
import re
import secrets
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import duckdb
import ibis  # type: ignore[import-untyped, unused-ignore]
import polars as pl
import pyarrow as pa

from etips.cohorts.engines import tablefiles
from etips.cohorts.engines.layouts import TEXT, Layout, TypedTables, typed
from etips.cohorts.engines.store import Scratch, Store, in_seconds
from etips.errors import DataError, EtipsError, FileError, ResourceError, SettingError

_BATCH_ROWS: Final = 1_000_000
_FIX: Final = "Check the file, or download it again."
_KINDS: Final = {
    "TIMESTAMP": "times as YYYY-MM-DD HH:MM:SS",
    "BIGINT": "whole numbers",
    "DOUBLE": "numbers",
}


class Source(ABC):
    """A place that holds raw tables and can answer queries on them.

    Attributes:
        name: How refusals call it; no password in it.
        kept: Where large results lie.
    """

    name: str
    kept: Store
    _ibis: Any  # an Ibis backend, which ships no types

    @abstractmethod
    def begin(self, settings: str) -> None:
        """Take up what was stored from the same tables under the same settings, or begin anew."""

    @abstractmethod
    def tables(self) -> Mapping[str, frozenset[str]]:
        """Column names by table name, all in lower case."""

    @abstractmethod
    def table(self, name: str, columns: Mapping[str, str]) -> ibis.Table:
        """Return a table with exactly these columns, in these types."""

    @abstractmethod
    def fetch(self, query: ibis.Table) -> pl.DataFrame:
        """Run a query whose result is small; its times are whole seconds since 1970."""

    @abstractmethod
    def store(self, query: ibis.Table, table: str, *, by: str) -> None:
        """Run a query whose result may be large and keep it under a name.

        Where it is fetched in pieces, each is a group of the values of column `by`.
        """

    def close(self, *, keep: bool = False) -> None:
        """Let go of connections and, unless they are to be taken up again, stored results."""
        self.kept.close(keep=keep)
        self._ibis.disconnect()

    def open_tables(
        self, needed: TypedTables, optional: TypedTables, *, label: str, release: str
    ) -> dict[str, ibis.Table]:
        """Return the tables, once it is known that the source holds what is needed.

        Of the optional ones a column of text that is not there is null; a table that is not there
        is left out.

        Args:
            needed: Tables and columns that must be there.
            optional: Further ones that are read if they are there.
            label: What refusals call the database.
            release: What they call the one whose columns are meant.
        """
        there = self.tables()
        if missing := [name for name in needed if name not in there]:
            rule = f"must hold the {label} tables; missing: {', '.join(missing)}"
            raise DataError(
                self.name, rule, fix="Give the folder or schema that holds all of them."
            )
        lacking = [
            f"{name}.{column}"
            for name, columns in needed.items()
            for column in columns
            if column not in there[name]
        ]
        if lacking:
            rule = f"must hold the {release} columns; missing: {', '.join(lacking)}"
            raise DataError(self.name, rule, fix="Give the tables as PhysioNet ships them.")
        tables = {}
        for name in dict.fromkeys([*needed, *optional]):
            columns = {**needed.get(name, {}), **optional.get(name, {})}
            here = there.get(name, frozenset())
            numbers = [column for column, kind in columns.items() if kind != TEXT]
            if name not in needed and not (name in there and here.issuperset(numbers)):
                continue
            table = self.table(name, {c: kind for c, kind in columns.items() if c in here})
            absent = {c: ibis.null("string") for c in columns if c not in here}
            tables[name] = table.mutate(**absent) if absent else table
        return tables

    def require_owners(
        self, rows: ibis.Table, owners: ibis.Table, *, key: str, table: str, owner: str
    ) -> None:
        """Refuse rows whose owner is missing: a join would lose them in silence."""
        if self.fetch(rows.anti_join(owners, key).select(key)).height:
            rule = f"must have a row for every {key} of {table}"
            raise DataError(owner, rule, fix="Give the tables of the same patients.")


class DuckDBSource(Source):
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
            if name in attached and name in layouts.tables:
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
        """Run a query whose result is small; its times are whole seconds since 1970."""
        with refusals(self.name):
            return in_seconds(self._relation(query).pl())

    def batches(self, query: ibis.Table) -> Iterator[pl.DataFrame]:
        """Run a query whose result may be large, a piece at a time; at least one, maybe empty."""
        with refusals(self.name):
            reader = self._relation(query).fetch_arrow_reader(_BATCH_ROWS)
            empty = True
            try:
                for batch in reader:
                    empty = False
                    yield pl.DataFrame(pa.Table.from_batches([batch]))
            except OSError as error:  # how a complaint of DuckDB arrives here
                raise refusal_of(self.name, str(error)) from None
            if empty:
                yield pl.DataFrame(reader.schema.empty_table())

    def store(self, query: ibis.Table, table: str, *, by: str) -> None:
        """Run a query and keep its result on disk under a name, once."""
        del by  # DuckDB writes as it reads
        if self.kept.has(table):
            return
        with refusals(self.name):
            self._ibis.create_table(table, query, database=("store", "main"), overwrite=True)
            self.kept.mark(table)

    def _relation(self, query: ibis.Table) -> duckdb.DuckDBPyRelation:
        """A query for DuckDB itself: Ibis would import pandas, and cannot stream from DuckDB 2."""
        return self._duckdb.sql(str(self._ibis.compile(query)))


def _state_of(path: Path) -> list[list[object]]:
    """Name, size and time of a file, or of each part that a pattern names."""
    parts = sorted(path.parent.glob(path.name)) if "*" in path.name else [path]
    return [[part.name, part.stat().st_size, part.stat().st_mtime_ns] for part in parts]


class ServerSource(Source):
    """Tables behind an Ibis connection to a server; large results are copied to a local store.

    Args:
        backend: The Ibis connection.
        name: How refusals call it; no password in it.
        tables: Schema or catalogue database, if any, and name of each table.
        layouts: Which tables are looked for; one of them that is there twice is refused.
        temporary_tables: Whether large results may be kept there while they are fetched in pieces.
        scratch: For the local store; what a killed process left there is removed, not taken up.
    """

    def __init__(
        self,
        backend: Any,  # noqa: ANN401 - an Ibis backend
        *,
        name: str,
        tables: Iterable[tuple[str | None, str]],
        layouts: Layout,
        temporary_tables: bool,
        scratch: Scratch,
    ) -> None:
        self.name, self._ibis = name, backend
        self._temporary_tables = temporary_tables
        self._names: dict[str, tuple[str | None, str]] = {}
        for database, table in tables:
            if table.lower() in self._names and table.lower() in layouts.tables:
                rule = f"must hold {table.lower()} once; it is there more than once"
                raise DataError(name, rule, fix=f"Name the schemas of one {layouts.label}.")
            self._names[table.lower()] = (database, table)
        self.kept = Store(duckdb.connect(), scratch)

    def begin(self, settings: str) -> None:
        """Begin anew: nothing says whether the tables of a server have changed."""
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
        """Run a query whose result is small; its times are whole seconds since 1970."""
        with refusals(self.name):
            return in_seconds(pl.DataFrame(self._ibis.to_pyarrow(query)))

    def store(self, query: ibis.Table, table: str, *, by: str) -> None:
        """Run a query and keep its result on the local disk under a name."""
        with refusals(self.name):
            if not self._temporary_tables:
                self.kept.put(table, self._ibis.to_pyarrow(query), append=False)
                return
            # kept on the server, since a driver takes a whole result before it gives the first row
            with query.cache() as kept:
                n_rows = int(self._ibis.to_pyarrow(kept.count()).as_py())
                n_pieces = -(-n_rows // _BATCH_ROWS) or 1
                for number in range(n_pieces):
                    rows = self._ibis.to_pyarrow(kept.filter(kept[by] % n_pieces == number))
                    self.kept.put(table, rows, append=number > 0)

    def close(self, *, keep: bool = False) -> None:
        """Let go of connections and stored results, which a server's never outlive."""
        del keep
        super().close()

    def _raw(self, name: str) -> ibis.Table:
        database, table = self._names[name]
        return self._ibis.table(table, database=database)


def open_postgres(address: str, layouts: Layout, scratch: Scratch) -> ServerSource:
    """Split off `schema`, which is ours, and connect with the rest.

    Without one, the layout of whose schemas the server has a table is taken; there must be one.
    """
    try:
        parts = urlsplit(address)
        _ = parts.port  # looked at when it is asked for
    except ValueError:
        raise SettingError("source", "must be postgresql://user@host:port/database") from None
    options = dict(parse_qsl(parts.query))
    given = options.pop("schema", "")
    choices = [tuple(given.split(","))] if given else [*layouts.schemas]
    plain = urlunsplit(parts._replace(query=urlencode(options)))
    with refusals(f"postgresql schema {','.join(choices[0])}"):
        try:
            backend = ibis.connect(plain)
        except ImportError:
            fix = "Install it with: pip install 'etips[postgres]'."
            raise SettingError("engine", "postgres needs psycopg", fix=fix) from None
        filled: dict[tuple[str, ...], list[tuple[str | None, str]]] = {}
        for schemas in choices:
            listed = ((schema, backend.list_tables(database=schema)) for schema in schemas)
            tables: list[tuple[str | None, str]] = [
                (s, name) for s, names in listed for name in names
            ]
            if tables:
                filled[schemas] = tables
        if len(filled) > 1:
            named = " and ".join(f"schema={','.join(schemas)}" for schemas in filled)
            rule = "must say which database is meant; the server holds several"
            raise SettingError("source", rule, fix=f"Add one of {named} to the address.")
        schemas, tables = next(iter(filled.items()), (choices[0], []))
        return ServerSource(
            backend,
            name=f"postgresql schema {','.join(schemas)}",
            tables=tables,
            layouts=layouts,
            temporary_tables=True,
            scratch=scratch,
        )


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
        raise refusal_of(where, str(error)) from None
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("psycopg", "pyspark", "py4j"):
            raise
        rule = f"the engine refused a query ({type(error).__name__})"
        raise DataError(where, rule, fix="Check the address, the rights and the tables.") from None


def refusal_of(where: str, complaint: str) -> EtipsError:
    """Keep from DuckDB's message only the file, the column, its type and the line."""
    file = re.search(r"([^/\\\s\"']+\.(?:csv\.gz|csv|parquet))", complaint, re.IGNORECASE)
    place = file[1] if file else where
    line = re.search(r"CSV Error on Line: (\d+)", complaint)
    at = f"; fails at line {line[1]}" if line else ""
    column = re.search(r"Column (\w+) is being converted as type (\w+)", complaint)
    if column:
        kind = _KINDS.get(column[2], "text")
        return DataError(place, f"column {column[1]} must hold {kind}{at}", fix=_FIX)
    if re.search("no space left|file too large|quota exceeded", complaint, re.IGNORECASE):
        written = re.search(r"\"(/[^\"]+)\"", complaint)
        disk = f"disk of {Path(written[1]).parent}" if written else "disk for temporary files"
        fix = "Free some space, or write to another disk; the source is not at fault."
        return ResourceError(f"the {disk}", "is full", fix=fix)
    if complaint.startswith("Out of Memory"):
        rule = "needs more memory than there is"
        return ResourceError(where, rule, fix="Give --memory more.")
    if "gzip" in complaint.lower():
        return FileError(place, "must be a whole gzip file", fix=_FIX)
    if line:
        return DataError(place, f"must be a well-formed table{at}", fix=_FIX)
    if complaint.startswith("Conversion Error"):
        return DataError(place, "times and numbers must be written as such", fix=_FIX)
    return FileError(place, "cannot be read", fix=_FIX)
