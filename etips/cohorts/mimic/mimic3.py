"""MIMIC-III v1.4: its tables and columns, its switches, its items, and how its rows read.

The rules: docs/cohort/rules.md sections 3, 4 and 20.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import ibis  # type: ignore[import-untyped, unused-ignore]
import ibis.expr.types as ir  # type: ignore[import-untyped, unused-ignore]
import polars as pl

from etips.cohorts.database import Database, Profile
from etips.cohorts.engines.address import RawSource
from etips.cohorts.engines.checked_tables import in_seconds, open_checked
from etips.cohorts.engines.layouts import CODE, INT, NUMBER, TEXT, TIME, Layout, TypedTables, joined
from etips.cohorts.mimic.extraction import MimicExtraction, named_antibiotic
from etips.cohorts.mimic.items import (
    DEVICE_TEXTS,
    DEVICE_TEXTS_CLEAN,
    UNTESTABLE_VERBAL,
    Items,
    MimicReading,
    all_on,
    concepts,
    select_items,
    switches_of,
)
from etips.cohorts.mimic.mimic3_published import PUBLISHED
from etips.cohorts.sepsis3 import rules
from etips.errors import DataError


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

_TABLES: Final[TypedTables] = {
    "patients": {"subject_id": INT, "gender": TEXT, "dob": TIME, "dod": TIME},
    "admissions": {"subject_id": INT, "hadm_id": INT, "dischtime": TIME},
    "icustays": {
        "subject_id": INT, "hadm_id": INT, "icustay_id": INT, "intime": TIME, "outtime": TIME,
    },
    "chartevents": {
        "icustay_id": INT, "charttime": TIME, "itemid": INT, "value": TEXT, "valuenum": NUMBER,
    },
    "labevents": {"hadm_id": INT, "charttime": TIME, "itemid": INT, "valuenum": NUMBER},
    "microbiologyevents": {
        "subject_id": INT, "hadm_id": INT, "charttime": TIME, "chartdate": TIME,
    },
    "prescriptions": {
        "row_id": INT, "hadm_id": INT, "icustay_id": INT, "startdate": TIME, "gsn": CODE,
    },
    "inputevents_mv": {
        "icustay_id": INT, "starttime": TIME, "endtime": TIME, "itemid": INT, "amount": NUMBER,
        "rate": NUMBER, "rateuom": TEXT, "statusdescription": TEXT,
    },
    "inputevents_cv": {
        "icustay_id": INT, "charttime": TIME, "itemid": INT, "amount": NUMBER, "rate": NUMBER,
        "rateuom": TEXT,
    },
    "outputevents": {"icustay_id": INT, "charttime": TIME, "itemid": INT, "value": NUMBER},
}  # fmt: skip
# Looked at by the units audit; a source without them is welcome.
_UNITS: Final[TypedTables] = {
    **{table: {"valueuom": TEXT} for table in ("chartevents", "labevents", "outputevents")},
    **{table: {"amountuom": TEXT} for table in ("inputevents_mv", "inputevents_cv")},
}
_OWN_TABLES: Final = ("inputevents_mv", "inputevents_cv", "procedureevents_mv")


def needed(reading: Reading) -> dict[str, dict[str, str]]:
    """Tables and typed columns that a profile reads."""
    parts = [_TABLES]
    if reading.drop_charted_errors:
        parts.append({"chartevents": {"error": INT}})
    if reading.arterial_gases_only:
        parts.append({"labevents": {"value": TEXT}})
    if reading.antibiotics_by_name:
        parts.append({"prescriptions": {"drug": TEXT, "route": TEXT, "drug_type": TEXT}})
    if reading.reads_procedures:
        done = {"icustay_id": INT, "starttime": TIME, "endtime": TIME, "itemid": INT}
        parts.append({"procedureevents_mv": done})
    return joined(*parts)


def readable(reading: Reading) -> dict[str, dict[str, str]]:
    """What is needed, and the columns that are read if they are there."""
    return joined(needed(reading), _UNITS)


LAYOUT: Final = Layout(
    label="MIMIC-III",
    tables=readable(CLEAN.reading),
    signs=frozenset({"inputevents"}),  # by which MIMIC-IV is told
    schemas=(("mimiciii",),),
)


def is_mimic3(tables: Mapping[str, frozenset[str]]) -> bool:
    """Whether there is a table or a column that only MIMIC-III has."""
    return (
        "icustay_id" in tables.get("icustays", ())
        or "dob" in tables.get("patients", ())
        or not tables.keys().isdisjoint(_OWN_TABLES)
    )


def open_tables(source: RawSource, reading: Reading) -> dict[str, ibis.Table]:
    """Check that the source holds what is needed and return its tables."""
    there = source.tables()
    if (  # told by its own names (section 21.1) rather than by a list of missing columns
        "stay_id" in there.get("icustays", ())
        or "anchor_age" in there.get("patients", ())
        or ("inputevents" in there and "inputevents_mv" not in there)
    ):
        raise DataError(source.name, "looks like MIMIC-IV", fix="Give MIMIC-III v1.4 here.")
    return open_checked(
        source, needed(reading), _UNITS, label="MIMIC-III", version="MIMIC-III v1.4"
    )


# Section 4.2 and the unit notes of `mechvent`: items whose text decides.
_EXTUBATION_ITEM: Final = 640
_EXTUBATION_TEXTS: Final = ("Extubated", "Self Extubation")
_VENTILATED_IF: Final = {467: "Ventilator"}
_VENTILATED_UNLESS: Final = {720: "Other/Remarks", 223849: "Standby"}


def items_of(reading: Reading) -> Items:
    """The item lists of a profile."""
    return select_items(concepts("mimic3"), reading)


class Mimic3Extraction(MimicExtraction[Reading]):
    """An `Extraction` of MIMIC-III."""

    database = "mimic3"
    label = LAYOUT.label
    stay_column = "icustay_id"
    table_of: Mapping[str, str] = {
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

    def __init__(self, source: RawSource, profile: Profile[Reading] = PAPER) -> None:
        super().__init__(source, profile, items_of(profile.reading))
        self.drop_rewritten_fluids = profile.reading.drop_rewritten_fluids

    def open_tables(self) -> dict[str, ibis.Table]:
        """Check the source and return its tables."""
        return open_tables(self.source, self.reading)

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
        return in_seconds(self.source.fetch(query)).sort("entry", "admission", "stay", "t")

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
        """What was given, as both charting systems tell it."""
        mv, cv = (self.tables[f"inputevents_{system}"] for system in ("mv", "cv"))
        return {
            "infusions_mv": self.infusion_query(
                mv, stays, start=mv.starttime, end=mv.endtime,
                statusdescription=mv.statusdescription,
            ),
            "infusions_cv": self.infusion_query(cv, stays, t=cv.charttime),
        }  # fmt: skip


MIMIC3: Final = Database(
    name="mimic3",
    label=LAYOUT.label,
    layout=LAYOUT,
    recognises=is_mimic3,
    profiles=tuple(PROFILES),
    extract=lambda source, profile, changes: Mimic3Extraction(
        source, PROFILES[profile].changed(**changes)
    ),
    published=PUBLISHED,
)
