"""What the rest of the package knows of a database: one value each, listed in `databases`."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

import polars as pl

from etips.cohorts.dataset.agreement import Published
from etips.cohorts.engines.address import RawSource
from etips.cohorts.engines.layouts import Layout
from etips.cohorts.engines.store import Store
from etips.cohorts.sepsis3.events import Events, ItemUnits, OwnDefinition, Unread
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


class Extraction(Protocol):
    """A database opened under one profile: what the pipeline asks of it.

    Attributes:
        database: Its name in the list of databases.
        label: Its name for readers.
        stay_column: What it calls the id of a stay; onsets are written under that name.
        profile: Name of the settings.
        rules: Settings of the rules in this profile.
        settings: Every setting by name, those of the rules and those of the database.
        kept: Where large results lie.
    """

    database: str
    label: str
    stay_column: str
    profile: str
    rules: Rules
    settings: dict[str, object]
    kept: Store

    def begin(self) -> None:
        """Check the tables, and take up what an earlier process stored under the same settings."""

    def stays(self) -> pl.DataFrame:
        """Every ICU stay, once.

        stay, patient, admission, gender (M or F), age in days, icu_in, icu_out, discharge, death.
        """

    def antibiotics(self) -> pl.DataFrame:
        """Antibiotics given: entry (order of equal ones), admission, stay or null, t."""

    def samples(self) -> pl.DataFrame:
        """Microbiological samples, attached to no stay yet: patient, admission, t."""

    def keep(self, stays: list[int]) -> None:
        """Store the rows of these stays, and the cultures of all."""

    def cultures(self) -> pl.DataFrame:
        """Cultures charted with a stay: stay, t."""

    def own_definition(self) -> OwnDefinition | None:
        """Onsets and Sepsis-3 by another definition than the rules', if the settings ask for one.

        Asked for once the rows are kept.
        """

    def events(self, first: int, last: int) -> Events:
        """Events of the kept stays first..last."""

    def require_rows(self, *kinds: str) -> None:
        """Refuse a source without a usable row of a kind: samples, charted, laboratory, urine."""

    def audit(self) -> tuple[ItemUnits, ...]:
        """What the kept rows say about their units."""

    def unread(self) -> tuple[Unread, ...]:
        """Rows that were seen and not read."""


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
