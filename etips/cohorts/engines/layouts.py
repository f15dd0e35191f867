"""The tables that an engine may meet, and their columns in the types that are asked for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import ibis  # type: ignore[import-untyped, unused-ignore]

from etips.errors import DataError

INT, TEXT, NUMBER, TIME = "int64", "string", "float64", "timestamp"
CODE: Final = "code"
"""A text of six digits; one that was stored as a number gets its leading zeros back."""

# DuckDB takes a text that begins as a time for one, and passes over "PM" and "+02:00" behind it.
DATE: Final = r"^\s*[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}"
_CLOCK: Final = r"([ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?)?"
PLAIN_TIME: Final = rf"{DATE}{_CLOCK}\s*(Z|\+00(:?00)?)?\s*$"
_CODE_LENGTH: Final = 6

TypedTables = Mapping[str, Mapping[str, str]]
"""Kind of each column by table, all names in lower case."""


@dataclass(frozen=True)
class Layout:
    """How a database lies in a source.

    Attributes:
        label: What refusals call it.
        tables: Every table that may be read, with its columns.
        folders: Folders below the given one that hold its files; "" is the given one itself.
        schemas: Schemas of a server that hold it, if the address names none, one choice or more.
    """

    label: str
    tables: TypedTables
    folders: tuple[str, ...] = ("",)
    schemas: tuple[tuple[str, ...], ...] = ()


def any_of(layouts: Iterable[Layout]) -> Layout:
    """The layout of a source that may hold any of these databases, the likeliest first.

    The first kind of a column counts.
    """
    known = tuple(layouts)
    tables: dict[str, dict[str, str]] = {}
    for layout in known:
        for name, columns in layout.tables.items():
            tables[name] = {**columns, **tables.get(name, {})}
    return Layout(
        label=" or ".join(layout.label for layout in known),
        tables=tables,
        folders=tuple(dict.fromkeys(name for layout in known for name in layout.folders)),
        schemas=tuple(choice for layout in known for choice in layout.schemas),
    )


def typed(table: ibis.Table, columns: Mapping[str, str], *, where: str) -> ibis.Table:
    """Pick columns whatever their case, and cast those that have another type than is asked for.

    `where` is what refusals call the table.
    """
    by_name = {name.lower(): table[name] for name in table.columns}
    picked = {}
    for name, kind in columns.items():
        column = by_name[name]
        if column.type().is_nested():
            fix = "Check the file, or download it again."
            raise DataError(where, f"column {name} must hold one value a row", fix=fix)
        if kind == CODE and column.type().is_numeric():
            column = column.cast("int64").cast("string").lpad(_CODE_LENGTH, "0")
        if kind == TIME and column.type().is_string():
            # with something behind the time, such as PM, which engines would pass over in silence
            plain = column.isnull() | column.re_search(PLAIN_TIME)
            column = plain.ifelse(column, "not a time")
        kind = TEXT if kind == CODE else kind
        picked[name] = column if column.type() == ibis.dtype(kind) else column.cast(kind)
    return table.select(**picked)
