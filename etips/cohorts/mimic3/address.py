"""From what the user types to a source: a folder, a file, a PostgreSQL or a Spark address."""

import contextlib
import importlib
import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import ibis  # type: ignore[import-untyped, unused-ignore]

from etips.cohorts.mimic3.engines import DuckDBSource, ServerSource, refusals
from etips.cohorts.mimic3.source import Source
from etips.errors import FileError, SettingError

_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT])i?B", re.IGNORECASE)
_BYTES: Final = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_LEAST_BYTES: Final = 64e6


class Engine(StrEnum):
    """Where queries run."""

    DUCKDB = "duckdb"
    POSTGRES = "postgres"
    SPARK = "spark"


def open_source(
    address: str | Path,
    *,
    engine: Engine = Engine.DUCKDB,
    work: Path | None = None,
    keep: Path | None = None,
    memory_limit: str = "2GB",
) -> Source:
    """Open the raw tables; close the result when done.

    Args:
        address: A folder of CSV, CSV.gz or Parquet tables, a DuckDB file,
            `postgresql://.../database?schema=mimiciii`, or `spark:DATABASE` for a Spark catalogue.
        engine: DuckDB unless the address says otherwise; `Engine.SPARK` also reads a folder.
        work: Folder for temporary files with patient data; the system's own if left out.
        keep: Folder that a build from files, once killed, is taken up from; see `Store`.
        memory_limit: What DuckDB may use before it spills to `work`, such as "2GB".
    """
    text = str(address)
    _require_size(memory_limit)
    if text.startswith(("postgresql://", "postgres://")):
        return _postgres(text, work=work, keep=keep, memory_limit=memory_limit)
    if engine is Engine.POSTGRES:
        raise SettingError("source", "must be postgresql://... for the engine postgres")
    if engine is Engine.SPARK or text.startswith("spark:"):
        return _spark(text, work=work, keep=keep, memory_limit=memory_limit)
    path = Path(address)
    if not path.exists():
        raise SettingError("source", "must be an existing folder or file, or a database address")
    return DuckDBSource(path, work=work, keep=keep, memory_limit=memory_limit)


@contextlib.contextmanager
def resumable_source(
    address: str | Path,
    *,
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
    source = open_source(address, engine=engine, keep=keep, memory_limit=memory_limit)
    try:
        yield source
    except KeyboardInterrupt:
        source.close(keep=True)
        raise
    except BaseException:
        source.close()
        raise
    source.close()


def _postgres(address: str, *, work: Path | None, keep: Path | None, memory_limit: str) -> Source:
    """Split off `schema`, which is ours, and connect with the rest."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # looked at when it is asked for
    except ValueError:
        raise SettingError("source", "must be postgresql://user@host:port/database") from None
    options = dict(parse_qsl(parts.query))
    schema = options.pop("schema", "mimiciii")
    plain = urlunsplit(parts._replace(query=urlencode(options)))
    name = f"postgresql schema {schema}"
    with refusals(name):
        try:
            backend = ibis.connect(plain)
        except ImportError:
            raise SettingError(
                "engine", "postgres needs psycopg", fix=_install("postgres")
            ) from None
        return ServerSource(
            backend,
            name=name,
            database=schema,
            tables=backend.list_tables(database=schema),
            temporary_tables=True,
            work=work,
            keep=keep,
            memory_limit=memory_limit,
        )


def _spark(address: str, *, work: Path | None, keep: Path | None, memory_limit: str) -> Source:
    try:
        spark = importlib.import_module("etips.cohorts.mimic3.spark")
    except ImportError:
        raise SettingError("engine", "spark needs pyspark", fix=_install("spark")) from None
    source: Source = spark.open_spark(address, work=work, keep=keep, memory_limit=memory_limit)
    return source


def _require_size(memory_limit: str) -> None:
    """Refuse what DuckDB would not understand, or could not work with."""
    size = _SIZE.fullmatch(memory_limit.strip())
    if size is None or float(size[1]) * _BYTES[size[2].upper()] < _LEAST_BYTES:
        raise SettingError("memory limit", "must be a size such as 2GB, 64MB or more")


def _install(extra: str) -> str:
    return f"Install it with: pip install 'etips[{extra}]'."
