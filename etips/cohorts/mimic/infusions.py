"""Rows of what was given and passed as vasopressors, fluids and urine (section 4.2)."""

from typing import Final

import polars as pl

from etips.cohorts.mimic.bedside import Block
from etips.cohorts.mimic.items import IRRIGANT_IN_ITEM, PREADMISSION_URINE_ITEMS, TONICITY, Items
from etips.cohorts.sepsis3.events import PER_KG, PER_MINUTE, UNITS_PER_HOUR, UNITS_PER_MINUTE
from etips.cohorts.sepsis3.rules import Rules
from etips.cohorts.sepsis3.vasopressors import VASOPRESSIN_LIMIT, rounded

SPELLINGS: Final = {
    "mcg/kg/min": PER_KG, "mcgkgmin": PER_KG,
    "mcg/min": PER_MINUTE, "mcgmin": PER_MINUTE,
    "units/min": UNITS_PER_MINUTE, "Umin": UNITS_PER_MINUTE,
    "units/hour": UNITS_PER_HOUR, "Uhr": UNITS_PER_HOUR,
}  # fmt: skip
"""Units of a rate, as MetaVision and CareVue spell them."""
_DRUG_COLUMNS: Final = ("stay", "start", "end", "drug", "rate", "unit")


def vasopressors(block: Block, items: Items, rules: Rules) -> pl.DataFrame:
    """Vasopressor rates of both systems: stay, start, end (null in CareVue), drug, rate, unit."""
    metavision = _with_drug(block.infusions_mv, items).filter(
        ~_rewritten(), pl.col("start").is_not_null(), pl.col("end").is_not_null()
    )
    carevue = _with_drug(block.infusions_cv, items).drop_nulls("t")
    carevue = carevue.rename({"t": "start"}).with_columns(end=pl.lit(None, pl.Int64))
    if not rules.vasopressin_as_charted:  # the scripts lose this very rate there
        lost = (
            (pl.col("drug") == "vasopressin")
            & (pl.col("unit") == UNITS_PER_MINUTE)
            & (pl.col("rate") == VASOPRESSIN_LIMIT)
        )
        carevue = carevue.filter(~lost.fill_null(False))
    return pl.concat([part.select(_DRUG_COLUMNS) for part in (metavision, carevue)])


def _with_drug(rows: pl.DataFrame, items: Items) -> pl.DataFrame:
    drugs = pl.DataFrame(
        {
            "itemid": pl.Series(list(items.vasopressors), dtype=pl.Int32),
            "drug": list(items.vasopressors.values()),
        }
    )
    unit = pl.col("rateuom").replace_strict(SPELLINGS, default=None, return_dtype=pl.String)
    known = rows.join(drugs, on="itemid").drop_nulls("rate")
    return known.with_columns(unit=unit)


def _rewritten() -> pl.Expr:
    return pl.col("statusdescription").fill_null("") == "Rewritten"


def fluids(
    block: Block, items: Items, *, drop_rewritten: bool
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Fluids as isotonic volumes.

    A row of MetaVision without a rate is a bolus, one of CareVue always is.

    Args:
        block: Raw rows.
        items: Which of them are fluids.
        drop_rewritten: Whether rows that were written anew do not count (oddity 6, corrected).

    Returns:
        Boluses: stay, t, volume. Infusions: stay, start, end, rate in mL/h.
    """
    is_fluid = pl.col("itemid").is_in(items.fluids) & pl.col("amount").is_not_null()
    given = block.infusions_mv.filter(is_fluid & pl.col("start").is_not_null())
    if drop_rewritten:
        given = given.filter(~_rewritten())
    charted = block.infusions_cv.filter(is_fluid & pl.col("t").is_not_null())
    amount, rate = rounded(pl.col("amount")), rounded(pl.col("rate"))
    normalised = pl.when(amount == 0).then(0.0).otherwise(_volume() * rate / amount)
    runs = pl.col("rate").is_not_null()
    boluses = [
        given.filter(~runs).select("stay", t="start", volume=_volume()),
        charted.select("stay", t="t", volume=_volume()),
    ]
    infusions = given.filter(runs).select("stay", "start", "end", rate=normalised)
    return pl.concat(boluses), infusions


def _volume() -> pl.Expr:
    factor = pl.col("itemid").replace_strict(TONICITY, default=1.0, return_dtype=pl.Float64)
    return rounded(pl.col("amount") * factor)


def preadmission_fluids(block: Block, items: Items) -> pl.DataFrame:
    """Fluids before the stay: stay, volume; MetaVision's sum if any, else CareVue's."""
    sums = [
        rows.filter(pl.col("itemid").is_in(items.preadmission_fluids))
        .drop_nulls("amount")
        .group_by("stay")
        .agg(volume=pl.col("amount").sort().sum())  # sorted: the same sum in any row order
        for rows in (block.infusions_mv, block.infusions_cv)
    ]
    return pl.concat(sums).unique("stay", keep="first", maintain_order=True)


def urine(block: Block, items: Items) -> pl.DataFrame:
    """Urine: stay, t, volume; irrigant that went in is taken off."""
    measured = block.urine.filter(pl.col("itemid").is_in(items.urine))
    into = pl.col("itemid") == IRRIGANT_IN_ITEM
    volume = pl.when(into).then(-pl.col("amount")).otherwise(pl.col("amount"))
    return measured.select("stay", t="t", volume=volume)


def preadmission_urine(block: Block) -> pl.DataFrame:
    """Urine before the stay: stay, volume; distinct rows (section 4.2)."""
    before = pl.col("itemid").is_in(PREADMISSION_URINE_ITEMS)
    measured = block.urine.filter(before).unique()
    return measured.group_by("stay").agg(volume=pl.col("amount").sort().sum())
