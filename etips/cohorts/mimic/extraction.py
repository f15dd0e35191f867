"""A MIMIC opened under one profile, its queries written once in Ibis for every engine.

Filters and joins run where the data is; what comes back is reduced to the items and stays needed
(docs/cohort/rules.md section 4.2).
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import ClassVar, Final, Self

import ibis  # type: ignore[import-untyped, unused-ignore]
import ibis.expr.types as ir  # type: ignore[import-untyped, unused-ignore]
import polars as pl

from etips.cohorts.engines.layouts import Layout
from etips.cohorts.engines.sources import Source
from etips.cohorts.mimic.bedside import read_events, read_frames
from etips.cohorts.mimic.items import (
    FIRST_METAVISION_ITEM,
    KG_PER_POUND,
    POUND_WEIGHT_ITEM,
    PREADMISSION_URINE_ITEMS,
    MimicReading,
    read_list,
    select_items,
    tables_of,
)
from etips.cohorts.mimic.unit_audit import audit
from etips.cohorts.sepsis3.events import Events, ItemUnits, OwnDefinition, Unread
from etips.cohorts.sepsis3.rules import Rules
from etips.errors import DataError

# Antibiotics by drug name, without local forms and false friends (section 21.2).
ANTIBIOTIC_NAMES: Final = (
    r"cef|ceph|cillin|bactam|penem|floxacin|mycin|cycline|aztreonam|metronidazole|linezolid"
    r"|sulfameth|trimethoprim|nitrofurantoin|rifampin|micin|amikacin|tobramycin|colistin"
    r"|chloramphenicol"
)
FALSE_NAMES: Final = (
    r"cream|ophth|gel|desensitization|penicillamine|irrigat|mitomycin|bleomycin|dactinomycin"
    r"|plicamycin"
)
LOCAL_ROUTES: Final = ("OU", "OS", "OD", "AU", "AS", "AD", "TP")
_ARTERIAL: Final = "ART"
_BLANKED: Final = "___"  # what the publisher puts in place of a text that was removed
_KEPT_AS: Final = {"charted": "chart", "laboratory": "labs", "urine": "urine"}
# Tables and columns by which a database is known from the others.
_SIGNS: Final = {
    "MIMIC-III": ("icustays.icustay_id", "patients.dob", "inputevents_mv", "inputevents_cv",
                  "procedureevents_mv"),
    "MIMIC-IV": ("icustays.stay_id", "patients.anchor_age", "inputevents", "procedureevents"),
}  # fmt: skip


@dataclass(frozen=True)
class Profile:
    """A named set of settings: of the rules, and of how the database is read.

    No name of a setting is in both.
    """

    name: str
    rules: Rules
    reading: MimicReading

    def changed(self, **settings: object) -> Self:
        """The same with single settings changed, whichever part they belong to."""
        own = {f.name for f in fields(self.reading)}
        reading = {name: value for name, value in settings.items() if name in own}
        rules = {name: value for name, value in settings.items() if name not in own}
        return replace(
            self,
            rules=replace(self.rules, **rules),  # type: ignore[arg-type]
            reading=replace(self.reading, **reading),  # type: ignore[arg-type]
        )

    def settings(self) -> dict[str, object]:
        """Every setting by name."""
        return {"name": self.name, **asdict(self.rules), **asdict(self.reading)}


class Extraction(ABC):
    """A database that the cohort can be built from, opened under a profile.

    The class says what a version of MIMIC has of its own; what all have in common is written here.

    Args:
        source: Where the raw tables are; it is not closed.
        profile: Settings of the rules and of the reading; the first if left out.

    Attributes:
        name: As files call the database.
        label: For readers.
        release: Whose columns it has.
        profiles: The one to take if none is asked for first.
        definitions: Names of Sepsis-3 definitions that `onset` may be besides the rules' own.
        layout: Where its tables are and what columns they have.
        stay_column: What it calls the id of a stay; onsets are written under that name.
        table_of: Raw table of each kind of rows that are kept.
        born: Columns of the patient that say the age.
        lab_owner: Column of a laboratory result that says whose it is.
        specimen_item: Laboratory item whose text says where a blood gas was taken.
        tables: Raw tables by name, their column with the stay called `stay`.
        settings: Every setting by name, those of the rules and those of the database.
        kept: Where large results lie.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    release: ClassVar[str]
    profiles: ClassVar[Mapping[str, Profile]]
    definitions: ClassVar[tuple[str, ...]] = ()
    layout: ClassVar[Layout]
    stay_column: ClassVar[str]
    table_of: ClassVar[Mapping[str, str]]
    born: ClassVar[tuple[str, ...]]
    lab_owner: ClassVar[str]
    specimen_item: ClassVar[int]
    reading: MimicReading

    def __init__(self, source: Source, profile: Profile | None = None) -> None:
        profile = profile or next(iter(self.profiles.values()))
        self.source, self.kept = source, source.kept
        self.rules, self.reading, self.profile = profile.rules, profile.reading, profile.name
        self.items = select_items(read_list(self.name), profile.reading)
        self.settings = profile.settings()
        self.tables: dict[str, ibis.Table] = {}
        self._n_samples = 0

    # ---- what a version has of its own ---------------------------------------------------------

    @abstractmethod
    def age(self) -> pl.Expr:
        """Age in days from icu_in and the columns `born`."""

    @abstractmethod
    def antibiotics(self) -> pl.DataFrame:
        """Antibiotics given: entry (order of equal ones), admission, stay or null, t."""

    @abstractmethod
    def charted(self, rows: ibis.Table) -> tuple[ir.BooleanValue, dict[str, ir.Value]]:
        """Which charted rows count at all, and what their texts say.

        untestable, device (code), has_text, ventilated, extubated of each row.
        """

    @abstractmethod
    def given(self, stays: ibis.Table) -> dict[str, ibis.Table]:
        """Queries for what was given to some stays, by the name that they are kept under."""

    def counted(self, name: str) -> Mapping[int, str]:
        """Items that are not read, but whose rows are kept and counted; what each is."""
        del name
        return {}

    def own_definition(self) -> OwnDefinition | None:
        """Onsets and Sepsis-3 by another definition than the rules', if the settings ask for one.

        Asked for once the rows are kept.
        """
        return None

    # ---- what all have in common ---------------------------------------------------------------

    @classmethod
    def extract(cls, source: Source, profile: str, changes: Mapping[str, object]) -> Self:
        """Open a source under a profile, some of its settings changed (`Profile.changed`)."""
        return cls(source, cls.profiles[profile].changed(**changes))

    @classmethod
    def recognises(cls, tables: Mapping[str, frozenset[str]]) -> bool:
        """Whether tables, with their columns, are its own."""
        return _looks_like(cls.label, tables)

    @classmethod
    def open_tables(cls, source: Source, reading: MimicReading) -> dict[str, ibis.Table]:
        """Check that a source holds what a reading needs and return its tables."""
        there = source.tables()
        for other in _SIGNS:  # named, rather than refused by a list of missing columns
            if _looks_like(other, there) and not cls.recognises(there):
                raise DataError(source.name, f"looks like {other}", fix=f"Give {cls.release} here.")
        return source.open_tables(
            tables_of(cls.name, reading),
            tables_of(cls.name, reading, optional=True),
            label=cls.label,
            release=cls.release,
        )

    def begin(self) -> None:
        """Check the tables, and take up what an earlier process stored under the same settings."""
        self.source.begin(json.dumps(self.settings))
        own = self.stay_column
        self.tables = {
            name: table.rename(stay=own) if own in table.columns else table
            for name, table in self.open_tables(self.source, self.reading).items()
        }

    def stays(self) -> pl.DataFrame:
        """Every ICU stay, once.

        stay, patient, admission, gender (M or F), age in days, icu_in, icu_out, discharge, death.
        """
        icu, adm, pat = (self.tables[name] for name in ("icustays", "admissions", "patients"))
        for owner, key in (("admissions", "hadm_id"), ("patients", "subject_id")):
            self.source.require_owners(
                icu, self.tables[owner], key=key, table="icustays", owner=owner
            )
        joined = icu.join(adm.select("hadm_id", "dischtime"), "hadm_id").join(pat, "subject_id")
        query = joined.select(
            "gender", "stay", *self.born, patient="subject_id", admission="hadm_id",
            icu_in="intime", icu_out="outtime", discharge="dischtime", death="dod",
        )  # fmt: skip
        stays = self.source.fetch(query).unique().sort("stay")
        if stays["stay"].n_unique() != stays.height:
            rule = f"{self.stay_column}, hadm_id and subject_id must each name one row"
            raise DataError("icustays, admissions, patients", rule, fix="Remove the repeated rows.")
        return stays.with_columns(age=self.age())

    def samples(self) -> pl.DataFrame:
        """Every specimen: patient, admission, t; the date stands in for a missing time."""
        rows = self.tables["microbiologyevents"]
        time = rows.charttime.coalesce(rows.chartdate)
        query = rows.filter(time.notnull())
        query = query.select(patient=rows.subject_id, admission=rows.hadm_id, t=time).distinct()
        samples = self.source.fetch(query)
        self._n_samples = samples.height
        return samples

    def keep(self, stays: list[int]) -> None:
        """Store the rows of these stays, and the cultures of all, reading each table once."""
        wanted = ibis.memtable(pl.DataFrame({"stay": pl.Series(stays, dtype=pl.Int64)}))
        queries = {
            "chart": self._chart_query(wanted),
            "labs": self._lab_query(wanted),
            **self.given(wanted),
            "urine": self._urine_query(wanted),
        }
        if self.reading.reads_procedures:
            queries["procedures"] = self._procedures_query()
        for name, query in queries.items():
            self.source.store(query, name, by="stay")

    def _chart_query(self, stays: ibis.Table) -> ibis.Table:
        """Charted rows of the needed items: vitals, chart labs, ventilation and cultures."""
        rows, items = self.tables[self.table_of["chart"]], self.items
        counts, text = self.charted(rows)
        some = rows.value.notnull() | rows.valuenum.notnull()
        cultured = rows.itemid.isin(sorted(items.chart_cultures))  # whatever its value, even none
        kept = (
            rows.itemid.isin(sorted({*items.charted, *self.counted("chart")}))
            & rows.stay.notnull()
            & rows.charttime.notnull()
            & (cultured | (some & rows.stay.isin(stays.stay)))
            & counts
        )
        in_pounds = rows.itemid == POUND_WEIGHT_ITEM
        number = ibis.cases(
            (in_pounds, rows.valuenum * KG_PER_POUND),
            (text["untestable"], ibis.null("float64")),
            else_=rows.valuenum,
        )
        return rows.filter(kept).select(
            "stay",
            itemid=rows.itemid.cast("int32"),
            t=rows.charttime,
            number=number,
            device=text["device"].cast("float64"),
            has_text=text["has_text"],
            ventilated=text["ventilated"],
            extubated=text["extubated"],
            unit=rows.valueuom,
            measured=rows.valuenum.notnull(),
        )

    def items_of(self, feature: str) -> list[int]:
        """Charted items that are read as a feature."""
        return sorted(item for item, name in self.items.vitals.items() if name == feature)

    def _lab_query(self, stays: ibis.Table) -> ibis.Table:
        """Laboratory results from a day before to a day after each stay of their owner."""
        labs, icu = self.tables[self.table_of["labs"]], self.tables["icustays"]
        day = ibis.interval(hours=24)
        near = icu.filter(icu.stay.isin(stays.stay)).select(
            "stay", owner=icu[self.lab_owner], own_admission=icu.hadm_id,
            opens=icu.intime - day, closes=icu.outtime + day,
        )  # fmt: skip
        wanted = sorted({*self.items.labs, *self.counted("labs")})
        counts = labs.itemid.isin(wanted) & labs.valuenum.notnull()
        specimen, arterial = ibis.null("int64"), ibis.null("boolean")
        if self.reading.arterial_gases_only:
            tells = labs.itemid == self.specimen_item
            counts |= tells & labs.value.notnull() & ~_plain(labs.value).isin(("", _BLANKED))
            arterial = ibis.cases((tells, is_arterial(labs.value)), else_=None)
            if "specimen_id" in labs.columns:
                specimen = labs.specimen_id
        rows = labs.mutate(specimen=specimen, arterial=arterial, owner=labs[self.lab_owner])
        joined = rows.filter(counts & labs.charttime.notnull()).join(near, "owner")
        within = joined.filter(
            joined.charttime.between(joined.opens, joined.closes) & self.same_admission(joined)
        )
        return within.select(
            "stay",
            "specimen",
            "arterial",
            itemid=within.itemid.cast("int32"),
            t=within.charttime,
            number=within.valuenum,
            unit=within.valueuom,
            measured=within.valuenum.notnull(),
        )

    def same_admission(self, results: ibis.Table) -> ir.BooleanValue:
        """Whether a result is of the admission of a stay, own_admission, beside it."""
        return results.hadm_id == results.own_admission

    def infusion_query(
        self, rows: ibis.Table, stays: ibis.Table, drugs: Iterable[int] = (), **columns: ir.Value
    ) -> ibis.Table:
        """Rows of what was given to some stays.

        Of a drug the unit of its rate matters, of a fluid that of its amount.

        Args:
            rows: A table of what was given.
            stays: Which stays.
            drugs: Items that are drugs, beside the vasopressors.
            columns: Further columns, and those that are not read as they stand.
        """
        wanted = sorted({*self.items.infused, *self.counted("infusions_mv")})
        kept = rows.itemid.isin(wanted) & rows.stay.isin(stays.stay)
        is_drug = rows.itemid.isin(sorted({*self.items.vasopressors, *drugs}))
        read = {"amount": rows.amount, "rate": rows.rate, "rateuom": rows.rateuom, **columns}
        return rows.filter(kept).select(
            "stay",
            itemid=rows.itemid.cast("int32"),
            unit=is_drug.ifelse(rows.rateuom, read.pop("amountuom", rows.amountuom)),
            measured=is_drug.ifelse(rows.rate.notnull(), rows.amount.notnull()),
            **read,
        )

    def _urine_query(self, stays: ibis.Table) -> ibis.Table:
        """Urine, that of before admission included."""
        rows = self.tables[self.table_of["urine"]]
        kept = (
            rows.itemid.isin(sorted({*self.items.urine, *PREADMISSION_URINE_ITEMS}))
            & rows.stay.isin(stays.stay)
            & rows.value.notnull()
            & rows.charttime.notnull()
        )
        return rows.filter(kept).select(
            "stay",
            itemid=rows.itemid.cast("int32"),
            t=rows.charttime,
            amount=rows.value,
            unit=rows.valueuom,
            measured=True,
        )

    def _procedures_query(self) -> ibis.Table:
        """Cultures and ventilation among the procedures of all stays."""
        rows, items = self.tables[self.table_of["procedures"]], self.items
        wanted = sorted({*items.procedure_cultures, *items.procedure_ventilation})
        kept = rows.itemid.isin(wanted) & rows.stay.notnull() & rows.starttime.notnull()
        return rows.filter(kept).select(
            "stay", itemid=rows.itemid.cast("int32"), start=rows.starttime, end=rows.endtime
        )

    def cultures(self) -> pl.DataFrame:
        """Cultures of all stays: stay, t. The value of a line tip counts in the clean profile."""
        charted = self.kept.rows("chart", among=("itemid", self.items.chart_cultures))
        if self.reading.cultures_from_procedures:
            is_tip = pl.col("itemid") >= FIRST_METAVISION_ITEM
            charted = charted.filter(~is_tip | (pl.col("number") == 1))
        taken = charted.select("stay", "t")
        if not self.items.procedure_cultures:
            return taken
        done = self.kept.rows("procedures", among=("itemid", self.items.procedure_cultures))
        return pl.concat([taken, done.select("stay", t="start")])

    def events(self, first: int, last: int) -> Events:
        """Events of the kept stays first..last."""
        read = self.reading.reads_procedures
        tables = {name: t for name, t in self.table_of.items() if read or name != "procedures"}
        frames = read_frames(self.kept, first, last, tables)
        drop_rewritten = self.settings.get("drop_rewritten_fluids") is True
        return read_events(frames, self.items, self.rules, drop_rewritten=drop_rewritten)

    def require_rows(self, *kinds: str) -> None:
        """Refuse a source without a usable row of a kind: samples, charted, laboratory, urine.

        What was given may be missing: of two charting systems a hospital may have used one only.
        """
        for kind in kinds:
            table, n_rows = "microbiologyevents", self._n_samples
            if kind != "samples":
                name = _KEPT_AS[kind]
                table, n_rows = self.table_of[name], self.kept.height(name)
            if not n_rows:
                rule = "must hold rows that can be used; none was found"
                raise DataError(table, rule, fix="Check that it is whole and its ids fit.")

    def audit(self) -> tuple[ItemUnits, ...]:
        """What the kept rows say about their units."""
        inputs = {t: name for name, t in self.table_of.items() if name.startswith("infusions")}
        return audit(self.kept, self.items, inputs)

    def unread(self) -> tuple[Unread, ...]:
        """Rows that were kept and not read."""
        return tuple(
            Unread(table, item, known[item], n)
            for name, table in self.table_of.items()
            if (known := self.counted(name))
            for item, n in self.kept.counts(name, "itemid").sort("itemid").iter_rows()
            if item in known
        )


def _looks_like(label: str, tables: Mapping[str, frozenset[str]]) -> bool:
    """Whether there is a table or a column that only one database has."""
    named = (sign.split(".") for sign in _SIGNS[label])
    return any(table in tables and tables[table].issuperset(column) for table, *column in named)


def named_antibiotic(rows: ibis.Table) -> ir.BooleanValue:
    """Whether a prescription is an antibiotic by its drug name, route and type."""
    name = rows.drug.lower()
    route = rows.route.fill_null("")
    local = route.upper().isin(LOCAL_ROUTES) | route.lower().re_search("eye|ear")
    base = rows.drug_type.fill_null("").upper() == "BASE"
    return name.re_search(ANTIBIOTIC_NAMES) & ~name.re_search(FALSE_NAMES) & ~local & ~base


def is_arterial(text: ir.StringValue) -> ir.BooleanValue:
    """Whether a specimen is arterial: ART, ART. with a dot, whatever the case and the blanks."""
    return _plain(text) == _ARTERIAL


def _plain(text: ir.StringValue) -> ir.StringValue:
    return text.upper().replace(".", "").strip()
