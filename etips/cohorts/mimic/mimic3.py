"""MIMIC-III v1.4: its switches, and how its rows read.

The rules: docs/cohort/rules.md sections 3, 4 and 20.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

import ibis  # type: ignore[import-untyped, unused-ignore]
import ibis.expr.types as ir  # type: ignore[import-untyped, unused-ignore]
import polars as pl

from etips.cohorts.engines.layouts import Layout
from etips.cohorts.mimic.extraction import Extraction, Profile, named_antibiotic
from etips.cohorts.mimic.items import (
    DEVICE_TEXTS,
    DEVICE_TEXTS_CLEAN,
    UNTESTABLE_VERBAL,
    MimicReading,
    all_on,
    switches_of,
    tables_of,
)
from etips.cohorts.sepsis3 import rules


@dataclass(frozen=True)
class Reading(MimicReading):
    """Which rows of MIMIC-III count; further oddities of section 20 that are its own."""

    drop_rewritten_fluids: bool = False  # 6
    complete_fluid_items: bool = False  # 7
    drop_charted_errors: bool = False  # 29

    def corrects(self, concept: str) -> bool:
        """Whether the clean rows of a concept apply, or those of the paper."""
        if concept.startswith("fluid"):
            return self.complete_fluid_items
        return super().corrects(concept)


SWITCHES: Final = switches_of(Reading)
PAPER: Final = Profile("paper", rules.PAPER, Reading())
CLEAN: Final = Profile("clean", rules.CLEAN, all_on(Reading()))
PROFILES: Final = {profile.name: profile for profile in (PAPER, CLEAN)}
needed: Final = partial(tables_of, "mimic3")
"""Tables and typed columns that a reading needs."""

# Section 4.2 and the unit notes of `mechvent`: items whose text decides.
_EXTUBATION_ITEM: Final = 640
_EXTUBATION_TEXTS: Final = ("Extubated", "Self Extubation")
_VENTILATED_IF: Final = {467: "Ventilator"}
_VENTILATED_UNLESS: Final = {720: "Other/Remarks", 223849: "Standby"}


class Mimic3Extraction(Extraction):
    """MIMIC-III opened under a profile."""

    name, label, release = "mimic3", "MIMIC-III", "MIMIC-III v1.4"
    profiles = PROFILES
    layout = Layout(label, tables_of(name), schemas=(("mimiciii",),))
    stay_column = "icustay_id"
    table_of: ClassVar = {
        "chart": "chartevents",
        "labs": "labevents",
        "infusions_mv": "inputevents_mv",
        "infusions_cv": "inputevents_cv",
        "urine": "outputevents",
        "procedures": "procedureevents_mv",
    }
    born = ("dob",)
    lab_owner = "hadm_id"
    specimen_item = 50800
    reading: Reading

    def age(self) -> pl.Expr:
        """Age in days."""
        return (pl.col("icu_in") - pl.col("dob")) / (24 * 3600)

    def antibiotics(self) -> pl.DataFrame:
        """Antibiotic prescriptions; t is a date at midnight."""
        rows = self.tables["prescriptions"]
        chosen = rows.gsn.isin(sorted(self.items.antibiotics))
        if self.reading.antibiotics_by_name:
            chosen = named_antibiotic(rows)
        query = rows.filter(chosen & rows.startdate.notnull()).select(
            "stay", entry=rows.row_id, admission=rows.hadm_id, t=rows.startdate
        )
        return self.source.fetch(query).sort("entry", "admission", "stay", "t")

    def charted(self, rows: ibis.Table) -> tuple[ir.BooleanValue, dict[str, ir.Value]]:
        """Rows without an error if the profile drops them, and what their texts say."""
        item, text = rows.itemid, rows.value
        counts = ibis.literal(True)
        if self.reading.drop_charted_errors:
            counts = rows.error.fill_null(0) != 1
        device = text.cases(*DEVICE_TEXTS.items(), else_=None)  # in every row in the scripts
        if self.reading.metavision_devices:
            code = text.lower().cases(*DEVICE_TEXTS_CLEAN.items(), else_=None)
            device = ibis.cases((item.isin(self.items_of("Interface")), code), else_=None)
        is_verbal = item.isin(self.items_of("GCS_verbal"))
        deciding = [  # any text says ventilated, but for a few
            (item == _EXTUBATION_ITEM, False),
            *((item == i, text == word) for i, word in _VENTILATED_IF.items()),
            *((item == i, text != word) for i, word in _VENTILATED_UNLESS.items()),
        ]
        return counts, {
            "untestable": is_verbal & text.isin(UNTESTABLE_VERBAL),
            "device": device,
            "has_text": text.notnull(),
            "ventilated": ibis.cases(*deciding, else_=True),
            "extubated": (item == _EXTUBATION_ITEM) & text.isin(_EXTUBATION_TEXTS),
        }

    def given(self, stays: ibis.Table) -> dict[str, ibis.Table]:
        """What was given, as both charting systems have it."""
        mv, cv = (self.tables[f"inputevents_{system}"] for system in ("mv", "cv"))
        return {
            "infusions_mv": self.infusion_query(
                mv, stays, start=mv.starttime, end=mv.endtime,
                statusdescription=mv.statusdescription,
            ),
            "infusions_cv": self.infusion_query(cv, stays, t=cv.charttime),
        }  # fmt: skip
