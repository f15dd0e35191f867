"""Tables as files in a folder: CSV, CSV.gz or Parquet, names in either case."""

import csv
import gzip
import itertools
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from etips.cohorts.engines.layouts import DATE, PLAIN_TIME, Layout
from etips.errors import DataError, FileError

_ENDINGS: Final = (".parquet", ".csv", ".csv.gz")
_SQL_TYPES: Final = {
    "int64": "BIGINT",
    "string": "VARCHAR",
    "code": "VARCHAR",
    "float64": "DOUBLE",
    "timestamp": "TIMESTAMP",
}
_FIX: Final = "Check the file, or download it again."
_UNREADABLE: Final = (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error)
_LINES_LOOKED_AT: Final = 100
_UTC: Final = frozenset({None, "UTC", "Etc/UTC", "Z", "+00:00"})


@dataclass(frozen=True)
class TableFile:
    """One table: a file, or a folder of Parquet parts.

    Attributes:
        path: The file, or a pattern for the parts.
        header: Column names as in the file, in its order.
        parquet: Whether it is Parquet; CSV otherwise.
        zoned: Names of columns whose times are in a zone other than UTC.
    """

    path: str
    header: tuple[str, ...]
    parquet: bool
    zoned: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """Name of the file, or of the folder of parts."""
        path = Path(self.path)
        return path.parent.name if "*" in path.name else path.name

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names in lower case."""
        return tuple(name.lower() for name in self.header)

    def view(self, name: str, types: Mapping[str, str]) -> str:
        """SQL that makes the table visible to DuckDB under `name`.

        Types are declared, not guessed: a guess from the first rows would read `None` or leading
        zeros wrongly. A quoted empty string stays one (section 4.2, device code 8).
        """
        self.require_plain_times(types)
        place = Path(self.path)
        folder = re.sub(r"([*?[])", r"[\1]", str(place.parent))  # its own stars are taken literally
        path = quoted(str(Path(folder) / place.name))
        if self.parquet:
            reader = f"read_parquet({path})"
        else:
            # DuckDB refuses a nameless column, such as a saved index
            names = [name or f"__nameless_{i}__" for i, name in enumerate(self.columns)]
            kinds = [_SQL_TYPES[types.get(name, "string")] for name in names]
            pairs = zip(names, kinds, strict=True)
            declared = ", ".join(f"{quoted(name)}: {quoted(kind)}" for name, kind in pairs)
            packed = "gzip" if self.path.lower().endswith(".gz") else "none"
            reader = (
                f"read_csv({path}, header = true, auto_detect = false, delim = ',', "
                f"compression = '{packed}', "  # not guessed: a `?` in the path misleads DuckDB
                f"quote = '\"', escape = '\"', allow_quoted_nulls = false, "
                f"columns = {{{declared}}})"
            )
        return f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM {reader}"  # noqa: S608

    def require_plain_times(self, types: Mapping[str, str]) -> None:
        """Refuse times in a zone, or with AM or PM, which the engine would misread in silence.

        Of a CSV file the first lines are looked at: a file comes from one export.
        """
        places = {
            column: place
            for place, column in enumerate(self.columns)
            if types.get(column) == "timestamp"
        }
        for column in self.zoned & set(places):
            raise _odd_time(self.name, column)
        if self.parquet:
            return
        for line, cells in _first_lines(Path(self.path)):
            for column, place in places.items():
                text = cells[place] if place < len(cells) else ""
                # what is no time at all is the engine's to refuse
                if re.match(DATE, text) and not re.match(PLAIN_TIME, text):
                    raise _odd_time(self.name, column, f"; fails at line {line}")


def find(folder: Path, layouts: Layout) -> dict[str, TableFile]:
    """Find tables in a folder, by lower-case name; Parquet before CSV before CSV.gz."""

    def rank(path: Path) -> int:
        return next((i for i, end in enumerate(_ENDINGS) if path.name.lower().endswith(end)), -1)

    tables: dict[str, TableFile] = {}
    taken: dict[str, Path] = {}
    paths = _table_paths(folder, layouts)
    for path in sorted(paths, key=lambda path: (rank(path), path.name)):
        name = paths[path]
        if name not in taken:
            taken[name], tables[name] = path, _opened(path)
        elif rank(path) == rank(taken[name]):
            rule = f"must hold one file of {name}; found {taken[name].name} and {path.name}"
            raise DataError(str(folder), rule, fix="Remove one of them.")
    if not tables:
        raise FileError(str(folder), f"holds no CSV, CSV.gz or Parquet table of {layouts.label}")
    return tables


def _table_paths(folder: Path, layouts: Layout) -> dict[Path, str]:
    """Files of tables that are looked for, with the table's name."""
    inside = [path for path in folder.iterdir() if path.is_dir()]
    places = [folder, *(path for path in inside if path.name.lower() in layouts.folders)]
    named = {path: _table_of(path) for place in places for path in place.iterdir()}
    paths = {path: name for path, name in named.items() if name and name in layouts.tables}
    below = sorted({path.parent.name for path in paths if path.parent != folder})
    if below and any(path.parent == folder for path in paths):  # two databases, or two versions
        rule = f"must hold tables in itself or in {', '.join(below)}, not in both"
        raise DataError(str(folder), rule, fix="Give the folder of one database.")
    return paths


