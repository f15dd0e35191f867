"""Text with fields (CSV and its kin) as an Arrow table.

Commas between fields, points in fractions, UTF-8: that is read at the speed of pyarrow. The rest
is recognised from the beginning of the file and checked in all of it.
"""

import codecs
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
from pyarrow import types

from etips.data.tables.data_frames import UNREADABLE
from etips.data.tables.dialect import Dialect, recognise, require_windows_1252
from etips.data.tables.file_kinds import TableFile
from etips.data.tables.number_cells import Decimal
from etips.data.tables.settling import Settled, name_columns, one_line, settle
from etips.data.tables.text_cells import Habits, TextCells
from etips.errors import DataError, EtipsError, FileError
from etips.notes import note

CSV_NULLS = ["", "NA", "N/A", "#N/A", "<NA>", "null", "NULL"]
"""Cells of a CSV that mean "missing"; the text NaN is a number that is not one.

None is a treatment or a level in a column of text, and a missing value among numbers only.
"""

_BLOCK = 8 * 2**20  # bytes parsed together
_SAMPLE = 2**18  # bytes that tell the dialect
_FOOTER = 3  # rows at the end that may be one
_TOGETHER = 250  # columns looked at as text together


def read_delimited(file: TableFile, habits: Habits) -> Settled:
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
    if habits.decimal == "." or (by_comma and habits.decimal is None):
        points = any(types.is_floating(kind) for kind in table.schema.types)
        return settle(where, table, habits, seen={"."} if points else (), usual=".")
    table, seen = reading.check_fractions(table, raw)
    return settle(where, table, habits, seen=seen, usual=None)


@dataclass(frozen=True)
class _Reading:
    """One way to read one file.

    Args:
        file: The file.
        dialect: How it is written.
        names: Names of the columns, in place of the header.
    """

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

    def check_fractions(self, table: pa.Table, raw: list[str]) -> tuple[pa.Table, set[Decimal]]:
        """Look at numbers with a point as text: in such a file `1.234` may be thousands.

        Returns the table, columns that are not clear as text, and the marks that are.
        """
        names = [field.name for field in table.schema if types.is_floating(field.type)]
        origin = {one_line(name): name for name in raw}
        seen: set[Decimal] = set()
        columns = dict(zip(table.column_names, table.columns, strict=True))
        for start in range(0, len(names), _TOGETHER):
            part = names[start : start + _TOGETHER]
            texts = self._parse(across_lines=True, as_text=[origin[name] for name in part])
            for name in part:
                cells = TextCells.of(texts.column(origin[name]))
                if cells.numbers.point.any():
                    seen.add(".")
                elif cells.numbers.maybe_point.any():
                    columns[name] = texts.column(origin[name])
        return pa.table(columns), seen


def _unreadable(file: TableFile) -> FileError:
    return FileError(str(file.path), "cannot be read as CSV", fix="Is it whole, and UTF-8?")
