"""MIMIC-IV v2.2 and v3.1: its switches, and how its rows read.

The rules: docs/cohort/mimic4.md; numbers are those of the oddities in docs/cohort/rules.md. No row
has a number of its own, so that every order comes from values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import ClassVar, Final

import ibis  # type: ignore[import-untyped, unused-ignore]
import ibis.expr.types as ir  # type: ignore[import-untyped, unused-ignore]
import polars as pl

from etips.cohorts.engines.layouts import Layout
from etips.cohorts.engines.sources import Source
from etips.cohorts.mimic import mimic_code
from etips.cohorts.mimic.extraction import Extraction, Profile, named_antibiotic
from etips.cohorts.mimic.hourly_sofa import SPECIMEN_ITEM, in_micrograms, store_hourly
from etips.cohorts.mimic.items import (
    DEVICE_TEXTS_CLEAN,
    UNTESTABLE_VERBAL,
    MimicReading,
    all_on,
    switches_of,
    tables_of,
)
from etips.cohorts.sepsis3 import rules
from etips.cohorts.sepsis3.events import DRUGS, OwnDefinition
from etips.cohorts.sepsis3.rules import AntibioticOrder
from etips.errors import SettingError
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

    @property
    def by_mimic_code(self) -> bool:
        """Whether mimic-code says who has Sepsis-3."""
        return self.onset == Onset.MIMIC_CODE


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
WIDEST: Final = replace(all_on(Reading()), onset=Onset.MIMIC_CODE)
"""A reading that looks at every table and column that any other does."""
PROFILES: Final = {profile.name: profile for profile in (CLEAN, PAPER)}
needed: Final = partial(tables_of, "mimic4")
"""Tables and typed columns that a reading needs."""

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


class Mimic4Extraction(Extraction):
    """MIMIC-IV opened under a profile."""

    name, label, release = "mimic4", "MIMIC-IV", "MIMIC-IV v2.2 or v3.1"
    profiles = PROFILES
    definitions = (Onset.MIMIC_CODE,)
    layout = Layout(
        label,
        tables_of(name),
        folders=("", "hosp", "icu", "core"),
        schemas=(("mimiciv_hosp", "mimiciv_icu"),),
    )
    stay_column = "stay_id"
    table_of: ClassVar = {
        "labs": "labevents",
        "infusions_mv": "inputevents",
        "chart": "chartevents",
        "urine": "outputevents",
        "procedures": "procedureevents",
    }
    born = ("anchor_age", "anchor_year")
    lab_owner = "subject_id"
    specimen_item = SPECIMEN_ITEM
    reading: Reading

    def __init__(self, source: Source, profile: Profile = CLEAN) -> None:
        if profile.rules.antibiotic_order is not AntibioticOrder.DATE:
            rule = "must be date for MIMIC-IV, where no prescription names a stay"
            raise SettingError("antibiotic_order", rule)
        if (
            profile.settings()["onset"] == Onset.MIMIC_CODE
        ):  # which says itself whose SOFA is high enough
            profile = profile.changed(least_sofa=0)
        super().__init__(source, profile)
        self.settings["without_effect"] = list(WITHOUT_EFFECT)
        self._orders = pl.DataFrame()
        self._named: dict[int, str] = {}

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
        if self.reading.by_mimic_code:
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
        given = self.source.fetch(query).sort(_ORDER, nulls_last=True)
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
            "extubated": ibis.literal(False),  # procedures say so
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
        if self.reading.by_mimic_code:
            store_hourly(self.source, self.tables, stays)

    def own_definition(self) -> OwnDefinition | None:
        """Onsets and Sepsis-3 by the concepts of mimic-code, if they are asked for."""
        if not self.reading.by_mimic_code:
            return None
        specimens = mimic_code.read_specimens(self.source, self.tables)
        found = mimic_code.suspected(self._orders, specimens)
        return mimic_code.own_definition(found, self.kept, self.rules.stays_per_block)


def _plain(text: ir.StringValue) -> ir.StringValue:
    return text.strip().lower()
