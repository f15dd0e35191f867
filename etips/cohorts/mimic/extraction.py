"""What every MIMIC is asked for, written once in Ibis for every engine (section 4.2).

Filters and joins run where the data is; what comes back is reduced to the items and stays needed.
Times come back as timestamps and leave this module as whole seconds since 1970.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final, Generic

import ibis  # type: ignore[import-untyped, unused-ignore]
import ibis.expr.types as ir  # type: ignore[import-untyped, unused-ignore]
import polars as pl

from etips.cohorts.database import Profile
from etips.cohorts.engines.address import RawSource
from etips.cohorts.engines.checked_tables import in_seconds, require_owners, require_some
from etips.cohorts.mimic.bedside import read_block, read_events
from etips.cohorts.mimic.items import (
    FIRST_METAVISION_ITEM,
    KG_PER_POUND,
    POUND_WEIGHT_ITEM,
    PREADMISSION_URINE_ITEMS,
    Items,
    R,
)
from etips.cohorts.mimic.unit_audit import audit
from etips.cohorts.sepsis3.events import Events, ItemUnits, OwnDefinition, Unread
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


class MimicExtraction(Generic[R]):
    """An `Extraction`, but for what a version of MIMIC has of its own.

    Args:
        source: Where the raw tables are; it is not closed.
        profile: Settings of the rules and of the reading.
        items: What to look for.

    Attributes:
        table_of: Raw table of each kind of rows that are kept.
        born: Columns of the patient that tell the age.
        lab_owner: Column of a laboratory result that says whose it is.
        specimen_item: Laboratory item whose text says where a blood gas was taken.
        drop_rewritten_fluids: Whether fluids that were written anew do not count (oddity 6).
        tables: Raw tables by name, their column with the stay called `stay`.
    """

    database: str
    label: str
    stay_column: str
    table_of: Mapping[str, str]
    born: tuple[str, ...]
    lab_owner: str
    specimen_item: int
    drop_rewritten_fluids = False

    def __init__(self, source: RawSource, profile: Profile[R], items: Items) -> None:
        self.source, self.kept, self.items = source, source.kept, items
        self.rules, self.reading, self.profile = profile.rules, profile.reading, profile.name
        self.settings = profile.settings()
        self.tables: dict[str, ibis.Table] = {}
        self._n_samples = 0

    # ---- what a version has of its own ---------------------------------------------------------

    def open_tables(self) -> dict[str, ibis.Table]:
        """Check the source and return its tables."""
        raise NotImplementedError

    def age(self) -> pl.Expr:
        """Age in days from icu_in and the columns `born`."""
        raise NotImplementedError

    def antibiotics(self) -> pl.DataFrame:
        """Antibiotics that were prescribed."""
        raise NotImplementedError

    def charted(self, rows: ibis.Table) -> tuple[ir.BooleanValue, dict[str, ir.Value]]:
        """Which charted rows count at all, and what their texts say.

        untestable, device (code), has_text, ventilated, extubated of each row.
        """
        raise NotImplementedError

    def given(self, stays: ibis.Table) -> dict[str, ibis.Table]:
        """Queries for what was given to some stays, by the name that they are kept under."""
        raise NotImplementedError

    def counted(self, name: str) -> Mapping[int, str]:
        """Items that are not read, but whose rows are kept and counted; what each is."""
        del name
        return {}

    # ---- what all have in common ---------------------------------------------------------------

    def begin(self) -> None:
        """Check the tables, and take up what an earlier process stored under the same settings."""
        self.source.begin(json.dumps(self.settings))
        own = self.stay_column
        self.tables = {
            name: table.rename(stay=own) if own in table.columns else table
            for name, table in self.open_tables().items()
        }

    def stays(self) -> pl.DataFrame:
        """Every ICU stay, once."""
        icu, adm, pat = (self.tables[name] for name in ("icustays", "admissions", "patients"))
        for owner, key in (("admissions", "hadm_id"), ("patients", "subject_id")):
            require_owners(
                self.source, icu, self.tables[owner], key=key, table="icustays", owner=owner
            )
        joined = icu.join(adm.select("hadm_id", "dischtime"), "hadm_id").join(pat, "subject_id")
        query = joined.select(
            "gender", "stay", *self.born, patient="subject_id", admission="hadm_id",
            icu_in="intime", icu_out="outtime", discharge="dischtime", death="dod",
        )  # fmt: skip
        stays = in_seconds(self.source.fetch(query)).unique().sort("stay")
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
        samples = in_seconds(self.source.fetch(query))
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
        charted = in_seconds(self.kept.rows("chart", among=("itemid", self.items.chart_cultures)))
        if self.reading.cultures_from_procedures:
            is_tip = pl.col("itemid") >= FIRST_METAVISION_ITEM
            charted = charted.filter(~is_tip | (pl.col("number") == 1))
        taken = charted.select("stay", "t")
        if not (self.reading.reads_procedures and self.items.procedure_cultures):
            return taken
        among = ("itemid", self.items.procedure_cultures)
        done = in_seconds(self.kept.rows("procedures", among=among))
        return pl.concat([taken, done.select("stay", t="start")])

    def own_definition(self) -> OwnDefinition | None:
        """None: the rules' own definition."""
        return None

    @property
    def _kept_tables(self) -> dict[str, str]:
        """Raw table of each kept one that the profile reads."""
        read = self.reading.reads_procedures
        return {name: t for name, t in self.table_of.items() if read or name != "procedures"}

    def events(self, first: int, last: int) -> Events:
        """Events of the kept stays first..last."""
        block = read_block(self.kept, first, last, self._kept_tables)
        return read_events(block, self.items, self.rules, drop_rewritten=self.drop_rewritten_fluids)

    def require_rows(self, *kinds: str) -> None:
        """Refuse a source without a usable row of a kind.

        What was given may be missing: of two charting systems a hospital may have used one only.
        """
        for kind in kinds:
            if kind == "samples":
                require_some("microbiologyevents", self._n_samples)
            else:
                name = _KEPT_AS[kind]
                require_some(self.table_of[name], self.kept.height(name))

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
