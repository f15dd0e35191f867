"""MIMIC-IV under one profile, as the rules ask for it."""

import json

import polars as pl

from etips.cohorts.database import Profile
from etips.cohorts.engines.raw_source import RawSource
from etips.cohorts.mimic.bedside_extraction import BedsideExtraction
from etips.cohorts.mimic4 import concepts, extract, hourly_rows, suspicion
from etips.cohorts.mimic4.mimic_code import own_definition
from etips.cohorts.mimic4.switches import CLEAN, WITHOUT_EFFECT, Onset, Reading
from etips.cohorts.mimic4.tables import LAYOUT, open_tables
from etips.cohorts.sepsis3.events import OwnDefinition, Unread
from etips.cohorts.sepsis3.rules import AntibioticOrder
from etips.errors import SettingError
from etips.notes import note


class Mimic4Extraction(BedsideExtraction):
    """An `Extraction` of MIMIC-IV.

    Args:
        source: Where the raw tables are; it is not closed.
        profile: `CLEAN`, `PAPER`, or either with single switches changed.
    """

    database = "mimic4"
    label = LAYOUT.label
    stay_column = extract.STAY_COLUMN

    def __init__(self, source: RawSource, profile: Profile[Reading] = CLEAN) -> None:
        if profile.rules.antibiotic_order is not AntibioticOrder.DATE:
            rule = "must be date for MIMIC-IV, where no prescription names a stay"
            raise SettingError("antibiotic_order", rule)
        self.profile = profile.name
        self._by_mimic_code = profile.reading.onset == Onset.MIMIC_CODE
        if self._by_mimic_code:  # which says itself whose SOFA is high enough
            profile = profile.changed(least_sofa=0)
        reading = profile.reading
        items, kept = concepts.select(reading), extract.kept_tables(reading)
        super().__init__(source, profile.rules, items, kept)
        self.settings = {**profile.settings(), "without_effect": list(WITHOUT_EFFECT)}
        self._reading = reading
        self._orders = pl.DataFrame()
        self._named: dict[int, str] = {}

    def begin(self) -> None:
        """Check the tables, and take up what an earlier process stored under the same settings."""
        self._source.begin(json.dumps(self.settings))
        self._tables = open_tables(self._source, self._reading)
        self._named = extract.read_named(self._source, self._tables, self._items)
        if self._named:
            note(f"not read, though named like a vasopressor: items {sorted(self._named)}")

    def stays(self) -> pl.DataFrame:
        """Every ICU stay, once."""
        return extract.read_stays(self._source, self._tables)

    def antibiotics(self) -> pl.DataFrame:
        """Antibiotics that were prescribed."""
        if self._by_mimic_code:
            self._orders = suspicion.read_orders(self._source, self._tables)
            return self._orders.select("admission", "stay", "t").with_row_index("entry")
        return extract.read_antibiotics(self._source, self._tables, self._items, self._reading)

    def keep(self, stays: list[int]) -> None:
        """Store the rows of these stays, and the cultures of all."""
        extract.store_large(
            self._source, self._tables, self._items, self._reading, stays, counted=self._named
        )
        if self._by_mimic_code:
            hourly_rows.store_hourly(self._source, self._tables, stays)

    def cultures(self) -> pl.DataFrame:
        """Cultures charted with a stay."""
        return extract.read_cultures(self.kept, self._items, self._reading)

    def own_definition(self) -> OwnDefinition | None:
        """Onsets and Sepsis-3 by the concepts of mimic-code, if they are asked for."""
        if not self._by_mimic_code:
            return None
        specimens = suspicion.read_specimens(self._source, self._tables)
        found = suspicion.suspected(self._orders, specimens)
        return own_definition(found, self.kept, self.rules.stays_per_block)

    def unread(self) -> tuple[Unread, ...]:
        """Second numbers of laboratory tests, and drugs that are no part of the dose."""
        known = {
            "labs": dict.fromkeys(concepts.SECOND_LAB_ITEMS, "second number of a laboratory test"),
            "infusions_mv": concepts.OTHER_PRESSORS | self._named,
            "chart": concepts.OTHER_CHARTED,
        }
        return tuple(
            Unread(extract.TABLE_OF[name], item, items[item], n)
            for name, items in known.items()
            for item, n in self.kept.counts(name, "itemid").sort("itemid").iter_rows()
            if item in items
        )
