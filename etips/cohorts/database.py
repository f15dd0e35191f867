"""What the rest of the package knows of a database: one value each, listed in `databases`."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from etips.cohorts.dataset.agreement import Published
from etips.cohorts.engines.layouts import Layout
from etips.cohorts.engines.raw_source import RawSource
from etips.cohorts.sepsis3.events import Extraction
from etips.cohorts.sepsis3.rules import Rules

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

R = TypeVar("R", bound="DataclassInstance")


@dataclass(frozen=True)
class Profile(Generic[R]):
    """A named set of settings.

    Attributes:
        name: How the command line calls it.
        rules: Settings of the Sepsis-3 rules.
        reading: Settings of how the database is read; no name of its own is one of the rules.
    """

    name: str
    rules: Rules
    reading: R

    def changed(self, **settings: object) -> Self:
        """The same with single settings changed, whichever part they belong to."""
        own = {f.name for f in fields(self.reading)}
        reading = {name: value for name, value in settings.items() if name in own}
        rules = {name: value for name, value in settings.items() if name not in own}
        return replace(
            self,
            rules=replace(self.rules, **rules),  # type: ignore[arg-type]
            reading=replace(self.reading, **reading),
        )

    def settings(self) -> dict[str, object]:
        """Every setting by name."""
        return {"name": self.name, **asdict(self.rules), **asdict(self.reading)}


@dataclass(frozen=True)
class Database:
    """A database that the cohort can be built from.

    Attributes:
        name: As files call it.
        label: For readers.
        layout: Where its tables are and what columns they have.
        recognises: Whether tables, with their columns, are its own.
        profiles: Names of the profiles, the one to take if none is asked for first.
        extract: Open a source under a profile, some of its settings changed (`Profile.changed`).
        published: What the cohort from it should come to, if anybody has published that.
        definitions: Names of Sepsis-3 definitions that `onset` may be besides the rules' own.
    """

    name: str
    label: str
    layout: Layout
    recognises: Callable[[Mapping[str, frozenset[str]]], bool]
    profiles: tuple[str, ...]
    extract: Callable[[RawSource, str, Mapping[str, object]], Extraction]
    published: Published | None = None
    definitions: tuple[str, ...] = ()
