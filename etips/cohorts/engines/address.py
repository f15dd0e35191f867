"""From what the user types to a source: a folder, a file, a PostgreSQL or a Spark address."""

import contextlib
import importlib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

from etips.cohorts.engines.layouts import Layout
from etips.cohorts.engines.sources import DuckDBSource, Source, open_postgres
from etips.cohorts.engines.store import Scratch, size_in_bytes
from etips.errors import FileError, SettingError

_LEAST_BYTES: Final = 64e6


class Engine(StrEnum):
    """Where queries run."""

    DUCKDB = "duckdb"
    POSTGRES = "postgres"
    SPARK = "spark"


def open_source(
    address: str | Path,
    *,
    layouts: Layout,
    engine: Engine = Engine.DUCKDB,
    work: Path | None = None,
    keep: Path | None = None,
    memory_limit: str = "2GB",
) -> Source:
    """Open the raw tables; close the result when done.

    Args:
        address: A folder of CSV, CSV.gz or Parquet tables, a DuckDB file,
            `postgresql://.../database?schema=NAME`, or `spark:DATABASE` for a Spark catalogue.
        layouts: Which tables to look for.
        engine: DuckDB unless the address says otherwise; `Engine.SPARK` also reads a folder.
        work: Folder for temporary files with patient data; the system's own if left out.
        keep: Folder that a build from files, once killed, is taken up from; see `Store`.
        memory_limit: What DuckDB may use before it spills to `work`, such as "2GB".
    """
    text = str(address)
    if not size_in_bytes(memory_limit) >= _LEAST_BYTES:  # or DuckDB would not understand it
        raise SettingError("memory limit", "must be a size such as 2GB, 64MB or more")
    scratch = Scratch(work, keep, memory_limit)
    if text.startswith(("postgresql://", "postgres://")):
        return open_postgres(text, layouts, scratch)
    if engine is Engine.POSTGRES:
        raise SettingError("source", "must be postgresql://... for the engine postgres")
    if engine is Engine.SPARK or text.startswith("spark:"):
        try:
            spark = importlib.import_module("etips.cohorts.engines.spark")
        except ImportError:
            fix = "Install it with: pip install 'etips[spark]'."
            raise SettingError("engine", "spark needs pyspark", fix=fix) from None
        source: Source = spark.open_spark(text, layouts, scratch)
        return source
    path = Path(address)
    if not path.exists():
        raise SettingError("source", "must be an existing folder or file, or a database address")
    return DuckDBSource(path, layouts, scratch)


@contextlib.contextmanager
def resumable_source(
    address: str | Path,
    *,
    layouts: Layout,
    out: Path,
    engine: Engine = Engine.DUCKDB,
    memory_limit: str = "2GB",
) -> Iterator[Source]:
    """Open the raw tables for a build whose result goes to `out`.

    What is read is kept in a hidden folder beside `out` until the `with` block ends. A killed or
    interrupted process leaves it there; the same build of the same files takes it up. It goes when
    the build succeeds, and when it is refused, since then the input has to change.
    """
    if not out.parent.is_dir():
        raise FileError(str(out.parent), "must be a folder that exists")
    keep = out.parent / f".{out.name}.work"
    source = open_source(
        address, layouts=layouts, engine=engine, keep=keep, memory_limit=memory_limit
    )
    try:
        yield source
    except KeyboardInterrupt:
        source.close(keep=True)
        raise
    except BaseException:
        source.close()
        raise
    source.close()
