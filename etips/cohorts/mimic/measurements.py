"""Charted rows, laboratory results and procedures as measurements (sections 4.2 and 8)."""

from typing import Final

import polars as pl

from etips.cohorts.mimic.bedside import Block
from etips.cohorts.mimic.items import (
    ARTERIAL_FEATURES,
    EXTUBATION_PROCEDURES,
    INVASIVE_VENTILATION_ITEM,
    Items,
)
from etips.cohorts.sepsis3.events import CONCEPT

_LABORATORY: Final = 1_000_000
"""Priority of a laboratory result above that of any charted row; within either, by item."""
_COLUMNS: Final = ("stay", "t", "concept", "priority", "value")


def measurements(block: Block, items: Items) -> pl.DataFrame:
    """Vitals, labs, ventilation and extubation: stay, t, concept, priority, value.

    The order is chartevents before labevents, then item (section 8).
    """
    written = block.chart.filter("has_text")
    vitals = written.join(_concepts(items.vitals), on="itemid").with_columns(
        value=pl.coalesce("device", "number")
    )
    chart_labs = block.chart.join(_concepts(items.chart_labs), on="itemid").drop_nulls("number")
    results = _arterial(block.labs, items).join(_concepts(items.labs), on="itemid")
    told = written.filter(pl.col("itemid").is_in(items.ventilation))
    parts = [
        vitals.with_columns(priority=pl.col("itemid")),
        chart_labs.with_columns(priority=pl.col("itemid"), value=pl.col("number")),
        results.with_columns(priority=pl.col("itemid") + _LABORATORY, value=pl.col("number")),
        _flags(told, "mechvent", pl.col("ventilated")),
        _flags(told, "extubated", pl.col("extubated")),
    ]
    if items.procedure_ventilation:
        ended = pl.col("itemid").is_in(EXTUBATION_PROCEDURES)
        extubations = block.procedures.filter(ended).rename({"start": "t"})
        parts.append(_flags(extubations, "extubated", pl.lit(True)))
    return pl.concat([part.select(_COLUMNS) for part in parts])


def ventilation(block: Block, items: Items) -> pl.DataFrame:
    """Periods of invasive ventilation: stay, start, end."""
    periods = block.procedures.select("stay", "itemid", "start", "end")
    if not items.procedure_ventilation:
        periods = periods.clear()
    invasive = pl.col("itemid") == INVASIVE_VENTILATION_ITEM
    return periods.filter(invasive).drop("itemid")


def _arterial(labs: pl.DataFrame, items: Items) -> pl.DataFrame:
    """Results without gases of a specimen that is told to be of another kind than arterial.

    Where specimens have no number, results of one time are of one specimen.
    """
    key = pl.coalesce("specimen", -pl.col("t"))
    labs = labs.with_columns(specimen=key)
    told = labs.drop_nulls("arterial").group_by("stay", "specimen").agg(pl.col("arterial").any())
    other = told.filter(~pl.col("arterial")).select("stay", "specimen")
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


def _flags(rows: pl.DataFrame, concept: str, flag: pl.Expr) -> pl.DataFrame:
    """Ventilation by timestamp: any row that says so. One priority, so that 1 sorts last."""
    return rows.with_columns(
        concept=pl.lit(concept, CONCEPT),
        priority=pl.lit(0, pl.Int32),
        value=flag.cast(pl.Float64),
    )
