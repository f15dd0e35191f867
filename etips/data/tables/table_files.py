"""Files that hold a table: what they are by name and first bytes, Parquet, Arrow and workbooks.

Errors of the readers quote the cell that they stumbled over. Here every one of them becomes a
refusal that names the place and the rule and quotes nothing, nor carries the error that does.
"""

import codecs
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from etips.errors import EtipsError, FileError

Content = Literal["text", "parquet", "arrow", "workbook"]

UNREADABLE = (pa.ArrowException, OSError, EOFError, OverflowError, TypeError, ValueError)
"""What readers raise over input; their words quote it and are never passed on."""

_ENDINGS: dict[str, Content] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".tab"), "text"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".feather", ".arrow"), "arrow"),
    **dict.fromkeys((".xlsx", ".xlsm"), "workbook"),
}
_PACKED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}  # as pyarrow calls them
_SHOWN = ".csv, .tsv, .txt (also with .gz, .zst or .bz2 behind), .parquet, .feather or .xlsx"
_CALLED: dict[Content, tuple[str, str]] = {
    "text": ("text", ".csv"),
    "parquet": ("Parquet", ".parquet"),
    "arrow": ("an Arrow file", ".feather"),
    "workbook": ("an Excel workbook", ".xlsx"),
}
_MAGIC: tuple[tuple[bytes, Content], ...] = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"FEA1", "arrow"),
)
_COMPRESSED = ((b"\x1f\x8b", ".gz"), (b"\x28\xb5\x2f\xfd", ".zst"), (b"BZh", ".bz2"))
_ZIP = b"PK\x03\x04"
_EXPORT = "Export it as CSV, or read it with pandas and pass the frame."
_UNPACK = "Unpack it and name the table inside."
_FOREIGN = (
    (b"\xd0\xcf\x11\xe0", "is an old Excel workbook (.xls)", "Save it as .xlsx or CSV."),
    (b"$FL2", "is an SPSS file", _EXPORT),
    (b"$FL3", "is an SPSS file", _EXPORT),
    (b"<stata_dta>", "is a Stata file", _EXPORT),
    (b"\0" * 12 + b"\xc2\xea\x81\x60", "is a SAS file", _EXPORT),
    (b"HEADER RECORD*******", "is a SAS transport file", _EXPORT),
    (b"RDX", "is an R file", _EXPORT),
    (b"SQLite format 3", "is an SQLite database", "Export the table as CSV."),
    (b"DUCK", "is a DuckDB database", "Export the table as CSV."),
    (b"%PDF", "is a PDF", "Ask for the table behind it."),
    (b"7z\xbc\xaf", "is a 7-Zip archive", _UNPACK),
    (b"Rar!", "is a RAR archive", _UNPACK),
    (b"\x80\x04\x95", "is a pickle, which is never opened", "Write it as Parquet."),
)
_MARKUP = (
    (b"<html", "is an HTML page", "Save it as CSV or .xlsx; what some programs call .xls is HTML."),
    (b"<!doctypehtml", "is an HTML page", "Save it as CSV or .xlsx."),
    (b"<table", "is an HTML page", "Save it as CSV or .xlsx."),
    (b"<?xml", "is XML", _EXPORT),
    (b'{"', "is JSON", _EXPORT),
    (b"[{", "is JSON", _EXPORT),
)
_DAMAGED = (  # what openpyxl raises beside
    *(*UNREADABLE, zipfile.BadZipFile, zlib.error, NotImplementedError),
    *(KeyError, AttributeError, IndexError, SyntaxError),
)
_LARGEST_WORKBOOK = 2 * 2**30  # bytes that it may unpack to


@dataclass(frozen=True)
class TableFile:
    """A file that holds a table; `compression` is what pyarrow calls it, `sheet` of a workbook."""

    path: Path
    content: Content
    compression: str | None = None
    sheet: str | None = None

    def open(self) -> Any:  # noqa: ANN401  # pyarrow's NativeFile
        """Its bytes, unpacked."""
        return pa.input_stream(str(self.path), compression=self.compression)


