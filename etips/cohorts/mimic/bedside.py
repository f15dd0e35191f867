"""Raw rows of some stays as events that the rules know (sections 4.2 and 8)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from etips.cohorts.engines.checked_tables import in_seconds, require_finite
from etips.cohorts.engines.store import Store
from etips.cohorts.mimic.items import (
    ARTERIAL_FEATURES,
    EXTUBATION_PROCEDURES,
    INVASIVE_VENTILATION_ITEM,
    IRRIGANT_IN_ITEM,
    PREADMISSION_URINE_ITEMS,
    TONICITY,
    Items,
)
from etips.cohorts.sepsis3.doses import VASOPRESSIN_LIMIT, rounded
from etips.cohorts.sepsis3.events import (
    CONCEPT,
    PER_KG,
    PER_MINUTE,
    UNITS_PER_HOUR,
    UNITS_PER_MINUTE,
    Events,
)
from etips.cohorts.sepsis3.rules import Rules

SPELLINGS: Final = {
    "mcg/kg/min": PER_KG, "mcgkgmin": PER_KG,
    "mcg/min": PER_MINUTE, "mcgmin": PER_MINUTE,
    "units/min": UNITS_PER_MINUTE, "Umin": UNITS_PER_MINUTE,
    "units/hour": UNITS_PER_HOUR, "Uhr": UNITS_PER_HOUR,
}  # fmt: skip
"""Units of a rate, as MetaVision and CareVue spell them."""
# Columns that a block is made of; what only the audit of units looks at stays on disk.
_COLUMNS: Final = {
    "chart": ("stay", "itemid", "t", "number", "device", "has_text", "ventilated", "extubated"),
    "labs": ("stay", "itemid", "t", "number", "specimen", "arterial"),
    "infusions_mv": (
        "stay", "amount", "rate", "rateuom", "statusdescription", "itemid", "start", '"end"',
    ),
    "infusions_cv": ("stay", "amount", "rate", "rateuom", "itemid", "t"),
    "urine": ("stay", "itemid", "t", "amount"),
    "procedures": ("stay", "itemid", "start", '"end"'),
}  # fmt: skip
_EMPTY: Final[dict[str, dict[str, type[pl.DataType]]]] = {
    "infusions_cv": {
        "stay": pl.Int64, "amount": pl.Float64, "rate": pl.Float64, "rateuom": pl.String,
        "itemid": pl.Int32, "t": pl.Int64,
    },
    "procedures": dict.fromkeys(("stay", "start", "end", "itemid"), pl.Int64),
}  # fmt: skip
_LABORATORY: Final = 1_000_000
"""Priority of a laboratory result above that of any charted row; within either, by item."""
_IS_REWRITTEN: Final = pl.col("statusdescription").fill_null("") == "Rewritten"


@dataclass(frozen=True, repr=False)
class Block:
    """Raw rows of some stays; every frame has stay and times in seconds.

    Attributes:
        chart: t, itemid, number, device, has_text, ventilated, extubated.
        labs: t, itemid, number, specimen, arterial (whether the specimen is said to be so, where
            the row is one that says it).
        infusions_mv: start, end, itemid, amount, rate, rateuom, statusdescription.
        infusions_cv: t, itemid, amount, rate, rateuom, of a charting system without ends; empty
            where there is none.
        urine: t, itemid, amount; pre-admission urine among them.
        procedures: start, end, itemid; empty if they are not read.
    """

    chart: pl.DataFrame
    labs: pl.DataFrame
    infusions_mv: pl.DataFrame
    infusions_cv: pl.DataFrame
    urine: pl.DataFrame
    procedures: pl.DataFrame


def read_block(kept: Store, first: int, last: int, tables: Mapping[str, str]) -> Block:
    """Read the kept rows of the stays first..last; `tables` has the raw table of each kept one."""
    frames = {name: pl.DataFrame(schema=schema) for name, schema in _EMPTY.items()}
    for name, table in tables.items():
        rows = kept.rows(name, columns=_COLUMNS[name], between=("stay", first, last))
        frames[name] = in_seconds(rows)
        require_finite(table, frames[name])
    return Block(**frames)


def read_events(block: Block, items: Items, rules: Rules, *, drop_rewritten: bool) -> Events:
    """What happened to the stays of a block.

    With `drop_rewritten`, fluids that were written anew do not count (oddity 6, corrected).
    """
    measured, ventilation = measurements(block, items)
    boluses, infusions = fluids(block, items, drop_rewritten=drop_rewritten)
    before = [
        rows.filter(pl.col("itemid").is_in(items.preadmission_fluids))
        for rows in (block.infusions_mv, block.infusions_cv)
    ]
    passed, early = block.urine, pl.col("itemid").is_in(PREADMISSION_URINE_ITEMS)
    into = pl.col("itemid") == IRRIGANT_IN_ITEM  # irrigant that went in is taken off
    volume = pl.when(into).then(-pl.col("amount")).otherwise(pl.col("amount"))
    return Events(
        measurements=measured,
        ventilation=ventilation,
        vasopressors=vasopressors(block, items, rules),
        boluses=boluses,
        infusions=infusions,
        # MetaVision's sum if any, otherwise CareVue's
        fluid_before=pl.concat([_summed(rows) for rows in before]).unique(
            "stay", keep="first", maintain_order=True
        ),
        urine=passed.filter(pl.col("itemid").is_in(items.urine)).select("stay", "t", volume=volume),
        urine_before=_summed(passed.filter(early).unique()),
    )


def _summed(rows: pl.DataFrame) -> pl.DataFrame:
    """Amounts of a stay added up: stay, volume."""
    amounts = rows.drop_nulls("amount").group_by("stay")
    return amounts.agg(volume=pl.col("amount").sort().sum())  # sorted: the same in any row order


def measurements(block: Block, items: Items) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Vitals, labs, ventilation and extubation, and periods of invasive ventilation.

    The order of several at one time is chartevents before labevents, then item (section 8). Items
    of ventilation have one priority, so that any row that says ventilated counts.

    Returns:
        stay, t, concept, priority, value; and stay, start, end.
    """
    written = block.chart.filter("has_text")
    vitals = written.join(_concepts(items.vitals), on="itemid")
    chart_labs = block.chart.join(_concepts(items.chart_labs), on="itemid").drop_nulls("number")
    results = _arterial(block.labs, items).join(_concepts(items.labs), on="itemid")
    of_ventilation = written.filter(pl.col("itemid").is_in(items.ventilation))
    procedures = block.procedures if items.procedure_ventilation else block.procedures.clear()
    ended = procedures.filter(pl.col("itemid").is_in(EXTUBATION_PROCEDURES)).rename({"start": "t"})
    item, number = pl.col("itemid").cast(pl.Int32), pl.col("number")
    flags = [
        (of_ventilation, "mechvent", pl.col("ventilated")),
        (of_ventilation, "extubated", pl.col("extubated")),
        (ended, "extubated", pl.lit(True)),
    ]
    parts = [
        vitals.with_columns(priority=item, value=pl.coalesce("device", "number")),
        chart_labs.with_columns(priority=item, value=number),
        results.with_columns(priority=item + _LABORATORY, value=number),
        *(
            rows.with_columns(
                concept=pl.lit(concept, CONCEPT),
                priority=pl.lit(0, pl.Int32),
                value=flag.cast(pl.Float64),
            )
            for rows, concept, flag in flags
        ),
    ]
    invasive = procedures.filter(pl.col("itemid") == INVASIVE_VENTILATION_ITEM)
    columns = ("stay", "t", "concept", "priority", "value")
    return pl.concat([part.select(columns) for part in parts]), invasive.select(
        "stay", "start", "end"
    )


