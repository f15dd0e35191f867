"""What is read from the raw tables of MIMIC-IV, written once in Ibis for every engine.

Filters and joins run where the data is; what comes back is reduced to the items and stays needed.
No row has a number of its own, so that every order comes from values.
"""

from collections.abc import Iterable
from typing import Final

import ibis  # type: ignore[import-untyped, unused-ignore]
import ibis.expr.types as ir  # type: ignore[import-untyped, unused-ignore]
import polars as pl

from etips.cohorts.engines.raw_rows import in_seconds
from etips.cohorts.engines.raw_source import RawSource
from etips.cohorts.engines.store import Store
from etips.cohorts.mimic import bedside, bedside_queries
from etips.cohorts.mimic.antibiotic_names import named_antibiotic
from etips.cohorts.mimic.bedside_queries import Tables, procedures_query, urine_query
from etips.cohorts.mimic.items import (
    DEVICE_TEXTS_CLEAN,
    KG_PER_POUND,
    POUND_WEIGHT_ITEM,
    UNTESTABLE_VERBAL,
    Items,
)
from etips.cohorts.mimic.specimens import is_arterial, specimen_told
from etips.cohorts.mimic4 import concepts
from etips.cohorts.mimic4.switches import Reading
from etips.cohorts.sepsis3.events import DRUGS

STAY_COLUMN: Final = "stay_id"
TABLE_OF: Final = {
    "chart": "chartevents",
    "labs": "labevents",
    "infusions_mv": "inputevents",
    "urine": "outputevents",
    "procedures": "procedureevents",
}
DAYS_PER_YEAR: Final = 365.25
_OLDEST: Final = 91  # years; what ages above 89 are stored as
# Of several prescriptions that begin together, which one goes first.
_ORDER: Final = ("t", "stop", "pharmacy_id", "drug", "gsn")


def read_stays(source: RawSource, tables: Tables) -> pl.DataFrame:
    """One row per ICU stay, with the age in days; the other columns as in `Extraction.stays`."""
    born = ("anchor_age", "anchor_year")
    stays = bedside_queries.read_stays(source, tables, stay_column=STAY_COLUMN, born=born)
    year = pl.from_epoch("icu_in", time_unit="s").dt.year().cast(pl.Int64)
    years = pl.col("anchor_age") + year - pl.col("anchor_year")
    return stays.with_columns(age=years.clip(upper_bound=_OLDEST) * DAYS_PER_YEAR)


def read_antibiotics(
    source: RawSource, tables: Tables, items: Items, reading: Reading
) -> pl.DataFrame:
    """Antibiotic prescriptions: entry, admission, stay (always null), t."""
    rows = tables["prescriptions"]
    chosen = named_antibiotic(rows) if reading.antibiotics_by_name else _coded(rows, items)
    query = rows.filter(chosen & rows.starttime.notnull()).select(
        "pharmacy_id", "drug", "gsn", admission=rows.hadm_id, t=rows.starttime, stop=rows.stoptime
    )
    given = in_seconds(source.fetch(query)).sort(*_ORDER, "admission", nulls_last=True)
    return given.select(
        pl.int_range(pl.len(), dtype=pl.Int64).alias("entry"),
        "admission",
        pl.lit(None, pl.Int64).alias("stay"),
        "t",
    )


def _coded(rows: ibis.Table, items: Items) -> ir.BooleanValue:
    """Whether one of the codes, of which there may be several, is that of an antibiotic."""
    codes = "|".join(sorted(items.antibiotics))
    return rows.gsn.fill_null("").re_search(f"(^|[^0-9])({codes})([^0-9]|$)")


def read_named(source: RawSource, tables: Tables, items: Items) -> dict[int, str]:
    """Items of what was given that are named like a vasopressor and are not in the lists.

    Looked up where the source has the dictionary of items.
    """
    if "d_items" not in tables:
        return {}
    rows = tables["d_items"]
    named = rows.label.lower().re_search("|".join(DRUGS)) & (rows.linksto == "inputevents")
    known = sorted({*items.infused, *concepts.OTHER_PRESSORS})
    query = rows.filter(named & ~rows.itemid.isin(known)).select("itemid")
    return dict.fromkeys(
        source.fetch(query.distinct())["itemid"].sort().to_list(), "named like a vasopressor"
    )


