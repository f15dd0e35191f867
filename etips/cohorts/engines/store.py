"""Large results on local disk: a DuckDB file that a killed build can be taken up from."""

import contextlib
import math
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
import polars as pl
import pyarrow as pa

from etips.cohorts.engines.tablefiles import quoted
from etips.errors import DataError, FileError, ResourceError
from etips.files.lock import Lock

_FILE = "store.duckdb"
_AT_REST: Final = "256MB"  # enough to read back a block of rows
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT])i?B", re.IGNORECASE)
_BYTES: Final = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SPENT = (  # how DuckDB says so; nobody else writes here, so that a commit fails for nothing else
    duckdb.IOException,
    duckdb.OutOfMemoryException,
    duckdb.FatalException,
    duckdb.TransactionException,
)


@dataclass(frozen=True)
class Scratch:
    """Room for a build.

    Attributes:
        work: Folder for temporary files, removed on close; the system's own if left out.
        keep: Folder for files that outlive a killed process instead; made if it is not there.
        memory_limit: What DuckDB may use before it spills to disk, such as "2GB".
    """

    work: Path | None = None
    keep: Path | None = None
    memory_limit: str = "2GB"


class Store:
    """Named tables in a DuckDB file; patient data lies there while the builder runs."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, scratch: Scratch) -> None:
        self.connection, self._memory_limit = connection, scratch.memory_limit
        self._leaving = contextlib.ExitStack()
        if scratch.keep is None:
            self._folder = Path(tempfile.mkdtemp(prefix=".etips-cohort-", dir=scratch.work))
        else:
            self._folder = _private(scratch.keep)
            self._leaving.enter_context(Lock(scratch.keep))
        try:
            with self._resources():
                connection.execute(f"SET memory_limit = {quoted(self._memory_limit)}")
                connection.execute(f"SET temp_directory = {quoted(str(self._folder / 'spill'))}")
                connection.execute("SET preserve_insertion_order = false")
                self._attach()
                connection.execute("CREATE TABLE IF NOT EXISTS store.whole (name VARCHAR)")
        except BaseException:
            self.close(keep=False)
            raise

    def begin(self, key: str) -> None:
        """Keep what an earlier process stored under the same key, and nothing else."""
        if self.has(key):
            return
        with self._resources():
            rows = self.connection.execute(
                "SELECT table_name FROM duckdb_tables() WHERE database_name = 'store'"
            ).fetchall()
            for (table,) in rows:
                self.connection.execute(f'DROP TABLE store."{table}"')
            self.connection.execute("CREATE TABLE store.whole (name VARCHAR)")
        self.mark(key)

    def has(self, table: str) -> bool:
        """Whether a table was stored whole."""
        marks = self.connection.execute("SELECT 1 FROM store.whole WHERE name = ?", [table])
        return bool(marks.fetchall())

    def mark(self, table: str) -> None:
        """Say that a table is whole."""
        with self._resources():
            self.connection.execute("INSERT INTO store.whole VALUES (?)", [table])

    def rows(
        self,
        table: str,
        *,
        columns: Iterable[str] = (),
        between: tuple[str, int, int] | None = None,
        among: tuple[str, Iterable[int]] | None = None,
    ) -> pl.DataFrame:
        """Rows of a table, in no order, times as whole seconds since 1970.

        Args:
            table: Its name.
            columns: Which columns; all if left out.
            between: A column, and the lowest and highest value that it may have.
            among: A column, and the values that it may have.
        """
        kept = self.connection.table(f"store.{table}")
        if between is not None:
            column, low, high = between
            kept = kept.filter(f"{column} BETWEEN {int(low)} AND {int(high)}")
        if among is not None:
            listed = ", ".join(str(int(value)) for value in among[1])
            kept = kept.filter(f"{among[0]} IN ({listed})" if listed else "false")
        if names := ", ".join(columns):
            kept = kept.project(names)
        with self._resources():
            return in_seconds(kept.pl())

    def height(self, table: str) -> int:
        """How many rows a table has."""
        counted = self.connection.table(f"store.{table}").aggregate("count(*)").fetchall()
        return int(counted[0][0])

    def counts(self, table: str, *columns: str) -> pl.DataFrame:
        """How many rows each combination of the columns has: `n` beside them."""
        names = ", ".join(columns)
        kept = self.connection.table(f"store.{table}")
        with self._resources():
            frame: pl.DataFrame = kept.aggregate(f"{names}, count(*) AS n", names).pl()
        return frame

    def put(self, table: str, rows: pa.Table, *, append: bool) -> None:
        """Store rows, after those already stored under the name or instead of them."""
        self.connection.register("etips_rows", rows)
        make = "INSERT INTO" if append else "CREATE OR REPLACE TABLE"
        keyword = "" if append else "AS"
        with self._resources():
            self.connection.execute(
                f"{make} store.{table} {keyword} SELECT * FROM etips_rows"  # noqa: S608
            )
        self.connection.unregister("etips_rows")

    def shrink(self) -> None:
        """Give back memory that was held to read faster; what is stored stays on disk."""
        if size_in_bytes(self._memory_limit) > size_in_bytes(_AT_REST):
            with contextlib.suppress(duckdb.OutOfMemoryException):  # no harm if it is in use
                self.connection.execute(f"SET memory_limit = {quoted(_AT_REST)}")

    def close(self, *, keep: bool = False) -> None:
        """Let go of the file, and remove it unless it is to be taken up again."""
        with contextlib.suppress(duckdb.Error):  # a full disk; what led here is told already
            self.connection.execute("DETACH store")
        if not keep:  # while the lock is held: after it, the folder may be somebody else's
            shutil.rmtree(self._folder, ignore_errors=True)
        self._leaving.close()

    @contextlib.contextmanager
    def _resources(self) -> Iterator[None]:
        """Turn a full disk or memory into one line."""
        try:
            yield
        except _SPENT:
            rule = "cannot hold the extracted rows: disk or memory is spent"
            raise ResourceError(str(self._folder), rule, fix="Free some, or give more.") from None

    def _attach(self) -> None:
        """Open the file; one that a crash left unreadable is begun anew."""
        path = self._folder / _FILE
        try:
            self.connection.execute(f"ATTACH {quoted(str(path))} AS store")
        except duckdb.Error:
            for left in (path, path.with_name(path.name + ".wal")):
                left.unlink(missing_ok=True)
            self.connection.execute(f"ATTACH {quoted(str(path))} AS store")


def size_in_bytes(text: str) -> float:
    """A size such as 2GB in bytes; NaN where DuckDB would not understand it."""
    size = _SIZE.fullmatch(text.strip())
    return math.nan if size is None else float(size[1]) * _BYTES[size[2].upper()]


def _private(folder: Path) -> Path:
    """A folder that nobody else on the machine reads."""
    if folder.is_symlink():
        raise FileError(str(folder), "must not be a link")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise FileError(str(folder), f"cannot be made: {error.strerror}") from None
    return folder


def in_seconds(frame: pl.DataFrame) -> pl.DataFrame:
    """Timestamps to whole seconds since 1970; the other columns as they are."""
    times = [name for name, kind in frame.schema.items() if isinstance(kind, pl.Datetime)]
    return frame.with_columns(pl.col(times).dt.epoch("s"))


def require_finite(table: str, frame: pl.DataFrame) -> None:
    """Refuse NaN and infinity, which no chart holds; a missing number is null."""
    numbers = [column for column, kind in frame.schema.items() if kind == pl.Float64]
    if not numbers:
        return
    bad = frame.select(pl.any_horizontal(pl.col(numbers).is_finite().not_())).to_series()
    if bad.any():
        rule = f"{' and '.join(numbers)} must be finite; {bad.sum()} rows fail"
        raise DataError(table, rule, fix="Leave the cell empty where there is no number.")