def _arterial(labs: pl.DataFrame, items: Items) -> pl.DataFrame:
    """Results without gases of a specimen that is said to be of another kind than arterial.

    Where specimens have no number, results of one time are of one specimen.
    """
    labs = labs.with_columns(specimen=pl.coalesce("specimen", -pl.col("t")))
    said = labs.drop_nulls("arterial").group_by("stay", "specimen").agg(pl.col("arterial").any())
    other = said.filter(~pl.col("arterial")).select("stay", "specimen")
    gases = [item for item, feature in items.labs.items() if feature in ARTERIAL_FEATURES]
    is_gas = pl.col("itemid").is_in(gases)
    kept = labs.filter(is_gas).join(other, on=["stay", "specimen"], how="anti")
    return pl.concat([labs.filter(~is_gas), kept])


def _concepts(features: dict[int, str]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "itemid": pl.Series(list(features), dtype=pl.Int32),
            "concept": pl.Series(list(features.values()), dtype=CONCEPT),
        }
    )


def vasopressors(block: Block, items: Items, rules: Rules) -> pl.DataFrame:
    """Vasopressor rates of both systems: stay, start, end (null in CareVue), drug, rate, unit."""
    drugs = pl.DataFrame(
        {
            "itemid": pl.Series(list(items.vasopressors), dtype=pl.Int32),
            "drug": list(items.vasopressors.values()),
        }
    )
    unit = pl.col("rateuom").replace_strict(SPELLINGS, default=None, return_dtype=pl.String)
    metavision, carevue = (
        rows.join(drugs, on="itemid").drop_nulls("rate").with_columns(unit=unit)
        for rows in (block.infusions_mv, block.infusions_cv)
    )
    metavision = metavision.filter(~_IS_REWRITTEN).drop_nulls(["start", "end"])
    carevue = carevue.drop_nulls("t").rename({"t": "start"})
    carevue = carevue.with_columns(end=pl.lit(None, pl.Int64))
    if not rules.vasopressin_as_charted:  # the scripts lose this very rate there
        is_vasopressin = (pl.col("drug") == "vasopressin") & (pl.col("unit") == UNITS_PER_MINUTE)
        lost = is_vasopressin & (pl.col("rate") == VASOPRESSIN_LIMIT)
        carevue = carevue.filter(~lost.fill_null(False))
    columns = ("stay", "start", "end", "drug", "rate", "unit")
    return pl.concat([part.select(columns) for part in (metavision, carevue)])


def fluids(
    block: Block, items: Items, *, drop_rewritten: bool
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Fluids as isotonic volumes.

    A row of MetaVision without a rate is a bolus, one of CareVue always is.

    Returns:
        Boluses: stay, t, volume. Infusions: stay, start, end, rate in mL/h.
    """
    is_fluid = pl.col("itemid").is_in(items.fluids) & pl.col("amount").is_not_null()
    given = block.infusions_mv.filter(is_fluid & pl.col("start").is_not_null())
    if drop_rewritten:
        given = given.filter(~_IS_REWRITTEN)
    charted = block.infusions_cv.filter(is_fluid & pl.col("t").is_not_null())
    factor = pl.col("itemid").replace_strict(TONICITY, default=1.0, return_dtype=pl.Float64)
    volume = rounded(pl.col("amount") * factor)
    amount, rate = rounded(pl.col("amount")), rounded(pl.col("rate"))
    normalised = pl.when(amount == 0).then(0.0).otherwise(volume * rate / amount)
    runs = pl.col("rate").is_not_null()
    boluses = [
        given.filter(~runs).select("stay", t="start", volume=volume),
        charted.select("stay", "t", volume=volume),
    ]
    infusions = given.filter(runs).select("stay", "start", "end", rate=normalised)
    return pl.concat(boluses), infusions