def find_file(named: str | Path) -> TableFile:
    """The file behind a path or `workbook.xlsx#sheet`, if its content is what its name says."""
    path, sheet = Path(named), None
    if not path.exists() and "#" in path.name:
        name, _, sheet = path.name.rpartition("#")
        path = path.with_name(name) if name else path
    if path.is_dir():
        fix = "Name the file of the table in it."
        raise FileError(str(path), "is a folder, not a table", fix=fix)
    if not path.is_file():
        raise FileError(str(named), "is not a file that exists")
    content, packed = _promised(path)
    try:
        with path.open("rb") as file:
            head = file.read(128)
    except OSError as error:
        raise FileError(str(path), f"cannot be read: {error.strerror}") from None
    seen = _content(path, head)
    if content is None:
        _refuse_foreign(path, head)
        fix = "If it is text with a separator between fields, rename it to .csv."
        if seen is not None and seen != "text":
            fix = f"It is {_CALLED[seen][0]} by its content: rename it."
        raise FileError(str(path), f"must end in {_SHOWN}", fix=fix)
    if not head:
        raise FileError(str(path), "is empty: 0 bytes", fix="Was it downloaded or copied whole?")
    ending = next((ending for magic, ending in _COMPRESSED if head.startswith(magic)), None)
    if packed is not None and ending != packed:
        fix = "Is it whole? If it is plain text, rename it."
        raise FileError(str(path), "is not compressed as its name says", fix=fix)
    if packed is None and ending and content == "text":
        fix = f"Rename it to {path.name}{ending}."
        raise FileError(str(path), "is compressed, which its name does not say", fix=fix)
    if packed is None:
        _refuse_foreign(path, head)
        if seen is not None and seen != content:
            rule = f"is {_CALLED[seen][0]}, not {_CALLED[content][0]}"
            raise FileError(str(path), rule, fix=f"Rename it to end in {_CALLED[seen][1]}.")
    if sheet is not None and content != "workbook":
        raise FileError(str(named), "names a sheet, but is no workbook", fix=f"Leave out #{sheet}.")
    return TableFile(path, content, None if packed is None else _PACKED[packed], sheet)


def _promised(path: Path) -> tuple[Content | None, str | None]:
    """What a file's name says that it holds, and the ending of its compression."""
    name = path.name.lower()
    packed = next((ending for ending in _PACKED if name.endswith(ending)), None)
    inner = name.removesuffix(packed) if packed else name
    content = next((kind for ending, kind in _ENDINGS.items() if inner.endswith(ending)), None)
    return (None if packed and content != "text" else content), packed


def _content(path: Path, head: bytes) -> Content | None:
    """What the first bytes say; None where they say nothing."""
    for magic, content in _MAGIC:
        if head.startswith(magic):
            return content
    if head.startswith(_ZIP):
        return "workbook" if _is_workbook(path) else None
    text = head.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    printable = all(byte >= 32 or byte in b"\t\r\n" for byte in head)
    return "text" if text or printable else None


def _refuse_foreign(path: Path, head: bytes) -> None:
    opening = b"".join(head.removeprefix(codecs.BOM_UTF8).lower().split(maxsplit=2)[:2])
    for start, known in ((head, _FOREIGN), (opening, _MARKUP)):
        for magic, rule, fix in known:
            if start.startswith(magic):
                raise FileError(str(path), rule, fix=fix)
    if head.startswith(_ZIP) and not _is_workbook(path):
        if b"opendocument.spreadsheet" in head:
            fix = "Save it as .xlsx or CSV."
            raise FileError(str(path), "is an OpenDocument workbook", fix=fix)
        raise FileError(str(path), "is a zip archive", fix=_UNPACK)


def _is_workbook(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):  # of later versions
        return False


Parts = Callable[[Sequence[str]], Iterator[pa.Table]]
"""Given column names, a table in parts."""


