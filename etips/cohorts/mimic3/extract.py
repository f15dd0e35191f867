"""What is read from the raw tables, written once in Ibis for every engine (section 4.2).

Filters and joins run where the data is; what comes back is reduced to the items and stays needed.
Times come back as timestamps and leave this module as whole seconds since 1970.
"""

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
    DEVICE_TEXTS,
    DEVICE_TEXTS_CLEAN,
    KG_PER_POUND,
    POUND_WEIGHT_ITEM,
    UNTESTABLE_VERBAL,
    Items,
)
from etips.cohorts.mimic.specimens import is_arterial, specimen_told
from etips.cohorts.mimic3 import concepts
from etips.cohorts.mimic3.switches import Reading

STAY_COLUMN: Final = "icustay_id"
TABLE_OF: Final = {
    "chart": "chartevents",
    "labs": "labevents",
    "infusions_mv": "inputevents_mv",
    "infusions_cv": "inputevents_cv",
    "urine": "outputevents",
    "procedures": "procedureevents_mv",
}
_FIRST_METAVISION_ITEM: Final = 220_000
_DAY: Final = 24 * 3600


def read_stays(source: RawSource, tables: Tables) -> pl.DataFrame:
    """One row per ICU stay, with the age in days; the other columns as in `Extraction.stays`."""
    stays = bedside_queries.read_stays(source, tables, stay_column=STAY_COLUMN, born=("dob",))
    return stays.with_columns(age=(pl.col("icu_in") - pl.col("dob")) / _DAY)


def read_antibiotics(
    source: RawSource, tables: Tables, items: Items, reading: Reading
) -> pl.DataFrame:
    """Antibiotic prescriptions: entry, admission, stay or null, t (a date at midnight)."""
    rows = tables["prescriptions"]
    chosen = named_antibiotic(rows) if reading.antibiotics_by_name else _coded(rows, items)
    query = rows.filter(chosen & rows.startdate.notnull()).select(
        entry=rows.row_id, admission=rows.hadm_id, stay=rows.icustay_id, t=rows.startdate
    )
    return in_seconds(source.fetch(query)).sort("entry", "admission", "stay", "t")


def _coded(rows: ibis.Table, items: Items) -> ir.BooleanValue:
    return rows.gsn.isin(sorted(items.antibiotics))


def store_large(
    source: RawSource, tables: Tables, items: Items, reading: Reading, stays: list[int]
) -> None:
    """Keep the rows of candidate stays, reading each large table once.

    Args:
        source: Where the queries run.
        tables: The raw tables.
        items: What to look for.
        reading: Which rows count.
        stays: Candidate stays; cultures are kept for all.
    """
    candidates = ibis.memtable(pl.DataFrame({"icustay_id": pl.Series(stays, dtype=pl.Int64)}))
    queries = {
        "chart": chart_query(tables, items, reading, candidates),
        "labs": lab_query(tables, items, reading, candidates),
        "infusions_mv": _infusions_mv(tables, items, candidates),
        "infusions_cv": _infusions_cv(tables, items, candidates),
        "urine": urine_query(tables["outputevents"], items, candidates, stay_column=STAY_COLUMN),
    }
    if reading.reads_procedures:
        queries["procedures"] = procedures_query(
            tables["procedureevents_mv"], items, stay_column=STAY_COLUMN
        )
    for name, query in queries.items():
        source.store(query, name, by="stay")


def chart_query(
    tables: Tables, items: Items, reading: Reading, candidates: ibis.Table
) -> ibis.Table:
    """Charted rows of the needed items: vitals, chart labs, ventilation and cultures."""
    rows = tables["chartevents"]
    charted = rows.value.notnull() | rows.valuenum.notnull()
    cultured = rows.itemid.isin(sorted(items.chart_cultures))  # whatever its value, even none
    kept = (
        rows.itemid.isin(items.charted)
        & rows.icustay_id.notnull()
        & rows.charttime.notnull()
        & (cultured | (charted & rows.icustay_id.isin(candidates.icustay_id)))
    )
    if reading.drop_charted_errors:
        kept &= rows.error.fill_null(0) != 1
    return rows.filter(kept).select(
        stay=rows.icustay_id,
        itemid=rows.itemid.cast("int32"),
        t=rows.charttime,
        number=_number(rows, items),
        device=_device(rows, items, reading).cast("float64"),
        has_text=rows.value.notnull(),
        ventilated=_ventilated(rows),
        extubated=(rows.itemid == concepts.EXTUBATION_ITEM)
        & rows.value.isin(concepts.EXTUBATION_TEXTS),
        unit=rows.valueuom,
        measured=rows.valuenum.notnull(),
    )


