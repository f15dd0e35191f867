"""A sheet of an Excel workbook as an Arrow table."""

import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import date, datetime, time
from typing import Any

import pyarrow as pa

from etips.data.tables.arrow_tables import UNREADABLE, name_columns
from etips.data.tables.file_kinds import TableFile
from etips.errors import EtipsError, FileError

_LARGEST = 2 * 2**30  # bytes that a workbook may unpack to


def read_sheet(file: TableFile) -> pa.Table:
    """The sheet that was asked for, or the only one; the first row that is not empty has the names.

    A cell has its last computed value. A column of numbers and text comes as text, so that it is
    judged like one of a CSV.
    """
    with _workbook(file) as book:
        rows = _rows(file, book)
    where = file.path.name
    while rows and not any(cell is not None for cell in rows[0]):
        rows.pop(0)
    if not rows:
        raise FileError(str(file.path), "has an empty sheet", fix="Name another: file.xlsx#Sheet.")
    names = ["" if cell is None else str(cell) for cell in rows[0]]
    body = [row for row in rows[1:] if any(cell is not None for cell in row)]
    arrays = [
        _column([row[at] if at < len(row) else None for row in body]) for at in range(len(names))
    ]
    return name_columns(where, pa.Table.from_arrays(arrays, names=names))


@contextmanager
def _workbook(file: TableFile) -> Iterator[Any]:
    try:
        from openpyxl import load_workbook  # noqa: PLC0415  # optional
    except ImportError:
        fix = "pip install 'etips[excel]', or save the sheet as CSV."
        raise FileError(str(file.path), "needs openpyxl to be read", fix=fix) from None
    damaged = FileError(str(file.path), "cannot be read as an Excel workbook", fix="Is it whole?")
    try:
        with zipfile.ZipFile(file.path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > _LARGEST:
            fix = "Save the sheet as CSV."
            raise FileError(str(file.path), "is too large for a workbook", fix=fix)
        with warnings.catch_warnings(), file.path.open("rb") as stream:
            warnings.simplefilter("ignore")  # styles and filters that openpyxl does not know
            with closing(load_workbook(stream, read_only=True, data_only=True)) as book:
                yield book
    except EtipsError:
        raise
    except (*UNREADABLE, zipfile.BadZipFile, KeyError, AttributeError, IndexError, SyntaxError):
        raise damaged from None


def _rows(file: TableFile, book: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401  # openpyxl's
    names = [sheet.title for sheet in book.worksheets]
    shown = ", ".join(names[:10])
    if file.sheet is not None and file.sheet not in names:
        fix = f"Its sheets: {shown}."
        raise FileError(f"{file.path}#{file.sheet}", "is no sheet of the workbook", fix=fix)
    if file.sheet is None and len(names) != 1:
        fix = f"Name one, {file.path.name}#{names[0] if names else 'Sheet'}; its sheets: {shown}."
        raise FileError(str(file.path), f"has {len(names)} sheets", fix=fix)
    sheet = book[file.sheet or names[0]]
    sheet.reset_dimensions()  # what some programs write there is wrong
    return [tuple(row) for row in sheet.iter_rows(values_only=True)]


def _column(cells: Sequence[object]) -> pa.Array:
    """Cells of one type as that type; anything else as text."""
    kinds = {type(cell) for cell in cells if cell is not None}
    try:
        if kinds <= {int, float} or len(kinds) == 1:
            return pa.array(cells, from_pandas=False)
        if kinds <= {datetime, date}:
            days = [type(cell) is date for cell in cells]  # a datetime is a date too
            moments = [
                datetime.combine(cell, time()) if day else cell  # type: ignore[arg-type]
                for cell, day in zip(cells, days, strict=True)
            ]
            return pa.array(moments, pa.timestamp("us"))
    except UNREADABLE:
        pass
    return pa.array([_text(cell) for cell in cells], pa.string())


def _text(cell: object) -> str | None:
    if cell is None:
        return None
    if isinstance(cell, datetime):
        return cell.isoformat(" ")
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    return str(cell)
