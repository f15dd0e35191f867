"""MIMIC-III under one profile, as the rules ask for it."""

import json

import polars as pl

from etips.cohorts.database import Profile
from etips.cohorts.engines.raw_source import RawSource
from etips.cohorts.mimic.bedside_extraction import BedsideExtraction
from etips.cohorts.mimic3 import concepts, extract
from etips.cohorts.mimic3.switches import PAPER, Reading
from etips.cohorts.mimic3.tables import LAYOUT, open_tables
from etips.cohorts.sepsis3.events import OwnDefinition, Unread


class Mimic3Extraction(BedsideExtraction):
    """An `Extraction` of MIMIC-III.

    Args:
        source: Where the raw tables are; it is not closed.
        profile: `PAPER`, `CLEAN`, or either with single switches changed.
    """

    database = "mimic3"
    label = LAYOUT.label
    stay_column = extract.STAY_COLUMN

    def __init__(self, source: RawSource, profile: Profile[Reading] = PAPER) -> None:
        reading = profile.reading
        super().__init__(
            source,
            profile.rules,
            concepts.select(reading),
            extract.kept_tables(reading),
            drop_rewritten_fluids=reading.drop_rewritten_fluids,
        )
        self.profile, self._reading = profile.name, reading
        self.settings = profile.settings()

    def begin(self) -> None:
        """Check the tables, and take up what an earlier process stored under the same settings."""
        self._source.begin(json.dumps(self.settings))
        self._tables = open_tables(self._source, self._reading)

    def stays(self) -> pl.DataFrame:
        """Every ICU stay, once."""
        return extract.read_stays(self._source, self._tables)

    def antibiotics(self) -> pl.DataFrame:
        """Antibiotics that were prescribed."""
        return extract.read_antibiotics(self._source, self._tables, self._items, self._reading)

    def keep(self, stays: list[int]) -> None:
        """Store the rows of these stays, and the cultures of all."""
        extract.store_large(self._source, self._tables, self._items, self._reading, stays)

    def cultures(self) -> pl.DataFrame:
        """Cultures charted with a stay."""
        return extract.read_cultures(self.kept, self._items, self._reading)

    def own_definition(self) -> OwnDefinition | None:
        """None: there is no other definition of this database here."""
        return None

    def unread(self) -> tuple[Unread, ...]:
        """None: no item is known to be missing from the lists."""
        return ()
