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
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv as pa_csv
from pyarrow import types

from etips.data.tables.arrow_tables import UNREADABLE, name_columns, one_line
from etips.data.tables.file_kinds import TableFile
from etips.data.tables.number_cells import Decimal
from etips.data.tables.text_cells import TextCells
from etips.errors import DataError, EtipsError, FileError
from etips.notes import note

DELIMITERS = (",", ";", "\t", "|")
_ROWS = 200  # looked at to tell delimiters apart
_CALLED = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_ZEROS = re.compile(r"^\s*(0\d+|\d{19,})\s*$")
_NUMBER = re.compile(r"^[+-]?\d+([.,]\d+)?$")
_CODE = re.compile(r"^\s*\d+[eE]\d+\s*$")
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
    """Tell the dialect of a text from its beginning."""
    encoding = find_encoding(where, sample)
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    text = decoder.decode(sample, final=whole).removeprefix("\ufeff")
    lines = text.splitlines(keepends=True)
    if not whole and len(lines) > 1:
        lines.pop()  # most likely cut
    skip, told = _opening(lines)
    rows = "".join(lines[skip:])
    header_line = _header_line(lines[skip:])
    if not header_line.strip("\ufeff\r\n "):
        raise FileError(where, "holds no header", fix="The first line must name the columns.")
    delimiter = told or _delimiter(where, rows, header_line)
    records = list(_records(rows, delimiter))
    header = records[0] if records else []
    _require_names(where, header)
    named = tuple(name for at, name in enumerate(header) if _are_codes(records[1:], at))
    return Dialect(encoding, delimiter, skip, tuple(header), named)


def _header_line(lines: list[str]) -> str:
    """The first line that is not empty, with those below it that a quote holds together."""
    kept: list[str] = []
    for line in lines:
        if kept or line.strip():
            kept.append(line)
            if "".join(kept).count('"') % 2 == 0:
                break
    return "".join(kept) if "".join(kept).count('"') % 2 == 0 else "".join(kept[:1])


def _require_names(where: str, header: list[str]) -> None:
    """Refuse numbers in place of names, unshown: they are the first patient's.

    A count from 0 or 1 on is what pandas writes where nobody gave names.
    """
    names = [name.strip() for name in header if name.strip()]
    if len(names) < 2 or not all(_NUMBER.match(name) for name in names):
        return
    if names not in ([str(at + first) for at in range(len(names))] for first in (0, 1)):
        fix = "Write the names of the columns above it."
        raise FileError(where, "has numbers in its first line, not names", fix=fix)


def _are_codes(records: list[list[str]], at: int) -> bool:
    """Whether a column holds identifiers though its cells spell numbers."""
    cells = [record[at] for record in records if at < len(record) and record[at].strip()]
    codes = bool(cells) and all(_CODE.match(cell) for cell in cells)
    return codes or any(_ZEROS.match(cell) for cell in cells)


