"""What the extractions of every MIMIC do alike, once they know their items and kept their rows."""

from collections.abc import Mapping
from typing import Final

import polars as pl

from etips.cohorts.engines.raw_rows import require_some
from etips.cohorts.engines.raw_source import RawSource
from etips.cohorts.engines.store import Store
from etips.cohorts.mimic import infusions, measurements, unit_audit
from etips.cohorts.mimic.bedside import read_block
from etips.cohorts.mimic.bedside_queries import Tables, read_microbiology
from etips.cohorts.mimic.items import Items
from etips.cohorts.sepsis3.events import Events, ItemUnits
from etips.cohorts.sepsis3.rules import Rules

_KEPT_AS: Final = {"charted": "chart", "laboratory": "labs", "urine": "urine"}


class BedsideExtraction:
    """The part of an `Extraction` that reads what was kept.

    Args:
        source: Where the raw tables are; it is not closed.
        rules: Settings of the rules.
        items: What to look for.
        kept_tables: Raw table of each kept one.
        drop_rewritten_fluids: Whether fluids that were written anew do not count.
    """

    def __init__(
        self,
        source: RawSource,
        rules: Rules,
        items: Items,
        kept_tables: Mapping[str, str],
        *,
        drop_rewritten_fluids: bool = False,
    ) -> None:
        self.rules = rules
        self._source, self._items, self._kept_tables = source, items, kept_tables
        self._drop_rewritten_fluids = drop_rewritten_fluids
        self._tables: Tables = {}
        self._n_samples = 0

    @property
    def kept(self) -> Store:
        """Where large results lie."""
        return self._source.kept

    def samples(self) -> pl.DataFrame:
        """Microbiological samples."""
        samples = read_microbiology(self._source, self._tables)
        self._n_samples = samples.height
        return samples

    def events(self, first: int, last: int) -> Events:
        """Events of the kept stays first..last."""
        block = read_block(self.kept, first, last, self._kept_tables)
        boluses, running = infusions.fluids(
            block, self._items, drop_rewritten=self._drop_rewritten_fluids
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

        What was given may be missing: of two charting systems a hospital may have used one only.
        """
        for kind in kinds:
            if kind == "samples":
                require_some("microbiologyevents", self._n_samples)
            else:
                name = _KEPT_AS[kind]
                require_some(self._kept_tables[name], self.kept.height(name))

    def audit(self) -> tuple[ItemUnits, ...]:
        """What the kept rows say about their units."""
        inputs = {
            table: name for name, table in self._kept_tables.items() if name.startswith("infusions")
        }
        return unit_audit.audit(self.kept, self._items, inputs)
