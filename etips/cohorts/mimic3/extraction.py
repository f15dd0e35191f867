"""MIMIC-III under one profile, as the rules ask for it."""

import json
from typing import Final

import polars as pl

from etips.cohorts.database import Profile
from etips.cohorts.engines.raw_rows import require_some
from etips.cohorts.engines.raw_source import RawSource
from etips.cohorts.engines.store import Store
from etips.cohorts.mimic import infusions, measurements, unit_audit
from etips.cohorts.mimic.bedside import read_block
from etips.cohorts.mimic3 import concepts, extract
from etips.cohorts.mimic3.switches import PAPER, Reading
from etips.cohorts.mimic3.tables import LAYOUT, open_tables
from etips.cohorts.sepsis3.events import Events, ItemUnits, OwnDefinition, Unread
from etips.cohorts.sepsis3.rules import Rules

_INPUTS: Final = {"inputevents_mv": "infusions_mv", "inputevents_cv": "infusions_cv"}
_KEPT_AS: Final = {"charted": "chart", "laboratory": "labs", "urine": "urine"}


class Mimic3Extraction:
    """An `Extraction` of MIMIC-III.

    Args:
        source: Where the raw tables are; it is not closed.
        profile: `PAPER`, `CLEAN`, or either with single switches changed.
    """

    database = "mimic3"
    label = LAYOUT.label
    stay_column = "icustay_id"

    def __init__(self, source: RawSource, profile: Profile[Reading] = PAPER) -> None:
        self.profile = profile.name
        self.rules: Rules = profile.rules
        self.settings = profile.settings()
        self._source, self._reading = source, profile.reading
        self._items = concepts.select(profile.reading)
        self._tables: extract.Tables = {}
        self._n_samples = 0

    @property
    def kept(self) -> Store:
        """Where large results lie."""
        return self._source.kept

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

    def samples(self) -> pl.DataFrame:
        """Microbiological samples."""
        samples = extract.read_microbiology(self._source, self._tables)
        self._n_samples = samples.height
        return samples

    def keep(self, stays: list[int]) -> None:
        """Store the rows of these stays, and the cultures of all."""
        extract.store_large(self._source, self._tables, self._items, self._reading, stays)

    def cultures(self) -> pl.DataFrame:
        """Cultures charted with a stay."""
        return extract.read_cultures(self.kept, self._items, self._reading)

    def own_definition(self) -> OwnDefinition | None:
        """None: there is no other definition of this database here."""
        return None

    def events(self, first: int, last: int) -> Events:
        """Events of the kept stays first..last."""
        block = read_block(self.kept, first, last, extract.kept_tables(self._reading))
        boluses, running = infusions.fluids(
            block, self._items, drop_rewritten=self._reading.drop_rewritten_fluids
        )
        return Events(
            measurements=measurements.measurements(block, self._items),
            ventilation=measurements.ventilation(block, self._items),
            vasopressors=infusions.vasopressors(block, self._items, self.rules),
            boluses=boluses,
            infusions=running,
            fluid_before=infusions.preadmission_fluids(block, self._items),
            urine=infusions.urine(block, self._items),
            urine_before=infusions.preadmission_urine(block),
        )

    def require_rows(self, *kinds: str) -> None:
        """Refuse a source without a usable row of a kind.

        Either input table may be empty, since a hospital may have charted in one system only.
        """
        for kind in kinds:
            if kind == "samples":
                require_some("microbiologyevents", self._n_samples)
            else:
                name = _KEPT_AS[kind]
                require_some(extract.TABLE_OF[name], self.kept.height(name))

    def audit(self) -> tuple[ItemUnits, ...]:
        """What the kept rows say about their units."""
        return unit_audit.audit(self.kept, self._items, _INPUTS)

    def unread(self) -> tuple[Unread, ...]:
        """None: no item is known to be missing from the lists."""
        return ()