def open_parquet(path: Path) -> tuple[pa.Schema, int, Parts]:
    """Columns, number of rows and parts of a Parquet file; a part is a row group."""
    refused = FileError(str(path), "cannot be read as Parquet", fix="Is it whole?")
    try:
        file = pq.ParquetFile(path, pre_buffer=False)  # else a part is held twice
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    except UNREADABLE:
        raise refused from None
    if min(sizes, default=0) < 0 or sum(sizes) != n_rows:
        raise refused

    def parts(wanted: Sequence[str]) -> Iterator[pa.Table]:
        for group, size in enumerate(sizes):
            try:
                part = file.read_row_group(group, columns=list(wanted))
            except UNREADABLE:
                raise refused from None
            if part.num_rows != size:
                raise refused
            yield part
            del part
            pa.default_memory_pool().release_unused()  # what the part took is the next one's

    return schema, n_rows, parts


def read_arrow(path: Path) -> pa.Table:
    """Read a Feather or Arrow file; what it claims about itself is checked cell by cell."""
    try:
        with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
            table = reader.read_all()
            table.validate(full=True)
    except UNREADABLE:
        raise FileError(str(path), "cannot be read as Arrow", fix="Is it whole?") from None
    return table


def read_sheet(file: TableFile) -> pa.Table:
    """The sheet that was asked for, or the only one; the first row that is not empty has the names.

    A cell has its last computed value. A column of numbers and text comes as text, so that it is
    judged like one of a CSV.
    """
    with _workbook(file) as book:
        names = [sheet.title for sheet in book.worksheets]
        shown = ", ".join(names[:10])
        if file.sheet is not None and file.sheet not in names:
            fix = f"Its sheets: {shown}."
            raise FileError(f"{file.path}#{file.sheet}", "is no sheet of the workbook", fix=fix)
        if file.sheet is None and len(names) != 1:
            first = names[0] if names else "Sheet"
            fix = f"Name one, {file.path.name}#{first}; its sheets: {shown}."
            raise FileError(str(file.path), f"has {len(names)} sheets", fix=fix)
        sheet = book[file.sheet or names[0]]
        sheet.reset_dimensions()  # what some programs write there is wrong
        cells = sheet.iter_rows(values_only=True)
        rows = [tuple(row) for row in cells if any(cell is not None for cell in row)]
    if not rows:
        raise FileError(str(file.path), "has an empty sheet", fix="Name another: file.xlsx#Sheet.")
    header = ["" if cell is None else str(cell) for cell in rows[0]]
    columns = [
        _cells_of([row[at] if at < len(row) else None for row in rows[1:]])
        for at in range(len(header))
    ]
    return pa.Table.from_arrays(columns, names=header)


@contextmanager
def _workbook(file: TableFile) -> Iterator[Any]:
    try:
        from openpyxl import load_workbook  # noqa: PLC0415  # optional
    except ImportError:
        fix = "pip install 'etips[excel]', or save the sheet as CSV."
        raise FileError(str(file.path), "needs openpyxl to be read", fix=fix) from None
    try:
        with zipfile.ZipFile(file.path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > _LARGEST_WORKBOOK:
            fix = "Save the sheet as CSV."
            raise FileError(str(file.path), "is too large for a workbook", fix=fix)
        with warnings.catch_warnings(), file.path.open("rb") as stream:
            warnings.simplefilter("ignore")  # styles and filters that openpyxl does not know
            with closing(load_workbook(stream, read_only=True, data_only=True)) as book:
                yield book
    except EtipsError:
        raise
    except _DAMAGED:
        rule = "cannot be read as an Excel workbook"
        raise FileError(str(file.path), rule, fix="Is it whole?") from None


def _cells_of(cells: Sequence[object]) -> pa.Array:
    """Cells of one type as that type; anything else as text."""
    kinds = {type(cell) for cell in cells if cell is not None}
    try:
        if kinds <= {int, float} or len(kinds) == 1:
            return pa.array(cells, from_pandas=False)
        if kinds <= {datetime, date}:
            moments = [
                datetime.combine(cell, time()) if type(cell) is date else cell for cell in cells
            ]
            return pa.array(moments, pa.timestamp("us"))
    except UNREADABLE:
        pass
    return pa.array([None if cell is None else _spelt(cell) for cell in cells], pa.string())


def _spelt(cell: object) -> str:
    if isinstance(cell, datetime):
        return cell.isoformat(" ")
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    return str(cell)