def _table_of(path: Path) -> str | None:
    """Name of the table that a file, or a folder of Parquet parts, holds; None if it holds none."""
    name = path.name.lower()
    if name.startswith("."):  # such as the `._` files of macOS
        return None
    if path.is_dir():
        return name.removesuffix(".parquet") if any(path.glob("*.parquet")) else None
    ending = next((end for end in reversed(_ENDINGS) if name.endswith(end)), "")
    return name.removesuffix(ending) if ending and path.is_file() else None


def _opened(path: Path) -> TableFile:
    if path.is_dir():
        parts = sorted(path.glob("*.parquet"))
        return _parquet_file(str(path / "*.parquet"), parts[0])
    if path.name.lower().endswith(".parquet"):
        return _parquet_file(str(path), path)
    return TableFile(str(path), _csv_header(path), False)


def quoted(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def _open_text(path: Path, *, errors: str = "strict") -> IO[str]:
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    text: IO[str] = opener(path, "rt", encoding="utf-8-sig", errors=errors, newline="")
    return text


def _csv_header(path: Path) -> tuple[str, ...]:
    try:
        with _open_text(path) as lines:
            header = next(csv.reader([lines.readline(100_000)]), [])
    except _UNREADABLE:
        raise FileError(path.name, "cannot be read", fix=_FIX) from None
    names = tuple(name.strip() for name in header)
    if len({name.lower() for name in names}) != len(names):
        raise DataError(path.name, "must have one header line with each column once", fix=_FIX)
    return names


def _first_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of the first rows; as many as can be read."""
    try:
        with _open_text(path, errors="replace") as lines:
            reader = csv.reader(iter(lambda: lines.readline(100_000), ""))
            next(reader, None)
            for cells in itertools.islice(reader, _LINES_LOOKED_AT):
                yield reader.line_num, cells
    except _UNREADABLE:  # the engine, which reads all of it, will say so
        return


def _odd_time(place: str, column: str, at: str = "") -> DataError:
    rule = f"column {column} must hold times as YYYY-MM-DD HH:MM:SS, without zone or AM and PM{at}"
    return DataError(place, rule, fix="Give the times as the hospital's clock showed them.")


def _parquet_file(path: str, part: Path) -> TableFile:
    try:
        schema = pq.read_schema(part)
    except (OSError, pa.ArrowException):
        raise FileError(part.name, "cannot be read", fix=_FIX) from None
    zoned = frozenset(
        field.name.lower()
        for field in schema
        if pa.types.is_timestamp(field.type) and field.type.tz not in _UTC
    )
    return TableFile(path, tuple(schema.names), True, zoned)
