"""What an engine is told about the tables of the databases that it may meet."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

INT, TEXT, NUMBER, TIME = "int64", "string", "float64", "timestamp"
CODE: Final = "code"
"""A text of six digits; one that was stored as a number gets its leading zeros back."""

TypedTables = Mapping[str, Mapping[str, str]]
"""Kind of each column by table, all names in lower case."""


@dataclass(frozen=True)
class Layout:
    """How a database lies in a source.

    Attributes:
        label: What refusals call it.
        tables: Every table that may be read, with its columns.
        signs: Further tables by which it, or another one, is told.
        folders: Folders below the given one that hold its files; "" is the given one itself.
        schemas: Schemas of a server that hold it, if the address names none.
    """

    label: str
    tables: TypedTables
    signs: frozenset[str] = frozenset()
    folders: tuple[str, ...] = ("",)
    schemas: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """Every table that is looked for."""
        return frozenset(self.tables) | self.signs


@dataclass(frozen=True)
class Layouts:
    """The layouts that a source may have, the likeliest first."""

    known: tuple[Layout, ...]

    @property
    def label(self) -> str:
        """Their labels as one."""
        return " or ".join(layout.label for layout in self.known)

    @property
    def names(self) -> frozenset[str]:
        """Every table that is looked for."""
        return frozenset[str]().union(*(layout.names for layout in self.known))

    @property
    def folders(self) -> tuple[str, ...]:
        """Every folder that may hold files, each once."""
        return tuple(dict.fromkeys(name for layout in self.known for name in layout.folders))

    def columns(self, table: str) -> dict[str, str]:
        """Kinds of a table's columns, whichever layout has them."""
        kinds: dict[str, str] = {}
        for layout in reversed(self.known):
            kinds |= layout.tables.get(table, {})
        return kinds