def find_encoding(where: str, sample: bytes) -> str:
    """UTF-8 and UTF-16 with or without a byte order mark, otherwise Windows-1252."""
    if sample.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise FileError(where, "is UTF-32 text", fix="Save it as UTF-8.")
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    pairs = max(1, len(sample) // 2)
    if sample[1::2].count(0) > 0.4 * pairs and sample[::2].count(0) < 0.1 * pairs:
        return "utf-16-le"
    if sample[::2].count(0) > 0.4 * pairs and sample[1::2].count(0) < 0.1 * pairs:
        return "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        require_windows_1252(where, sample)
        return "cp1252"
    return "utf-8"


def require_windows_1252(where: str, block: bytes) -> None:
    """Refuse bytes that no text of a Western computer holds."""
    refused = FileError(where, "is neither UTF-8 nor Windows-1252 text", fix="Save it as UTF-8.")
    try:
        text = block.decode("cp1252")
    except UnicodeDecodeError:
        raise refused from None
    if any(c < " " and c not in _TEXT_CONTROLS for c in set(text)):
        raise refused from None


def _opening(lines: list[str]) -> tuple[int, str | None]:
    """How many lines stand above the header: Excel's `sep=;`, which also tells the delimiter."""
    for number, line in enumerate(lines):
        told = line.strip("\r\n \"'")
        if told.lower().startswith("sep=") and len(told) == 5:
            return number + 1, told[-1]
        if line.rstrip("\r\n \"'").lower() == "sep=\t":
            return number + 1, "\t"
        if told:
            break
    return 0, None


def _delimiter(where: str, text: str, header: str) -> str:
    there = [mark for mark in DELIMITERS if mark in header]
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
        shown = " or ".join(_CALLED[mark] for _, _, mark in fits[:2])
        fix = f"Write sep={fits[0][2]} (or the other) alone into a line above the header."
        raise FileError(where, f"may have {shown} between its fields", fix=fix)
    return fits[0][2] if fits else there[0]


def _without_header(where: str, text: str) -> str:
    """The text has one column, or the first line is no header."""
    for mark in DELIMITERS:
        counts = Counter(len(record) for record in _records(text, mark))
        usual, rows = counts.most_common(1)[0] if counts else (1, 0)
        if usual > 1 and rows > 1:
            rule = f"has lines above the header, the columns being separated by {_CALLED[mark]}"
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


def _records(text: str, delimiter: str) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        for number, record in enumerate(record for record in reader if record):
            if number > _ROWS:
                return
            yield record
    except csv.Error:  # a field longer than any sound one; the reader proper complains
        return


CSV_NULLS = ["", "NA", "N/A", "#N/A", "<NA>", "null", "NULL"]
"""Cells of a CSV that mean "missing"; the text NaN is a number that is not one.

None is a treatment or a level in a column of text, and a missing value among numbers only.
"""

_BLOCK = 8 * 2**20  # bytes parsed together
_SAMPLE = 2**18  # bytes that tell the dialect
_FOOTER = 3  # rows at the end that may be one
_TOGETHER = 250  # columns looked at as text together


class PointColumns(NamedTuple):
    """What is known of numbers with a point: in some files `1.234` may be thousands.

    Args:
        seen: Whether some column has fractions with a point for sure.
        usual: Whether a point is what such files write before fractions.
    """

    seen: bool
    usual: bool


def read_delimited(file: TableFile, decimal: Decimal | None) -> tuple[pa.Table, PointColumns]:
    """Read a text with fields, or refuse it by what is wrong with it."""
    try:
        with file.open() as stream:
            sample = stream.read(_SAMPLE)
    except UNREADABLE:
        raise _unreadable(file) from None
    if not sample:
        raise FileError(str(file.path), "is empty: it unpacks to 0 bytes")
    dialect = recognise(str(file.path), sample, whole=len(sample) < _SAMPLE)
    table, reading = _Reading(file, dialect).read()
    broken = any(types.is_binary(kind) for kind in table.schema.types)
    if broken and reading.dialect.encoding == "utf-8":
        reading.require_text()
        table, reading = reading.in_windows_1252().read()
    if reading.dialect.encoding == "cp1252":
        note(f"{file.path.name}: is not UTF-8, so it was read as Windows-1252 (latin-1)")
    reading.require_closed(table)
    where = file.path.name
    raw = table.column_names
    table = name_columns(where, table)
    by_comma = reading.dialect.delimiter == "," and len(reading.dialect.header) > 1
    if decimal == "." or (by_comma and decimal is None):
        seen = any(types.is_floating(kind) for kind in table.schema.types)
        return table, PointColumns(seen, usual=True)
    table, seen = reading.check_fractions(table, raw)
    return table, PointColumns(seen, usual=False)


@dataclass(frozen=True)
class _Reading:
    """One way to read one file."""

    file: TableFile
    dialect: Dialect
    names: tuple[str, ...] = ()

    def read(self) -> tuple[pa.Table, "_Reading"]:
        """The table, types as pyarrow sees them, and the way in which it could be read.

        Rows that do not fit are refused.
        """
        for across_lines in (False, True):
            with contextlib.suppress(*UNREADABLE):
                return self._parse(across_lines=across_lines), self
        return self._mend()

    def in_windows_1252(self) -> "_Reading":
        """The same for a file that turned out not to be UTF-8."""
        return replace(self, dialect=replace(self.dialect, encoding="cp1252"))

    def _parse(
        self,
        *,
        across_lines: bool,
        as_text: Sequence[str] = (),
        handler: Any = None,  # noqa: ANN401  # pyarrow's callback
    ) -> pa.Table:
        """Read the file once.

        Args:
            across_lines: Whether fields in quotes may hold ends of lines.
            as_text: Columns to read alone, and as text.
            handler: Told of rows with too few or too many fields.
        """
        with self.file.open() as stream:
            return pa_csv.read_csv(
                stream,
                read_options=pa_csv.ReadOptions(
                    block_size=_BLOCK,
                    encoding="utf8" if self.dialect.encoding == "utf-8" else self.dialect.encoding,
                    skip_rows=self.dialect.skip + bool(self.names),
                    column_names=self.names or None,
                    use_threads=handler is None,
                ),
                parse_options=pa_csv.ParseOptions(
                    delimiter=self.dialect.delimiter,
                    newlines_in_values=across_lines,
                    invalid_row_handler=handler,
                ),
                convert_options=pa_csv.ConvertOptions(
                    null_values=CSV_NULLS,
                    strings_can_be_null=True,
                    include_columns=list(as_text),
                    column_types=dict.fromkeys((*as_text, *self.dialect.zeros), pa.string()),
                ),
            )

    def _mend(self) -> tuple[pa.Table, "_Reading"]:
        """Why the reader stumbles: rows with too few or too many fields, or all of it.

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
            self.require_text()
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
        with self.file.open() as stream:
            quotes = sum(block.count(b'"') for block in iter(lambda: stream.read(_BLOCK), b""))
        if quotes % 2:
            fix = "Close the quote, or take it out."
            raise FileError(str(self.file.path), "ends inside a field in quotes", fix=fix)

    def require_text(self) -> None:
        """Refuse bytes that are no Windows-1252 text either."""
        with self.file.open() as stream:
            while block := stream.read(_BLOCK):
                require_windows_1252(str(self.file.path), block)

    def _is_utf8(self) -> bool:
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            with self.file.open() as stream:
                while block := stream.read(_BLOCK):
                    decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
        except UNREADABLE:
            raise _unreadable(self.file) from None
        return True

    def check_fractions(self, table: pa.Table, raw: list[str]) -> tuple[pa.Table, bool]:
        """Look at numbers with a point as text: in such a file `1.234` may be thousands.

        Returns the table, columns that are not clear as text, and whether any is clear.
        """
        names = [field.name for field in table.schema if types.is_floating(field.type)]
        origin = {one_line(name): name for name in raw}
        seen = False
        columns = dict(zip(table.column_names, table.columns, strict=True))
        for start in range(0, len(names), _TOGETHER):
            part = names[start : start + _TOGETHER]
            texts = self._parse(across_lines=True, as_text=[origin[name] for name in part])
            for name in part:
                cells = TextCells.of(texts.column(origin[name]))
                if cells.numbers.point.any():
                    seen = True
                elif cells.numbers.maybe_point.any():
                    columns[name] = texts.column(origin[name])
        return pa.table(columns), seen


def _unreadable(file: TableFile) -> FileError:
    return FileError(str(file.path), "cannot be read as CSV", fix="Is it whole, and UTF-8?")
