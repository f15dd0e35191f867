"""What every engine offers."""

from collections.abc import Mapping
from typing import Protocol

import ibis  # type: ignore[import-untyped, unused-ignore]
import polars as pl

from etips.cohorts.engines.store import Store


class RawSource(Protocol):
    """A place that holds raw tables and can answer queries on them."""

    @property
    def name(self) -> str:
        """How refusals call it."""

    def tables(self) -> Mapping[str, frozenset[str]]:
        """Column names by table name, all in lower case."""

    def table(self, name: str, columns: Mapping[str, str]) -> ibis.Table:
        """Return a table with exactly these columns, in these types."""

    @property
    def kept(self) -> Store:
        """Large results on local disk."""

    def begin(self, settings: str) -> None:
        """Take up what was stored from the same tables under the same settings, or begin anew."""

    def fetch(self, query: ibis.Table) -> pl.DataFrame:
        """Run a query whose result is small."""

    def store(self, query: ibis.Table, table: str, *, by: str) -> None:
        """Run a query whose result may be large and keep it on disk under a name.

        Args:
            query: What to run.
            table: The name.
            by: A whole-number column that splits the result into pieces of about one size.
        """

    def close(self, *, keep: bool = False) -> None:
        """Let go of connections and, unless they are to be taken up again, stored results."""