def store_large(
    source: RawSource,
    tables: Tables,
    items: Items,
    reading: Reading,
    stays: list[int],
    *,
    counted: Iterable[int] = (),
) -> None:
    """Keep the rows of candidate stays, reading each large table once.

    Args:
        source: Where the queries run.
        tables: The raw tables.
        items: What to look for.
        reading: Which rows count.
        stays: Candidate stays; cultures are kept for all.
        counted: Items of what was given whose rows are counted and not read.
    """
    candidates = ibis.memtable(pl.DataFrame({"stay_id": pl.Series(stays, dtype=pl.Int64)}))
    queries = {
        "chart": chart_query(tables, items, candidates),
        "labs": lab_query(tables, items, reading, candidates),
        "infusions_mv": _infusions(tables, items, reading, candidates, counted),
        "urine": urine_query(tables["outputevents"], items, candidates, stay_column=STAY_COLUMN),
    }
    if reading.reads_procedures:
        queries["procedures"] = procedures_query(
            tables["procedureevents"], items, stay_column=STAY_COLUMN
        )
    for name, query in queries.items():
        source.store(query, name, by="stay")


def chart_query(tables: Tables, items: Items, candidates: ibis.Table) -> ibis.Table:
    """Charted rows of the needed items: vitals, chart labs, ventilation and cultures."""
    rows = tables["chartevents"]
    charted = rows.value.notnull() | rows.valuenum.notnull()
    cultured = rows.itemid.isin(sorted(items.chart_cultures))  # whatever its value, even none
    wanted = sorted({*items.charted, *concepts.OTHER_CHARTED})
    kept = (
        rows.itemid.isin(wanted)
        & rows.stay_id.notnull()
        & rows.charttime.notnull()
        & (cultured | (charted & rows.stay_id.isin(candidates.stay_id)))
    )
    return rows.filter(kept).select(
        stay=rows.stay_id,
        itemid=rows.itemid.cast("int32"),
        t=rows.charttime,
        number=_number(rows, items),
        device=_device(rows, items).cast("float64"),
        has_text=(rows.value.strip() != "").fill_null(False),  # loaders differ in empty ones
        ventilated=_ventilated(rows),
        extubated=False,  # told by procedures
        unit=rows.valueuom,
        measured=rows.valuenum.notnull(),
    )


def _plain(text: ir.StringValue) -> ir.StringValue:
    """A text as it is compared: some are stored with a blank behind them."""
    return text.strip().lower()


def _number(rows: ibis.Table, items: Items) -> ir.Value:
    """The charted number, in kg where it is pounds, null where it cannot be tested or is a code."""
    of = {name: [i for i, feature in items.vitals.items() if feature == name] for name in _TEXTS}
    untestable = _plain(rows.value).isin([text.lower() for text in UNTESTABLE_VERBAL])
    return ibis.cases(
        (rows.itemid == POUND_WEIGHT_ITEM, rows.valuenum * KG_PER_POUND),
        (rows.itemid.isin(of["GCS_verbal"]) & untestable.fill_null(False), ibis.null("float64")),
        (rows.itemid.isin(of["Interface"]), ibis.null("float64")),
        else_=rows.valuenum,
    )


_TEXTS: Final = ("GCS_verbal", "Interface")
_DEVICES: Final = {text: code for text, code in DEVICE_TEXTS_CLEAN.items() if text}


def _device(rows: ibis.Table, items: Items) -> ir.Value:
    """Code of the oxygen device that the text names."""
    devices = [item for item, name in items.vitals.items() if name == "Interface"]
    code = _plain(rows.value).cases(*_DEVICES.items(), else_=None)
    return ibis.cases((rows.itemid.isin(devices), code), else_=None)


def _ventilated(rows: ibis.Table) -> ir.Value:
    """Whether a row says ventilated if its item is one of ventilation: any text, but for a few."""
    deciding = [
        (rows.itemid == item, ~_plain(rows.value).isin(texts))
        for item, texts in concepts.NOT_VENTILATED.items()
    ]
    return ibis.cases(*deciding, else_=True)


