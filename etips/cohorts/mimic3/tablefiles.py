"""Tables as files in a folder: CSV, CSV.gz or Parquet, names in either case."""

import csv
import gzip
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from etips.errors import DataError, FileError

_ENDINGS: Final = (".parquet", ".csv", ".csv.gz")
_SQL_TYPES: Final = {
    "int64": "BIGINT",
    "string": "VARCHAR",
    "float64": "DOUBLE",
    "timestamp": "TIMESTAMP",
}
_FIX: Final = "Check the file, or download it again."


@dataclass(frozen=True)
class TableFile:
    """One table: a file, or a folder of Parquet parts.

    Attributes:
        path: The file, or a pattern for the parts.
        header: Column names as in the file, in its order.
        parquet: Whether it is Parquet; CSV otherwise.
    """

    path: str
    header: tuple[str, ...]
    parquet: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names in lower case."""
        return tuple(name.lower() for name in self.header)

    @property
    def _declared(self) -> tuple[str, ...]:
        """Column names that DuckDB accepts: a nameless one, such as a saved index, gets a name."""
        return tuple(name or f"__nameless_{i}__" for i, name in enumerate(self.columns))

    def view(self, name: str, types: Mapping[str, str]) -> str:
        """SQL that makes the table visible to DuckDB under `name`.

        Types are declared, not guessed: a guess from the first rows would read `None` or leading
        zeros wrongly. A quoted empty string stays one (section 4.2, device code 8).
        """
        if self.parquet:
            reader = f"read_parquet({quoted(self.path)})"
        else:
            declared = ", ".join(
                f"{quoted(column)}: {quoted(_SQL_TYPES[types.get(column, 'string')])}"
                for column in self._declared
            )
            reader = (
                f"read_csv({quoted(self.path)}, header = true, auto_detect = false, delim = ',', "
                f"quote = '\"', escape = '\"', allow_quoted_nulls = false, "
                f"columns = {{{declared}}})"
            )
        return f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM {reader}"  # noqa: S608


def find(folder: Path) -> dict[str, TableFile]:
    """Find every table in a folder, by lower-case name; Parquet before CSV before CSV.gz."""
    found: dict[str, TableFile] = {}
    for path in sorted(folder.iterdir(), key=lambda path: (_rank(path), path.name)):
        name = path.name.lower()
        ending = next((end for end in reversed(_ENDINGS) if name.endswith(end)), "")
        table = name.removesuffix(ending)
        if table in found:
            continue
        if path.is_dir() and any(path.glob("*.parquet")):
            parts = sorted(path.glob("*.parquet"))
            found[name] = TableFile(str(path / "*.parquet"), _parquet_header(parts[0]), True)
        elif ending and path.is_file():
            parquet = ending == ".parquet"
            header = _parquet_header(path) if parquet else _csv_header(path)
            found[table] = TableFile(str(path), header, parquet)
    if not found and {"hosp", "icu"} <= {path.name.lower() for path in folder.iterdir()}:
        fix = "This builder reads MIMIC-III v1.4; give that."
        raise DataError(str(folder), "looks like MIMIC-IV", fix=fix)
    if not found:
        raise FileError(str(folder), "holds no CSV, CSV.gz or Parquet table")
    return found


def quoted(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def _rank(path: Path) -> int:
    return next((i for i, end in enumerate(_ENDINGS) if path.name.lower().endswith(end)), -1)


def _csv_header(path: Path) -> tuple[str, ...]:
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as lines:
            header = next(csv.reader([lines.readline(100_000)]), [])
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        raise FileError(path.name, "cannot be read", fix=_FIX) from None
    names = tuple(name.strip() for name in header)
    if len({name.lower() for name in names}) != len(names):
        raise DataError(path.name, "must have one header line with each column once", fix=_FIX)
    return names


def _parquet_header(path: Path) -> tuple[str, ...]:
    try:
        return tuple(pq.read_schema(path).names)
    except (OSError, pa.ArrowException):
        raise FileError(path.name, "cannot be read", fix=_FIX) from None
