"""MIMIC-IV v2.2 and v3.1: its tables and columns, its switches, its items, and how its rows read.

The rules: docs/cohort/mimic4.md; numbers are those of the oddities in docs/cohort/rules.md. No row
has a number of its own, so that every order comes from values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import ibis  # type: ignore[import-untyped, unused-ignore]
import ibis.expr.types as ir  # type: ignore[import-untyped, unused-ignore]
import polars as pl

from etips.cohorts.database import Database, Profile
from etips.cohorts.engines.address import RawSource
from etips.cohorts.engines.checked_tables import in_seconds, open_checked
from etips.cohorts.engines.layouts import CODE, INT, NUMBER, TEXT, TIME, Layout, TypedTables, joined
from etips.cohorts.mimic import mimic_code
from etips.cohorts.mimic.extraction import MimicExtraction, named_antibiotic
from etips.cohorts.mimic.hourly_rows import SPECIMEN_ITEM, in_micrograms, store_hourly
from etips.cohorts.mimic.items import (
    DEVICE_TEXTS_CLEAN,
    UNTESTABLE_VERBAL,
    Items,
    MimicReading,
    all_on,
    concepts,
    select_items,
    switches_of,
)
from etips.cohorts.sepsis3 import rules
from etips.cohorts.sepsis3.events import DRUGS, OwnDefinition
from etips.cohorts.sepsis3.rules import AntibioticOrder
from etips.errors import DataError, SettingError
from etips.notes import note


class Onset(StrEnum):
    """Who says when an infection is suspected and who has Sepsis-3."""

    RULES = "rules"
    MIMIC_CODE = "mimic-code"  # the concepts that other papers on MIMIC-IV use


@dataclass(frozen=True)
class Reading(MimicReading):
    """Which rows of MIMIC-IV count.

    Oddities 6, 7 and 29 do not occur here: no row says Rewritten, there is one charting system, and
    none is marked as an error.

    Attributes:
        laboratory_by_subject: A result without an admission belongs to the stays of its patient;
            off, it belongs to none. On in both profiles.
        onset: The rules of the cohort in both profiles.
    """

    milligram_rates: bool = False
    laboratory_by_subject: bool = True
    onset: Onset = Onset.RULES


SWITCHES: Final = switches_of(Reading)
WITHOUT_EFFECT: Final = (
    "drop_rewritten_fluids", "complete_fluid_items", "drop_charted_errors", "rate_hold_hours",
)  # fmt: skip
"""Settings of MIMIC-III that have nothing to correct here (oddities 6, 7, 29 and one of 25)."""
# No prescription carries a stay, so that by date is the only order there is.
_PAPER_RULES: Final = replace(
    rules.PAPER, antibiotic_order=AntibioticOrder.DATE, strongest_device=True
)
PAPER: Final = Profile("paper", _PAPER_RULES, Reading())
CLEAN: Final = Profile("clean", rules.CLEAN, all_on(Reading()))
WIDEST: Final = replace(CLEAN.reading, onset=Onset.MIMIC_CODE)
"""A reading that looks at every table and column that any other does."""
PROFILES: Final = {profile.name: profile for profile in (CLEAN, PAPER)}

FOLDER_OF: Final = {
    **dict.fromkeys(
        ("patients", "admissions", "labevents", "microbiologyevents", "prescriptions"), "hosp"
    ),
    **dict.fromkeys(
        ("icustays", "chartevents", "inputevents", "outputevents", "procedureevents", "d_items"),
        "icu",
    ),
}
"""In which folder PhysioNet ships each table."""
_TABLES: Final[TypedTables] = {
    "patients": {
        "subject_id": INT, "gender": TEXT, "anchor_age": INT, "anchor_year": INT, "dod": TIME,
    },
    "admissions": {"subject_id": INT, "hadm_id": INT, "dischtime": TIME},
    "icustays": {
        "subject_id": INT, "hadm_id": INT, "stay_id": INT, "intime": TIME, "outtime": TIME,
    },
    "chartevents": {
        "stay_id": INT, "charttime": TIME, "itemid": INT, "value": TEXT, "valuenum": NUMBER,
    },
    "labevents": {
        "subject_id": INT, "hadm_id": INT, "charttime": TIME, "itemid": INT, "valuenum": NUMBER,
    },
    "microbiologyevents": {
        "subject_id": INT, "hadm_id": INT, "charttime": TIME, "chartdate": TIME,
    },
    "prescriptions": {
        "hadm_id": INT, "pharmacy_id": INT, "starttime": TIME, "stoptime": TIME, "drug": TEXT,
        "gsn": CODE,
    },
    "inputevents": {
        "stay_id": INT, "starttime": TIME, "endtime": TIME, "itemid": INT, "amount": NUMBER,
        "amountuom": TEXT, "rate": NUMBER, "rateuom": TEXT, "statusdescription": TEXT,
    },
    "outputevents": {"stay_id": INT, "charttime": TIME, "itemid": INT, "value": NUMBER},
}  # fmt: skip
# Looked at by the audit; a source without them is welcome.
_OPTIONAL: Final[TypedTables] = {
    "chartevents": {"valueuom": TEXT},
    "labevents": {"valueuom": TEXT},
    "outputevents": {"valueuom": TEXT},
    "d_items": {"itemid": INT, "label": TEXT, "linksto": TEXT},
}
# What the definition of mimic-code looks at besides.
_MIMIC_CODE: Final[TypedTables] = {
    "labevents": {"specimen_id": INT, "value": TEXT},
    "microbiologyevents": {"micro_specimen_id": INT},
    "prescriptions": {"subject_id": INT, "route": TEXT, "drug_type": TEXT},
    "inputevents": {"patientweight": NUMBER},
}
_OWN_TABLES: Final = ("inputevents", "procedureevents")


def needed(reading: Reading) -> dict[str, dict[str, str]]:
    """Tables and typed columns that a profile reads."""
    parts = [_TABLES]
    if reading.arterial_gases_only:
        parts.append({"labevents": {"specimen_id": INT, "value": TEXT}})
    if reading.antibiotics_by_name:
        parts.append({"prescriptions": {"route": TEXT, "drug_type": TEXT}})
    if reading.milligram_rates:
        parts.append({"inputevents": {"patientweight": NUMBER}})
    if reading.onset == Onset.MIMIC_CODE:
        parts.append(_MIMIC_CODE)
    if reading.reads_procedures:
        done = {"stay_id": INT, "starttime": TIME, "endtime": TIME, "itemid": INT}
        parts.append({"procedureevents": done})
    return joined(*parts)


def readable(reading: Reading) -> dict[str, dict[str, str]]:
    """What is needed, and the tables and columns that are read if they are there."""
    return joined(needed(reading), _OPTIONAL)


LAYOUT: Final = Layout(
    label="MIMIC-IV",
    tables=readable(WIDEST),
    folders=("", "hosp", "icu", "core"),
    schemas=(("mimiciv_hosp", "mimiciv_icu"),),
)


def is_mimic4(tables: Mapping[str, frozenset[str]]) -> bool:
    """Whether there is a table or a column that only MIMIC-IV has."""
    return (
        "stay_id" in tables.get("icustays", ())
        or "anchor_age" in tables.get("patients", ())
        or not tables.keys().isdisjoint(_OWN_TABLES)
    )


def open_tables(source: RawSource, reading: Reading) -> dict[str, ibis.Table]:
    """Check that the source holds what is needed and return its tables."""
    there = source.tables()  # MIMIC-III is told by its own names, not by a list of missing columns
    if "icustay_id" in there.get("icustays", ()) or "inputevents_mv" in there:
        fix = "Give MIMIC-IV v2.2 or v3.1 here."
        raise DataError(source.name, "looks like MIMIC-III", fix=fix)
    return open_checked(
        source, needed(reading), _OPTIONAL, label="MIMIC-IV", version="MIMIC-IV v2.2 or v3.1"
    )


# Mode of a ventilator: these texts, in small letters, say that nobody is ventilated through a tube.
NOT_VENTILATED: Final = {
    223849: ("standby",),
    229314: ("standby", "ambient", "niv", "niv-st", "duopap", "ncpap-ps"),
}
# Second numbers of tests that are read under another; counted, so that a user sees if they matter.
SECOND_LAB_ITEMS: Final = (
    52623, 52610, 52535, 52569, 52546, 52647, 52024, 52027, 52434, 52452, 52455, 53084, 53085,
    53088, 53089, 53154, 52442, 51704, 51755, 51756, 51640, 51638, 51639, 52028, 51675, 52921,
    52923, 51624,
)  # fmt: skip
# Drugs for the circulation that are no part of the dose.
OTHER_PRESSORS: Final = {
    229709: "angiotensin II", 229764: "angiotensin II", 221653: "dobutamine",
    221986: "milrinone",
}  # fmt: skip
OTHER_CHARTED: Final = {229789: "phenylephrine, charted"}
_DEVICES: Final = {text: code for text, code in DEVICE_TEXTS_CLEAN.items() if text}
_OLDEST: Final = 91  # years; what ages above 89 are stored as
# Of several prescriptions that begin together, which one goes first.
_ORDER: Final = ("t", "stop", "pharmacy_id", "drug", "gsn", "admission")


def items_of(reading: Reading) -> Items:
    """The item lists of a profile."""
    return select_items(concepts("mimic4"), reading)


class Mimic4Extraction(MimicExtraction[Reading]):
    """An `Extraction` of MIMIC-IV."""

    database = "mimic4"
    label = LAYOUT.label
    stay_column = "stay_id"
    table_of: Mapping[str, str] = {
        "labs": "labevents",
        "infusions_mv": "inputevents",
        "chart": "chartevents",
        "urine": "outputevents",
        "procedures": "procedureevents",
    }
    born = ("anchor_age", "anchor_year")
    lab_owner = "subject_id"
    specimen_item = SPECIMEN_ITEM

    def __init__(self, source: RawSource, profile: Profile[Reading] = CLEAN) -> None:
        if profile.rules.antibiotic_order is not AntibioticOrder.DATE:
            rule = "must be date for MIMIC-IV, where no prescription names a stay"
            raise SettingError("antibiotic_order", rule)
        self._by_mimic_code = profile.reading.onset == Onset.MIMIC_CODE
        if self._by_mimic_code:  # which says itself whose SOFA is high enough
            profile = profile.changed(least_sofa=0)
        super().__init__(source, profile, items_of(profile.reading))
        self.settings["without_effect"] = list(WITHOUT_EFFECT)
        self._orders = pl.DataFrame()
        self._named: dict[int, str] = {}

    def open_tables(self) -> dict[str, ibis.Table]:
        """Check the source and return its tables."""
        return open_tables(self.source, self.reading)

    def begin(self) -> None:
        """Look besides for items of what was given that are named like a vasopressor."""
        super().begin()
        if "d_items" not in self.tables:
            return
        rows = self.tables["d_items"]
        named = rows.label.lower().re_search("|".join(DRUGS)) & (rows.linksto == "inputevents")
        known = sorted({*self.items.infused, *OTHER_PRESSORS})
        query = rows.filter(named & ~rows.itemid.isin(known)).select("itemid").distinct()
        unknown = self.source.fetch(query)["itemid"].sort().to_list()
        self._named = dict.fromkeys(unknown, "named like a vasopressor")
        if unknown:
            note(f"not read, though named like a vasopressor: items {unknown}")

    def age(self) -> pl.Expr:
        """Age in days, of whole years; the oldest are hidden."""
        year = pl.from_epoch("icu_in", time_unit="s").dt.year().cast(pl.Int64)
        years = pl.col("anchor_age") + year - pl.col("anchor_year")
        return years.clip(upper_bound=_OLDEST) * 365.25

    def antibiotics(self) -> pl.DataFrame:
        """Antibiotic prescriptions; stay is null unless mimic-code chooses them."""
        if self._by_mimic_code:
            self._orders = mimic_code.read_orders(self.source, self.tables)
            return self._orders.select("admission", "stay", "t").with_row_index("entry")
        rows = self.tables["prescriptions"]
        codes = "|".join(sorted(self.items.antibiotics))  # a row may have several
        chosen = rows.gsn.fill_null("").re_search(f"(^|[^0-9])({codes})([^0-9]|$)")
        if self.reading.antibiotics_by_name:
            chosen = named_antibiotic(rows)
        query = rows.filter(chosen & rows.starttime.notnull()).select(
            "pharmacy_id", "drug", "gsn",
            admission=rows.hadm_id, t=rows.starttime, stop=rows.stoptime,
        )  # fmt: skip
        given = in_seconds(self.source.fetch(query)).sort(_ORDER, nulls_last=True)
        return given.select(
            pl.int_range(pl.len(), dtype=pl.Int64).alias("entry"),
            "admission",
            pl.lit(None, pl.Int64).alias("stay"),
            "t",
        )

    def counted(self, name: str) -> Mapping[int, str]:
        """Second numbers of laboratory tests, and drugs that are no part of the dose."""
        known: dict[str, Mapping[int, str]] = {
            "labs": dict.fromkeys(SECOND_LAB_ITEMS, "second number of a laboratory test"),
            "infusions_mv": OTHER_PRESSORS | self._named,
            "chart": OTHER_CHARTED,
        }
        return known.get(name, {})

    def charted(self, rows: ibis.Table) -> tuple[ir.BooleanValue, dict[str, ir.Value]]:
        """Every row, and what its text says; some are stored with a blank behind them."""
        item, text = rows.itemid, _plain(rows.value)
        is_device = item.isin(self.items_of("Interface"))
        verbal = text.isin([word.lower() for word in UNTESTABLE_VERBAL]).fill_null(False)
        deciding = [(item == i, ~text.isin(words)) for i, words in NOT_VENTILATED.items()]
        code = text.cases(*_DEVICES.items(), else_=None)
        return ibis.literal(True), {
            "untestable": (item.isin(self.items_of("GCS_verbal")) & verbal) | is_device,
            "device": ibis.cases((is_device, code), else_=None),
            "has_text": (rows.value.strip() != "").fill_null(False),  # loaders differ in empty ones
            "ventilated": ibis.cases(*deciding, else_=True),  # any text, but for a few
            "extubated": ibis.literal(False),  # told by procedures
        }

    def same_admission(self, results: ibis.Table) -> ir.BooleanValue:
        """A result that names no admission counts if the reading says so."""
        same = super().same_admission(results)
        return same.fill_null(self.reading.laboratory_by_subject)

    def given(self, stays: ibis.Table) -> dict[str, ibis.Table]:
        """What was given, litres as millilitres."""
        rows = self.tables["inputevents"]
        is_drug = rows.itemid.isin(sorted({*self.items.vasopressors, *OTHER_PRESSORS}))
        litres = (~is_drug & (_plain(rows.amountuom) == "l")).fill_null(False)
        rate, unit = rows.rate, rows.rateuom
        if self.reading.milligram_rates:
            rate, unit = in_micrograms(rows)
        query = self.infusion_query(
            rows,
            stays,
            OTHER_PRESSORS,
            start=rows.starttime,
            end=rows.endtime,
            statusdescription=rows.statusdescription,
            amount=litres.ifelse(rows.amount * 1000, rows.amount),
            amountuom=litres.ifelse("ml", rows.amountuom),
            rate=rate,
            rateuom=unit,
        )
        return {"infusions_mv": query}

    def keep(self, stays: list[int]) -> None:
        """Store the rows of these stays, and the cultures of all."""
        super().keep(stays)
        if self._by_mimic_code:
            store_hourly(self.source, self.tables, stays)

    def own_definition(self) -> OwnDefinition | None:
        """Onsets and Sepsis-3 by the concepts of mimic-code, if they are asked for."""
        if not self._by_mimic_code:
            return None
        specimens = mimic_code.read_specimens(self.source, self.tables)
        found = mimic_code.suspected(self._orders, specimens)
        return mimic_code.own_definition(found, self.kept, self.rules.stays_per_block)


def _plain(text: ir.StringValue) -> ir.StringValue:
    return text.strip().lower()


MIMIC4: Final = Database(
    name="mimic4",
    label=LAYOUT.label,
    layout=LAYOUT,
    recognises=is_mimic4,
    profiles=tuple(PROFILES),
    extract=lambda source, profile, changes: Mimic4Extraction(
        source, PROFILES[profile].changed(**changes)
    ),
    definitions=(Onset.MIMIC_CODE,),
)
