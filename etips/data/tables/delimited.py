"""Text with fields (CSV and its kin) as an Arrow table.

Commas between fields, points in fractions, UTF-8: that is read at the speed of pyarrow. The rest
is recognised from the beginning of the file and checked in all of it.
"""

import codecs
import contextlib
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
from pyarrow import types

from etips.data.tables.table_files import UNREADABLE, TableFile
from etips.errors import DataError, EtipsError, FileError
from etips.notes import note

_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_NULLS = ["", "NA", "N/A", "#N/A", "<NA>", "null", "NULL"]
"""Cells that mean "missing"; the text NaN is a number that is not one.

None is a treatment or a level in a column of text, and a missing value among numbers only.
"""
_ROWS = 200  # looked at to tell delimiters apart
_SAMPLE = 2**18  # bytes that tell the dialect
_BLOCK = 8 * 2**20  # bytes parsed together
_FOOTER = 3  # rows at the end that may be one
_CODE = re.compile(r"^\s*\d+[eE]\d+\s*$")
_ZEROS = re.compile(r"^\s*(0\d+|\d{19,})\s*$")
_NUMBER = re.compile(r"^[+-]?\d+([.,]\d+)?$")
_TEXT_CONTROLS = "\t\r\n\x0b\x0c\x1c\x1d\x1e\x1f\x85\0"


@dataclass(frozen=True)
class Dialect:
    """How a text with fields is written.

    Args:
        encoding: As Python calls it.
        delimiter: What stands between two fields.
        skip: Lines above the header.
        header: Names in the header, as they stand.
        zeros: Those whose cells begin with zeros, as identifiers do (007 is not 7), or are codes.
    """

    encoding: str
    delimiter: str
    skip: int
    header: tuple[str, ...]
    zeros: tuple[str, ...] = ()


def recognise(where: str, sample: bytes, *, whole: bool) -> Dialect:
    """Tell the dialect of a text from its beginning; `whole` if that is all of it."""
    encoding = _encoding(where, sample)
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    text = decoder.decode(sample, final=whole).removeprefix("\ufeff")
    lines = text.splitlines(keepends=True)
    if not whole and len(lines) > 1:
        lines.pop()  # most likely cut
    skip, delimiter = _opening(lines)
    header_line = _header_line(lines[skip:])
    if not header_line.strip("\ufeff\r\n "):
        raise FileError(where, "holds no header", fix="The first line must name the columns.")
    rows = "".join(lines[skip:])
    delimiter = delimiter or _delimiter(where, rows, header_line)
    header, *records = list(_records(rows, delimiter)) or [[]]
    names = [name.strip() for name in header if name.strip()]
    counted = [[str(at + first) for at in range(len(names))] for first in (0, 1)]  # as pandas does
    n_numbers = 0 if names in counted else sum(bool(_NUMBER.match(name)) for name in names)
    if n_numbers == len(names) > 1:
        fix = "Write the names of the columns above it."  # unshown: they are the first patient's
        raise FileError(where, "has numbers in its first line, not names", fix=fix)
    if n_numbers > 1:
        some = f"{n_numbers} of {len(names)} names in its first line are numbers"
        note(f"{Path(where).name}: {some}: is it a patient's? Then write names above it")
    cells = [[r[at] for r in records if at < len(r) and r[at].strip()] for at in range(len(header))]
    codes = [
        bool(own) and (all(map(_CODE.match, own)) or any(map(_ZEROS.match, own))) for own in cells
    ]
    zeros = tuple(name for name, code in zip(header, codes, strict=True) if code)
    return Dialect(encoding, delimiter, skip, tuple(header), zeros)


