"""What a file is, by its first bytes and by its name."""

import codecs
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from etips.errors import FileError

Content = Literal["text", "parquet", "arrow", "workbook"]

ENDINGS: dict[str, Content] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".tab"), "text"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".feather", ".arrow"), "arrow"),
    **dict.fromkeys((".xlsx", ".xlsm"), "workbook"),
}
"""Endings of tables, and what they promise."""

PACKED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
"""Endings behind that of a text, and how pyarrow calls the compression."""

_SHOWN = ".csv, .tsv, .txt (also with .gz, .zst or .bz2 behind), .parquet, .feather or .xlsx"
_USUAL = {"text": ".csv", "parquet": ".parquet", "arrow": ".feather", "workbook": ".xlsx"}
_CALLED = {
    "text": "text",
    "parquet": "Parquet",
    "arrow": "an Arrow file",
    "workbook": "an Excel workbook",
}
_MAGIC: tuple[tuple[bytes, Content], ...] = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"FEA1", "arrow"),
)
_COMPRESSED = ((b"\x1f\x8b", ".gz"), (b"\x28\xb5\x2f\xfd", ".zst"), (b"BZh", ".bz2"))
_EXPORT = "Export it as CSV, or read it with pandas and pass the frame."
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
    (b"7z\xbc\xaf", "is a 7-Zip archive", "Unpack it and name the table inside."),
    (b"Rar!", "is a RAR archive", "Unpack it and name the table inside."),
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


@dataclass(frozen=True)
class TableFile:
    """A file that holds a table.

    Args:
        path: The file.
        content: What it is.
        compression: How pyarrow calls its compression, None if there is none.
        sheet: Sheet of a workbook that was asked for.
    """

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
    content, compression = _promised(path)
    head = _head(path)
    if not head:
        raise FileError(str(path), "is empty: 0 bytes", fix="Was it downloaded or copied whole?")
    _require_promise(path, head, content, compression)
    if sheet is not None and content != "workbook":
        raise FileError(str(named), "names a sheet, but is no workbook", fix=f"Leave out #{sheet}.")
    return TableFile(path, content, compression, sheet)


def _promised(path: Path) -> tuple[Content, str | None]:
    name = path.name.lower()
    packed = next((ending for ending in PACKED if name.endswith(ending)), None)
    inner = name.removesuffix(packed) if packed else name
    content = next((kind for ending, kind in ENDINGS.items() if inner.endswith(ending)), None)
    if content is None or (packed and content != "text"):
        _refuse_foreign(path)
        seen = _content(path, _head(path))
        fix = "If it is text with a separator between fields, rename it to .csv."
        if seen is not None and seen != "text":
            fix = f"It is {_CALLED[seen]} by its content: rename it."
        raise FileError(str(path), f"must end in {_SHOWN}", fix=fix)
    return content, PACKED[packed] if packed else None


def _require_promise(path: Path, head: bytes, content: Content, compression: str | None) -> None:
    """Refuse what is not what its name says: saying so helps more than a reader's complaint."""
    packed = next((ending for magic, ending in _COMPRESSED if head.startswith(magic)), None)
    if compression is None and packed and content == "text":
        fix = f"Rename it to {path.name}{packed}."
        raise FileError(str(path), "is compressed, which its name does not say", fix=fix)
    if compression is not None:
        if packed is None or PACKED[packed] != compression:
            fix = "Is it whole? If it is plain text, rename it."
            raise FileError(str(path), "is not compressed as its name says", fix=fix)
        return
    _refuse_foreign(path)
    seen = _content(path, head)
    if seen is not None and seen != content:
        rule = f"is {_CALLED[seen]}, not {_CALLED[content]}"
        raise FileError(str(path), rule, fix=f"Rename it to end in {_USUAL[seen]}.")


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(128)
    except OSError as error:
        raise FileError(str(path), f"cannot be read: {error.strerror}") from None


def _content(path: Path, head: bytes) -> Content | None:
    """What the first bytes say; None where they say nothing."""
    for magic, content in _MAGIC:
        if head.startswith(magic):
            return content
    if head.startswith(b"PK\x03\x04"):
        return "workbook" if _is_workbook(path) else None
    text = head.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    printable = all(byte >= 32 or byte in b"\t\r\n" for byte in head)
    return "text" if text or printable else None


def _refuse_foreign(path: Path) -> None:
    head = _head(path)
    for magic, rule, fix in _FOREIGN:
        if head.startswith(magic):
            raise FileError(str(path), rule, fix=fix)
    opening = b"".join(head.removeprefix(codecs.BOM_UTF8).lower().split(maxsplit=2)[:2])
    for magic, rule, fix in _MARKUP:
        if opening.startswith(magic):
            raise FileError(str(path), rule, fix=fix)
    if head.startswith(b"PK\x03\x04") and not _is_workbook(path):
        if b"opendocument.spreadsheet" in head:
            raise FileError(
                str(path), "is an OpenDocument workbook", fix="Save it as .xlsx or CSV."
            )
        fix = "Unpack it and name the table inside."
        raise FileError(str(path), "is a zip archive", fix=fix)


def _is_workbook(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):  # of later versions
        return False
