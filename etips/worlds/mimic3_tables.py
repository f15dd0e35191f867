"""Raw tables of the MIMIC-III shape: simulated ones for tests anywhere, and copies of a source."""

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import polars as pl
import pyarrow.parquet as pq

from etips.cohorts.engines.duckdb_source import DuckDBSource
from etips.cohorts.engines.layouts import Layouts
from etips.cohorts.mimic3.switches import CLEAN
from etips.cohorts.mimic3.tables import LAYOUT, needed, open_tables
from etips.errors import FileError, SettingError
from etips.files.writing import folder_made_whole, write_file
from etips.progress import Progress, no_progress
from etips.worlds.mimic3_hospital import BLOCK_STAYS, simulate_table

_ID_STEP: Final = {
    "row_id": 1_000_000_000,
    "subject_id": 1_000_000,
    "hadm_id": 1_000_000,
    "icustay_id": 1_000_000,
}
_DAYS_BETWEEN_COPIES: Final = 7


def write_simulated(
    folder: Path,
    *,
    n_stays: int,
    seed: int = 0,
    parquet: bool = False,
    overwrite: bool = False,
    progress: Progress = no_progress,
) -> None:
    """Write simulated raw tables.

    Args:
        folder: Must not exist yet; its parent must.
        n_stays: ICU stays in all.
        seed: The same seed gives the same tables.
        parquet: Parquet files; gzipped CSV otherwise.
        overwrite: Replace a folder that holds such tables and nothing else.
        progress: Told which table is being written, and which share is behind.
    """
    if n_stays < 1:
        raise SettingError("n_stays", "must be at least 1")
    sizes = [min(BLOCK_STAYS, n_stays - at) for at in range(0, n_stays, BLOCK_STAYS)]

    def blocks(table: str) -> Iterator[pl.DataFrame]:
        for number, size in enumerate(sizes):
            yield simulate_table(table, seed=seed, block=number, n_stays=size)

    _write_tables(folder, blocks, parquet=parquet, overwrite=overwrite, progress=progress)


def write_copies(
    folder: Path,
    *,
    source: Path,
    copies: int,
    parquet: bool = True,
    overwrite: bool = False,
    progress: Progress = no_progress,
) -> None:
    """Write K copies of a source with their own numbers and, from the second on, later times.

    The source is read once, a batch of rows at a time, so memory does not grow with its size.

    Args:
        folder: Must not exist yet; its parent must.
        source: Folder with raw tables, or a DuckDB file.
        copies: How many; 1 gives the source itself, reduced to the columns the cohort reads.
        parquet: Parquet files; gzipped CSV otherwise.
        overwrite: Replace a folder that holds such tables and nothing else.
        progress: Told which table is being written, and which share is behind.
    """
    if copies < 1:
        raise SettingError("copies", "must be at least 1")
    _require_place(folder, overwrite=overwrite)
    opened = DuckDBSource(source, Layouts((LAYOUT,)))
    try:
        tables = open_tables(opened, CLEAN.reading)

        def blocks(table: str) -> Iterator[pl.DataFrame]:
            for rows in opened.batches(tables[table]):
                for number in range(copies):
                    yield _shifted(rows, number)

        _write_tables(folder, blocks, parquet=parquet, overwrite=overwrite, progress=progress)
    finally:
        opened.close()


def _shifted(rows: pl.DataFrame, number: int) -> pl.DataFrame:
    """Copy `number`: ids moved by millions, times by whole weeks (dates stay at midnight)."""
    ids = [pl.col(name) + number * step for name, step in _ID_STEP.items() if name in rows.columns]
    times = [name for name, kind in rows.schema.items() if isinstance(kind, pl.Datetime)]
    return rows.with_columns(
        *ids,
        pl.col(times) + pl.duration(days=number * _DAYS_BETWEEN_COPIES),
    )


def _write_tables(
    folder: Path,
    blocks: Callable[[str], Iterator[pl.DataFrame]],
    *,
    parquet: bool,
    overwrite: bool,
    progress: Progress,
) -> None:
    tables = list(needed(CLEAN.reading))
    _require_place(folder, overwrite=overwrite)
    with folder_made_whole(folder) as temporary:
        for number, table in enumerate(tables):
            progress(f"writing {table}", number / len(tables))
            write = _parquet_writer(blocks(table)) if parquet else _csv_writer(blocks(table))
            ending = "parquet" if parquet else "csv.gz"
            write_file(temporary / f"{table.upper()}.{ending}", write)


def _require_place(folder: Path, *, overwrite: bool) -> None:
    """Refuse to replace anything but raw tables that an earlier run wrote."""
    if not folder.parent.is_dir():
        raise FileError(str(folder.parent), "must be an existing folder")
    if not folder.is_symlink() and not folder.exists():
        return
    if not overwrite:
        raise FileError(str(folder), "exists already", fix="Choose another place or overwrite.")
    ours = {
        f"{table.upper()}.{end}" for table in needed(CLEAN.reading) for end in ("parquet", "csv.gz")
    }
    if folder.is_symlink() or not folder.is_dir() or {p.name for p in folder.iterdir()} - ours:
        raise FileError(str(folder), "holds more than raw tables, so it stays")


def _parquet_writer(frames: Iterator[pl.DataFrame]) -> Callable[[BinaryIO], None]:
    def write(file: BinaryIO) -> None:
        first = next(frames).to_arrow()
        with pq.ParquetWriter(file, first.schema, compression="zstd") as writer:
            writer.write_table(first)
            for frame in frames:
                writer.write_table(frame.to_arrow())

    return write


def _csv_writer(frames: Iterator[pl.DataFrame]) -> Callable[[BinaryIO], None]:
    def write(file: BinaryIO) -> None:
        with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1, mtime=0) as packed:
            for number, frame in enumerate(frames):
                text = frame.write_csv(
                    include_header=number == 0, datetime_format="%Y-%m-%d %H:%M:%S"
                )
                packed.write(text.encode())

    return write
