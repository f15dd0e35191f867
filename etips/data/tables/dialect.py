"""How a text with fields is written: its encoding, what stands between fields, where it starts."""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from etips.errors import FileError

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
    """Tell the dialect of a text from its beginning.

    Args:
        where: The file, for a refusal.
        sample: Its first bytes.
        whole: Whether they are all there are.
    """
    encoding = find_encoding(where, sample)
    text = _decode(sample, encoding, whole=whole)
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


def _decode(sample: bytes, encoding: str, *, whole: bool) -> str:
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    return decoder.decode(sample, final=whole).removeprefix("\ufeff")


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
