"""Tables as files in a folder: CSV, CSV.gz or Parquet, names in either case."""

import csv
import gzip
import itertools
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from etips.cohorts.engines.layouts import Layouts
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
# DuckDB takes a text that begins as a time for one, and passes over "PM" and "+02:00" behind it.
_DATE: Final = r"^\s*[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}"
_CLOCK: Final = r"([ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?)?"
PLAIN_TIME: Final = rf"{_DATE}{_CLOCK}\s*(Z|\+00(:?00)?)?\s*$"
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

    @property
    def _declared(self) -> tuple[str, ...]:
        """Column names that DuckDB accepts: a nameless one, such as a saved index, gets a name."""
        return tuple(name or f"__nameless_{i}__" for i, name in enumerate(self.columns))

    def view(self, name: str, types: Mapping[str, str]) -> str:
        """SQL that makes the table visible to DuckDB under `name`.

        Types are declared, not guessed: a guess from the first rows would read `None` or leading
        zeros wrongly. A quoted empty string stays one (section 4.2, device code 8).
        """
        self.require_plain_times(types)
        path = quoted(_without_wildcards(Path(self.path)))
        if self.parquet:
            reader = f"read_parquet({path})"
        else:
            declared = ", ".join(
                f"{quoted(column)}: {quoted(_SQL_TYPES[types.get(column, 'string')])}"
                for column in self._declared
            )
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
                if place < len(cells) and not _is_plain_time(cells[place]):
                    raise _odd_time(self.name, column, f"; fails at line {line}")


def find(folder: Path, layouts: Layouts) -> dict[str, TableFile]:
    """Find tables in a folder, by lower-case name; Parquet before CSV before CSV.gz.

    Args:
        folder: Where to look; hidden files are passed over.
        layouts: Which tables.
    """
    tables: dict[str, TableFile] = {}
    taken: dict[str, Path] = {}
    paths = _table_paths(folder, layouts)
    _refuse_two_places(folder, paths)
    for path in sorted(paths, key=lambda path: (_rank(path), path.name)):
        name = paths[path]
        if name not in taken:
            taken[name], tables[name] = path, _opened(path)
        elif _rank(path) == _rank(taken[name]):
            rule = f"must hold one file of {name}; found {taken[name].name} and {path.name}"
            raise DataError(str(folder), rule, fix="Remove one of them.")
    if not tables:
        raise FileError(str(folder), f"holds no CSV, CSV.gz or Parquet table of {layouts.label}")
    return tables


def _table_paths(folder: Path, layouts: Layouts) -> dict[Path, str]:
    """Files of tables that are looked for, with the table's name."""
    inside = [path for path in folder.iterdir() if path.is_dir()]
    places = [folder, *(path for path in inside if path.name.lower() in layouts.folders)]
    paths = {path: _table_of(path) for place in places for path in place.iterdir()}
    return {path: name for path, name in paths.items() if name and name in layouts.names}


def _refuse_two_places(folder: Path, paths: Iterable[Path]) -> None:
    """Refuse tables in the folder itself and in folders below: two databases, or two versions."""
    below = sorted({path.parent.name for path in paths if path.parent != folder})
    if below and any(path.parent == folder for path in paths):
        rule = f"must hold tables in itself or in {', '.join(below)}, not in both"
        raise DataError(str(folder), rule, fix="Give the folder of one database.")


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


def _without_wildcards(path: Path) -> str:
    """The path with the folder's own brackets and stars taken literally by DuckDB."""
    return str(Path(re.sub(r"([*?[])", r"[\1]", str(path.parent))) / path.name)


def quoted(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def _rank(path: Path) -> int:
    return next((i for i, end in enumerate(_ENDINGS) if path.name.lower().endswith(end)), -1)


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


def _is_plain_time(text: str) -> bool:
    """Whether nothing stands behind a time; what is no time at all is the engine's to refuse."""
    return re.match(_DATE, text) is None or re.match(PLAIN_TIME, text) is not None


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
