"""Tables behind an Ibis connection to a server: PostgreSQL, Spark."""

import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import duckdb
import ibis  # type: ignore[import-untyped, unused-ignore]
import polars as pl
import pyarrow as pa

from etips.cohorts.engines.complaints import refusals
from etips.cohorts.engines.layouts import Layout, typed
from etips.cohorts.engines.store import Scratch, Store, as_frame
from etips.errors import DataError, SettingError

_BATCH_ROWS: Final = 1_000_000


class ServerSource:
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
        backend: Any,  # noqa: ANN401 - an Ibis backend, which ships no types
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
            if table.lower() in self._names and table.lower() in layouts.names:
                rule = f"must hold {table.lower()} once; it is there more than once"
                raise DataError(name, rule, fix=f"Name the schemas of one {layouts.label}.")
            self._names[table.lower()] = (database, table)
        self.kept = Store(duckdb.connect(), scratch)

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
            return as_frame(self._ibis.to_pyarrow(query))

    def store(self, query: ibis.Table, table: str, *, by: str) -> None:
        """Run a query whose result may be large and keep it on disk under a name."""
        with refusals(self.name):
            if not self._temporary_tables:
                self.kept.put(table, self._ibis.to_pyarrow(query), append=False)
                return
            for number, rows in enumerate(self._pieces(query, by)):
                self.kept.put(table, rows, append=number > 0)

    def _pieces(self, query: ibis.Table, by: str) -> Iterator[pa.Table]:
        """Keep a result on the server and fetch it by groups of a column.

        A driver takes a whole result into memory before it gives out the first row.
        """
        with query.cache() as kept:
            n_rows = int(self._ibis.to_pyarrow(kept.count()).as_py())
            n_pieces = -(-n_rows // _BATCH_ROWS) or 1
            for number in range(n_pieces):
                yield self._ibis.to_pyarrow(kept.filter(kept[by] % n_pieces == number))

    def close(self, *, keep: bool = False) -> None:
        """Let go of connections and stored results, which a server's never outlive."""
        del keep
        self.kept.close(keep=False)
        self._ibis.disconnect()

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
        schemas, tables = _only_filled(backend, choices)
        return ServerSource(
            backend,
            name=f"postgresql schema {','.join(schemas)}",
            tables=tables,
            layouts=layouts,
            temporary_tables=True,
            scratch=scratch,
        )


def _only_filled(
    backend: Any,  # noqa: ANN401 - an Ibis backend, which ships no types
    choices: list[tuple[str, ...]],
) -> tuple[tuple[str, ...], list[tuple[str | None, str]]]:
    """The schemas that hold a table, and the tables; the first of all if none does."""
    filled: dict[tuple[str, ...], list[tuple[str | None, str]]] = {}
    for schemas in choices:
        listed = ((schema, backend.list_tables(database=schema)) for schema in schemas)
        tables = [(schema, name) for schema, names in listed for name in names]
        if tables:
            filled[schemas] = [*tables]
    if len(filled) > 1:
        named = " and ".join(f"schema={','.join(schemas)}" for schemas in filled)
        rule = "must say which database is meant; the server holds several"
        raise SettingError("source", rule, fix=f"Add one of {named} to the address.")
    return next(iter(filled.items()), (choices[0], []))