def lab_query(tables: Tables, items: Items, reading: Reading, candidates: ibis.Table) -> ibis.Table:
    """Laboratory results from a day before to a day after each stay.

    A result of another admission than the stay's does not count; one that names none does.
    """
    labs, icu = tables["labevents"], tables["icustays"]
    day = ibis.interval(hours=24)
    stays = icu.filter(icu.stay_id.isin(candidates.stay_id)).select(
        "subject_id", "stay_id", own=icu.hadm_id, opens=icu.intime - day, closes=icu.outtime + day
    )
    wanted = sorted({*items.labs, *concepts.SECOND_LAB_ITEMS})
    counts = labs.itemid.isin(wanted) & labs.valuenum.notnull()
    specimen, arterial = ibis.null("int64"), ibis.null("boolean")
    if reading.arterial_gases_only:
        tells = labs.itemid == concepts.GAS_SPECIMEN_ITEM
        counts |= tells & specimen_told(labs.value)
        specimen = labs.specimen_id
        arterial = ibis.cases((tells, is_arterial(labs.value)), else_=None)
    rows = labs.mutate(specimen=specimen, arterial=arterial)
    joined = rows.filter(counts & labs.charttime.notnull()).join(stays, "subject_id")
    same = (joined.hadm_id == joined.own).fill_null(reading.laboratory_by_subject)
    within = joined.filter(same & joined.charttime.between(joined.opens, joined.closes))
    return within.select(
        "specimen",
        "arterial",
        stay=within.stay_id,
        itemid=within.itemid.cast("int32"),
        t=within.charttime,
        number=within.valuenum,
        unit=within.valueuom,
        measured=within.valuenum.notnull(),
    )


def _infusions(
    tables: Tables, items: Items, reading: Reading, candidates: ibis.Table, counted: Iterable[int]
) -> ibis.Table:
    rows = tables["inputevents"]
    wanted = sorted({*items.infused, *concepts.OTHER_PRESSORS, *counted})
    kept = rows.itemid.isin(wanted) & rows.stay_id.isin(candidates.stay_id)
    drug = rows.itemid.isin(sorted({*items.vasopressors, *concepts.OTHER_PRESSORS}))
    litres = (~drug & (_plain(rows.amountuom) == "l")).fill_null(False)
    rate, unit = rows.rate, rows.rateuom
    if reading.milligram_rates:
        rate, unit = in_micrograms(rows)
    return rows.filter(kept).select(
        "statusdescription",
        stay=rows.stay_id,
        itemid=rows.itemid.cast("int32"),
        start=rows.starttime,
        end=rows.endtime,
        amount=litres.ifelse(rows.amount * 1000, rows.amount),
        rate=rate,
        rateuom=unit,
        unit=drug.ifelse(rows.rateuom, litres.ifelse("ml", rows.amountuom)),
        measured=drug.ifelse(rows.rate.notnull(), rows.amount.notnull()),
    )


def in_micrograms(rows: ibis.Table) -> tuple[ir.Value, ir.Value]:
    """Rate and unit, milligrams as micrograms.

    With a weight of 1 kg the rate was meant in micrograms and its unit is a slip.
    """
    milligrams = (rows.rateuom == "mg/kg/min").fill_null(False)
    slip = (rows.patientweight == 1).fill_null(False)
    rate = ibis.cases((milligrams & ~slip, rows.rate * 1000), else_=rows.rate)
    return rate, milligrams.ifelse("mcg/kg/min", rows.rateuom)


def read_cultures(kept: Store, items: Items, reading: Reading) -> pl.DataFrame:
    """Cultures of all stays: stay, t. The value of a line tip counts in the clean profile only."""
    tips = items.chart_cultures if reading.cultures_from_procedures else ()
    done = items.procedure_cultures if reading.reads_procedures else ()
    return bedside.read_cultures(kept, charted=items.chart_cultures, tips=tips, procedures=done)


def kept_tables(reading: Reading) -> dict[str, str]:
    """Raw table of each kept one that a profile reads."""
    read = reading.reads_procedures
    return {name: table for name, table in TABLE_OF.items() if read or name != "procedures"}