def _encoding(where: str, sample: bytes) -> str:
    """UTF-8 and UTF-16 with or without a byte order mark, otherwise Windows-1252."""
    if sample.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise FileError(where, "is UTF-32 text", fix="Save it as UTF-8.")
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    pairs = max(1, len(sample) // 2)
    even, odd = (sample[start::2].count(0) / pairs for start in (0, 1))
    if odd > 0.4 and even < 0.1:
        return "utf-16-le"
    if even > 0.4 and odd < 0.1:
        return "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        _require_windows_1252(where, sample)
        return "cp1252"
    return "utf-8"


def _require_windows_1252(where: str, block: bytes) -> None:
    """Refuse bytes that no text of a Western computer holds."""
    with contextlib.suppress(UnicodeDecodeError):
        if not any(c < " " and c not in _TEXT_CONTROLS for c in set(block.decode("cp1252"))):
            return
    rule = "is neither UTF-8 nor Windows-1252 text"
    raise FileError(where, rule, fix="Save it as UTF-8.") from None


def _opening(lines: list[str]) -> tuple[int, str]:
    """How many lines stand above the header: Excel's `sep=;`, which also says the delimiter."""
    for number, line in enumerate(lines):
        text = line.strip("\r\n \"'")
        if text.lower().startswith("sep=") and len(text) == 5:
            return number + 1, text[-1]
        if text:
            break
    return 0, ""


def _header_line(lines: list[str]) -> str:
    """The first line that is not empty, with those below it that a quote holds together."""
    kept: list[str] = []
    quotes = 0
    for line in lines:
        if kept or line.strip():
            kept.append(line)
            quotes += line.count('"')
            if quotes % 2 == 0:
                return "".join(kept)
    return kept[0] if kept else ""


def _records(text: str, delimiter: str) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        for number, record in enumerate(record for record in reader if record):
            if number > _ROWS:
                return
            yield record
    except csv.Error:  # a field longer than any sound one; the reader proper complains
        return


def _delimiter(where: str, text: str, header: str) -> str:
    there = [mark for mark in _DELIMITERS if mark in header]
    if there == [","]:
        return ","
    if not there:
        return _without_header(where, text)
    fits: list[tuple[float, int, str]] = []
    for mark in there:
        rows = [len(record) for record in _records(text, mark)]
        if not rows or rows[0] < 2:  # only inside quotes
            continue
        alike = sum(n == rows[0] for n in rows[1:]) / max(1, len(rows) - 1)
        fits.append((alike, rows[0], mark))
    fits.sort(reverse=True)
    if len(fits) > 1 and fits[0][0] == fits[1][0] == 1.0:
        shown = " or ".join(_DELIMITERS[mark] for _, _, mark in fits[:2])
        fix = f"Write sep={fits[0][2]} (or the other) alone into a line above the header."
        raise FileError(where, f"may have {shown} between its fields", fix=fix)
    return fits[0][2] if fits else there[0]


def _without_header(where: str, text: str) -> str:
    """The text has one column, or the first line is no header."""
    for mark, called in _DELIMITERS.items():
        counts = Counter(len(record) for record in _records(text, mark))
        usual, rows = counts.most_common(1)[0] if counts else (1, 0)
        if usual > 1 and rows > 1:
            rule = f"has lines above the header, the columns being separated by {called}"
            raise FileError(where, rule, fix="Delete the lines above the names of the columns.")
    lines = [line for line in text.splitlines() if line.strip()][:_ROWS]
    for called, fields in (
        ("spaces", {len(line.split()) for line in lines}),
        ("colons", {line.count(":") + 1 for line in lines}),
    ):
        if len(lines) > 1 and len(fields) == 1 and max(fields) > 1:
            fix = "Write commas, semicolons, tabs or bars between them."
            raise FileError(where, f"has {called} between its fields", fix=fix)
    return ","


def read_delimited(file: TableFile, *, points: bool) -> tuple[pa.Table, bool]:
    """Read a text with fields, or refuse it by what is wrong with it.

    Returns the table, and whether a point is what stands before its fractions: a file with other
    marks between fields than commas may have thousands in `1.234`, so its fractions come as text.

    Args:
        file: The file.
        points: Whether a point is known to stand before fractions.
    """
    try:
        with file.open() as stream:
            sample = stream.read(_SAMPLE)
    except UNREADABLE:
        raise _unreadable(file) from None
    if not sample:
        raise FileError(str(file.path), "is empty: it unpacks to 0 bytes")
    reader = _Reader(file, recognise(str(file.path), sample, whole=len(sample) < _SAMPLE))
    table, reader = reader.read()
    if any(map(types.is_binary, table.schema.types)) and reader.dialect.encoding == "utf-8":
        table, reader = reader.in_windows_1252().read()
    if reader.dialect.encoding == "cp1252":
        note(f"{file.path.name}: is not UTF-8, so it was read as Windows-1252 (latin-1)")
    reader.require_closed(table)
    by_comma = reader.dialect.delimiter == "," and len(reader.dialect.header) > 1
    fractions = [field.name for field in table.schema if types.is_floating(field.type)]
    distinct = len(set(table.column_names)) == table.num_columns  # otherwise refused later
    if not (points or by_comma) and fractions and distinct:
        table = reader.with_texts(table, fractions)
    return table, points or by_comma


@dataclass(frozen=True)
class _Reader:
    """One way to read one file."""

    file: TableFile
    dialect: Dialect
    names: tuple[str, ...] = ()

    def read(self) -> tuple[pa.Table, "_Reader"]:
        """The table, types as pyarrow sees them, and the way in which it could be read."""
        for across_lines in (False, True):
            with contextlib.suppress(*UNREADABLE):
                return self._parse(across_lines=across_lines), self
        return self._mend()

    def in_windows_1252(self) -> "_Reader":
        """The same for a file that turned out not to be UTF-8; other bytes are refused."""
        for block in self._blocks():
            _require_windows_1252(str(self.file.path), block)
        return replace(self, dialect=replace(self.dialect, encoding="cp1252"))

    def with_texts(self, table: pa.Table, names: Sequence[str]) -> pa.Table:
        """The table with some columns as they are written."""
        texts = self._parse(across_lines=True, as_text=names)
        for name in names:
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, texts.column(name))
        return table

    def _parse(
        self,
        *,
        across_lines: bool,
        as_text: Sequence[str] = (),
        handler: Any = None,  # noqa: ANN401  # pyarrow's callback, for rows that do not fit
    ) -> pa.Table:
        dialect = self.dialect
        with self.file.open() as stream:
            return pa_csv.read_csv(
                stream,
                read_options=pa_csv.ReadOptions(
                    block_size=_BLOCK,
                    encoding="utf8" if dialect.encoding == "utf-8" else dialect.encoding,
                    skip_rows=dialect.skip + bool(self.names),
                    column_names=self.names or None,
                    use_threads=handler is None,
                ),
                parse_options=pa_csv.ParseOptions(
                    delimiter=dialect.delimiter,
                    newlines_in_values=across_lines,
                    invalid_row_handler=handler,
                ),
                convert_options=pa_csv.ConvertOptions(
                    null_values=_NULLS,
                    strings_can_be_null=True,
                    include_columns=list(as_text),
                    column_types=dict.fromkeys((*as_text, *dialect.zeros), pa.string()),
                ),
            )

    def _mend(self) -> tuple[pa.Table, "_Reader"]:
        """Why pyarrow stumbles: rows with too few or too many fields, or all of it.

        A delimiter at the end of every row but the header's is no fault.
        """
        ragged: list[int] = []
        extra = trailing = 0

        def take(row: Any) -> str:  # noqa: ANN401  # pyarrow's InvalidRow
            nonlocal extra, trailing
            ragged.append(row.number - 2 - self.dialect.skip)  # it counts from 1, and the header
            extra += row.actual_columns == row.expected_columns + 1
            trailing += row.text.rstrip("\r\n").endswith(self.dialect.delimiter)
            return "skip"

        # First, since `take` is handed the text of a row.
        if self.dialect.encoding == "utf-8" and not self._is_utf8():
            return self.in_windows_1252().read()
        try:
            sound = self._parse(across_lines=True, handler=take)
        except UNREADABLE:
            raise _unreadable(self.file) from None
        if not ragged:
            raise _unreadable(self.file)
        total = sound.num_rows + len(ragged)
        if extra == len(ragged) == total and not self.names:
            if trailing == total:
                return replace(self, names=(*self.dialect.header, "")).read()
            rule = "has one field more in every row than names in the header"
            raise DataError(self.file.path.name, rule, fix="Give the first column a name.")
        raise self._ragged(ragged, total, extra)

    def _ragged(self, rows: list[int], total: int, extra: int) -> EtipsError:
        fix = ""
        if len(rows) <= _FOOTER < total // 3 and min(rows) >= total - _FOOTER:
            fix = "Are they a footer? Then delete them from the file."
        elif self.dialect.delimiter == "," and extra:
            fix = "A comma inside a number or text must stand in quotes, or use semicolons."
        rule = "every row must have as many fields as the header"
        return DataError(self.file.path.name, rule, rows=rows, total=total, fix=fix)

    def require_closed(self, table: pa.Table) -> None:
        """Refuse a quote that is opened and never closed: it swallows all rows below it."""
        last = [column[-1].as_py() for column in table.columns if len(column)]
        if not any(isinstance(cell, str) and "\n" in cell for cell in last):
            return
        if sum(block.count(b'"') for block in self._blocks()) % 2:
            fix = "Close the quote, or take it out."
            raise FileError(str(self.file.path), "ends inside a field in quotes", fix=fix)

    def _blocks(self) -> Iterator[bytes]:
        with self.file.open() as stream:
            yield from iter(lambda: stream.read(_BLOCK), b"")

    def _is_utf8(self) -> bool:
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            for block in self._blocks():
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
        except UNREADABLE:
            raise _unreadable(self.file) from None
        return True


def _unreadable(file: TableFile) -> FileError:
    return FileError(str(file.path), "cannot be read as CSV", fix="Is it whole, and UTF-8?")
