"""Tables in a Spark catalogue, or files that Spark reads. Imported only when asked for."""

from pathlib import Path
from typing import Final

import ibis  # type: ignore[import-untyped, unused-ignore]
from pyspark.sql import SparkSession

from etips.cohorts.engines import tablefiles
from etips.cohorts.engines.layouts import Layout
from etips.cohorts.engines.sources import ServerSource, refusals
from etips.cohorts.engines.store import Scratch
from etips.errors import FileError

_TYPES: Final = {
    "int64": "BIGINT",
    "string": "STRING",
    "code": "STRING",
    "float64": "DOUBLE",
    "timestamp": "TIMESTAMP",
}


def open_spark(address: str, layouts: Layout, scratch: Scratch) -> ServerSource:
    """Open `spark:DATABASE`, or a folder of tables read by Spark.

    Times carry no zone; the session is set to UTC so that Spark adds none. The driver
    holds the reduced rows of one table at a time.
    """
    with refusals(address):
        session = SparkSession.builder.getOrCreate()
        session.conf.set("spark.sql.session.timeZone", "UTC")
        # Arrow both ways: without it rows travel as pickles, slow and never safe to read.
        session.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
        session.conf.set("spark.sql.execution.arrow.pyspark.fallback.enabled", "false")
        tables: list[tuple[str | None, str]]
        if address.startswith("spark:"):
            databases = address.removeprefix("spark:").split(",")
            tables = [(d, table.name) for d in databases for table in session.catalog.listTables(d)]
        else:  # not what an earlier folder left in the session
            tables = [(None, name) for name in _register_files(session, Path(address), layouts)]
        return ServerSource(
            ibis.pyspark.connect(session),
            name=address,
            tables=tables,
            layouts=layouts,
            temporary_tables=False,  # Ibis 12 forgets in-memory tables when it caches on Spark
            scratch=scratch,
        )


def _register_files(session: SparkSession, folder: Path, layouts: Layout) -> list[str]:
    """Make every needed file of a folder a temporary view; return their names."""
    if not folder.is_dir():
        raise FileError(str(folder), "must be a folder of tables, or spark:DATABASE")
    registered = []
    for name, file in tablefiles.find(folder, layouts).items():
        types = layouts.tables.get(name, {})
        if not types:
            continue
        registered.append(name)
        file.require_plain_times(types)
        if file.parquet:
            frame = session.read.parquet(file.path)
        else:
            schema = ", ".join(
                f"`{column}` {_TYPES[types.get(column, 'string')]}" for column in file.columns
            )
            frame = session.read.csv(
                file.path, schema=schema, header=True, quote='"', escape='"', mode="FAILFAST",
                multiLine=True, timestampFormat="yyyy-MM-dd[ HH:mm:ss]",
            )  # fmt: skip
        frame.createOrReplaceTempView(name)
    return registered