def _number(rows: ibis.Table, items: Items) -> ir.Value:
    """The charted number, in kg where it is pounds, null where it cannot be tested."""
    pounds = rows.itemid == POUND_WEIGHT_ITEM
    exceptions = [(pounds, rows.valuenum * KG_PER_POUND)]
    verbal = sorted(code for code, name in items.vitals.items() if name == "GCS_verbal")
    if verbal:
        untestable = rows.itemid.isin(verbal) & rows.value.isin(UNTESTABLE_VERBAL)
        exceptions.append((untestable, ibis.null("float64")))
    return ibis.cases(*exceptions, else_=rows.valuenum)


def _device(rows: ibis.Table, items: Items, reading: Reading) -> ir.Value:
    """Code of the oxygen device that the text names; looked for in every row in the scripts."""
    if not reading.metavision_devices:
        return rows.value.cases(*DEVICE_TEXTS.items(), else_=None)
    code = rows.value.lower().cases(*DEVICE_TEXTS_CLEAN.items(), else_=None)
    devices = sorted(item for item, name in items.vitals.items() if name == "Interface")
    return ibis.cases((rows.itemid.isin(devices), code), else_=None)


def _ventilated(rows: ibis.Table) -> ir.Value:
    """Whether a row says ventilated if its item is one of ventilation: any text, but for a few."""
    deciding = [
        (rows.itemid == concepts.EXTUBATION_ITEM, False),
        *((rows.itemid == i, rows.value == text) for i, text in concepts.VENTILATED_IF.items()),
        *((rows.itemid == i, rows.value != text) for i, text in concepts.VENTILATED_UNLESS.items()),
    ]
    return ibis.cases(*deciding, else_=True)


def lab_query(tables: Tables, items: Items, reading: Reading, candidates: ibis.Table) -> ibis.Table:
    """Laboratory results from a day before to a day after each stay of the admission."""
    labs, icu = tables["labevents"], tables["icustays"]
    day = ibis.interval(hours=24)
    stays = icu.filter(icu.icustay_id.isin(candidates.icustay_id)).select(
        "icustay_id", "hadm_id", opens=icu.intime - day, closes=icu.outtime + day
    )
    counts = labs.itemid.isin(sorted(items.labs)) & labs.valuenum.notnull()
    arterial = ibis.null("boolean")
    if reading.arterial_gases_only:
        tells = labs.itemid == concepts.GAS_SPECIMEN_ITEM
        counts |= tells & specimen_told(labs.value)
        arterial = ibis.cases((tells, is_arterial(labs.value)), else_=None)
    wanted = labs.mutate(arterial=arterial).filter(counts & labs.charttime.notnull())
    joined = wanted.join(stays, "hadm_id")
    within = joined.filter(joined.charttime.between(joined.opens, joined.closes))
    return within.select(
        stay=within.icustay_id,
        itemid=within.itemid.cast("int32"),
        t=within.charttime,
        number=within.valuenum,
        specimen=ibis.null("int64"),
        arterial=within.arterial,
        unit=within.valueuom,
        measured=within.valuenum.notnull(),
    )


def _infusions_mv(tables: Tables, items: Items, candidates: ibis.Table) -> ibis.Table:
    rows = tables["inputevents_mv"]
    kept = rows.itemid.isin(items.infused) & rows.icustay_id.isin(candidates.icustay_id)
    return rows.filter(kept).select(
        "amount", "rate", "rateuom", "statusdescription", stay=rows.icustay_id,
        itemid=rows.itemid.cast("int32"), start=rows.starttime, end=rows.endtime,
        **_unit_of_input(rows, items),
    )  # fmt: skip


def _infusions_cv(tables: Tables, items: Items, candidates: ibis.Table) -> ibis.Table:
    rows = tables["inputevents_cv"]
    kept = rows.itemid.isin(items.infused) & rows.icustay_id.isin(candidates.icustay_id)
    return rows.filter(kept).select(
        "amount", "rate", "rateuom", stay=rows.icustay_id,
        itemid=rows.itemid.cast("int32"), t=rows.charttime, **_unit_of_input(rows, items),
    )  # fmt: skip


def _unit_of_input(rows: ibis.Table, items: Items) -> dict[str, ir.Value]:
    """Of a drug the unit of its rate matters, of a fluid that of its amount."""
    drug = rows.itemid.isin(sorted(items.vasopressors))
    return {
        "unit": drug.ifelse(rows.rateuom, rows.amountuom),
        "measured": drug.ifelse(rows.rate.notnull(), rows.amount.notnull()),
    }


def read_cultures(kept: Store, items: Items, reading: Reading) -> pl.DataFrame:
    """Cultures of all stays: stay, t. The value of a line tip counts in the clean profile only."""
    judged = reading.cultures_from_procedures
    tips = [item for item in items.chart_cultures if judged and item >= _FIRST_METAVISION_ITEM]
    done = items.procedure_cultures if reading.reads_procedures else ()
    return bedside.read_cultures(kept, charted=items.chart_cultures, tips=tips, procedures=done)


def kept_tables(reading: Reading) -> dict[str, str]:
    """Raw table of each kept one that a profile reads."""
    read = reading.reads_procedures
    return {name: table for name, table in TABLE_OF.items() if read or name != "procedures"}
