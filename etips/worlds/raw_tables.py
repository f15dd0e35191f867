"""Raw tables of a database's shape: simulated ones for tests anywhere, and copies of a source."""

import gzip
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import polars as pl
import pyarrow.parquet as pq

from etips.cohorts.databases import LAYOUTS, Database
from etips.cohorts.engines.sources import DuckDBSource
from etips.cohorts.mimic import mimic3, mimic4
from etips.cohorts.mimic.items import MimicReading
from etips.errors import FileError, SettingError
from etips.files.writing import folder_made_whole, write_file
from etips.progress import Progress, no_progress
from etips.worlds.hospital import BLOCK_STAYS, simulate_table


@dataclass(frozen=True)
class RawShape:
    """How the tables of a database are simulated, copied and written.

    Args:
        database: Which one.
        files: Place of each table below the folder, without its ending.
        id_steps: By how much a copy moves each column of ids.
        days_between_copies: By how much it moves times.
        widest: A reading that looks at every table and column.
    """

    database: Database
    files: Mapping[str, str]
    id_steps: Mapping[str, int]
    days_between_copies: int
    widest: MimicReading

    def write_simulated(
        self,
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
            for number, size in enumerate(sizes if self._has_ids(table) else sizes[:1]):
                yield simulate_table(self.database, table, seed=seed, block=number, n_stays=size)

        self._require_place(folder, overwrite=overwrite)
        self._write(folder, list(self.files), blocks, parquet=parquet, progress=progress)

    def write_copies(
        self,
        folder: Path,
        *,
        source: Path,
        copies: int,
        parquet: bool = True,
        overwrite: bool = False,
        progress: Progress = no_progress,
    ) -> None:
        """Write K copies of a source with their own numbers and, where times move, later times.

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
        self._require_place(folder, overwrite=overwrite)
        opened = DuckDBSource(source, LAYOUTS)
        try:
            tables = self.database.open_tables(opened, self.widest)

            def blocks(table: str) -> Iterator[pl.DataFrame]:
                for rows in opened.batches(tables[table]):
                    for number in range(copies if self._has_ids(table) else 1):
                        yield self._shifted(rows, number)

            there = [table for table in self.files if table in tables]
            self._write(folder, there, blocks, parquet=parquet, progress=progress)
        finally:
            opened.close()

    def _has_ids(self, table: str) -> bool:
        """Whether a table is about people; a list of items is written once."""
        return any(name in self.id_steps for name in self.database.layout.tables[table])

    def _shifted(self, rows: pl.DataFrame, number: int) -> pl.DataFrame:
        """Copy `number`: ids moved by millions, times by whole days (dates stay at midnight)."""
        steps = self.id_steps.items()
        ids = [pl.col(name) + number * step for name, step in steps if name in rows.columns]
        times = [name for name, kind in rows.schema.items() if isinstance(kind, pl.Datetime)]
        later = pl.duration(days=number * self.days_between_copies)
        return rows.with_columns(*ids, pl.col(times) + later)

    def _write(
        self,
        folder: Path,
        tables: list[str],
        blocks: Callable[[str], Iterator[pl.DataFrame]],
        *,
        parquet: bool,
        progress: Progress,
    ) -> None:
        with folder_made_whole(folder) as temporary:
            for number, table in enumerate(tables):
                progress(f"writing {table}", number / len(tables))
                write = _parquet_writer(blocks(table)) if parquet else _csv_writer(blocks(table))
                ending = "parquet" if parquet else "csv.gz"
                place = temporary / f"{self.files[table]}.{ending}"
                place.parent.mkdir(mode=0o700, exist_ok=True)
                write_file(place, write)

    def _require_place(self, folder: Path, *, overwrite: bool) -> None:
        """Refuse to replace anything but raw tables that an earlier run wrote."""
        if not folder.parent.is_dir():
            raise FileError(str(folder.parent), "must be an existing folder")
        if not folder.is_symlink() and not folder.exists():
            return
        if not overwrite:
            raise FileError(str(folder), "exists already", fix="Choose another place or overwrite.")
        ours = {f"{name}.{end}" for name in self.files.values() for end in ("parquet", "csv.gz")}
        ours |= {str(Path(name).parent) for name in self.files.values()}
        known = folder.is_dir() and not folder.is_symlink()
        if not known or {str(p.relative_to(folder)) for p in folder.rglob("*")} - ours:
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


MIMIC3_SHAPE: Final = RawShape(
    mimic3.Mimic3Extraction,
    files={table: table.upper() for table in mimic3.Mimic3Extraction.layout.tables},
    id_steps={
        "row_id": 1_000_000_000,
        **dict.fromkeys(("subject_id", "hadm_id", "icustay_id"), 1_000_000),
    },
    days_between_copies=7,
    widest=mimic3.CLEAN.reading,
)
_HOSPITAL: Final = (
    "patients", "admissions", "labevents", "microbiologyevents", "prescriptions",
)  # fmt: skip
MIMIC4_SHAPE: Final = RawShape(
    mimic4.Mimic4Extraction,
    files={
        table: f"{'hosp' if table in _HOSPITAL else 'icu'}/{table}"
        for table in mimic4.Mimic4Extraction.layout.tables
    },
    id_steps={
        **dict.fromkeys(("subject_id", "hadm_id", "stay_id"), 10_000_000),
        **dict.fromkeys(("specimen_id", "micro_specimen_id"), 100_000_000_000),
        "pharmacy_id": 1_000_000_000,
    },
    days_between_copies=0,  # an age is counted in calendar years, which no shift leaves alone
    widest=mimic4.WIDEST,
)
