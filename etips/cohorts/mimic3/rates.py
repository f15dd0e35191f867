"""Raw input rows to isotonic volumes and norepinephrine equivalents.

The rules: docs/cohort/rules.md section 4.2.
"""

from typing import Final

import polars as pl

from etips.cohorts.mimic3 import concepts
from etips.cohorts.mimic3.columns import HOUR
from etips.cohorts.mimic3.concepts import Items
from etips.cohorts.mimic3.config import CohortConfig

BODY_WEIGHT_KG: Final = 80  # assumed whenever a rate is per minute and not per kg
PER_KG: Final = ("mcg/kg/min", "mcgkgmin")
PER_MINUTE: Final = ("mcg/min", "mcgmin")
UNITS_PER_MINUTE: Final = ("units/min", "Umin")
UNITS_PER_HOUR: Final = ("units/hour", "Uhr")
_VASOPRESSIN_LIMIT: Final = 0.2


def rounded(value: pl.Expr) -> pl.Expr:
    """Three decimals, half away from zero, as PostgreSQL rounds `numeric`.

    A double such as 0.0005 lies a hair below the decimal it stands for; PostgreSQL sees 15
    significant digits, so a value within that hair of a half counts as a half.
    """
    scaled = value.abs() * 1000
    return value.sign() * (scaled + scaled * 1e-15 + 0.5).floor() / 1000


def norepinephrine_equivalent(config: CohortConfig, *, carevue: bool) -> pl.Expr:
    """Dose in mcg/kg/min from `drug`, `rate` and `rateuom`; null for any other unit.

    Args:
        config: Potencies, and whether a vasopressin rate above 0.2 is read as per hour.
        carevue: In CareVue a vasopressin rate of exactly 0.2 per minute is lost (section 4.2).
    """
    potency, rate, unit = config.potency, pl.col("rate"), pl.col("rateuom")
    factor = pl.col("drug").replace_strict(
        {
            "norepinephrine": 1.0,
            "epinephrine": potency.epinephrine,
            "phenylephrine": potency.phenylephrine,
            "dopamine": potency.dopamine,
        },
        default=None,
        return_dtype=pl.Float64,
    )
    catecholamine = (
        pl.when(unit.is_in(PER_KG))
        .then(rate * factor)
        .when(unit.is_in(PER_MINUTE))
        .then(rate * factor / BODY_WEIGHT_KG)
    )
    vasopressin = _vasopressin(config, carevue=carevue)
    dose = pl.when(pl.col("drug") == "vasopressin").then(vasopressin).otherwise(catecholamine)
    return rounded(dose)


def _vasopressin(config: CohortConfig, *, carevue: bool) -> pl.Expr:
    """Oddity 24: above 0.2 the rate is taken as per hour whatever its unit says."""
    rate, unit = pl.col("rate"), pl.col("rateuom")
    per_minute = rate * config.potency.vasopressin_per_unit_per_minute
    is_minute, is_hour = unit.is_in(UNITS_PER_MINUTE), unit.is_in(UNITS_PER_HOUR)
    if config.vasopressin_as_charted:
        return pl.when(is_minute).then(per_minute).when(is_hour).then(per_minute / 60)
    if carevue:
        is_minute &= rate < _VASOPRESSIN_LIMIT
    return (
        pl.when(rate > _VASOPRESSIN_LIMIT)
        .then(per_minute / 60)
        .when(is_minute)
        .then(per_minute)
        .when(is_hour)
        .then(per_minute / 60)
    )


def vasopressors_mv(rows: pl.DataFrame, items: Items, config: CohortConfig) -> pl.DataFrame:
    """MetaVision vasopressor rates: icustay_id, start, end, drug, dose."""
    doses = _with_drug(rows, items).filter(
        pl.col("rate").is_not_null()
        & (pl.col("statusdescription").fill_null("") != "Rewritten")
        & pl.col("start").is_not_null()
        & pl.col("end").is_not_null()
    )
    doses = doses.with_columns(dose=norepinephrine_equivalent(config, carevue=False))
    return doses.select("icustay_id", "start", "end", "drug", "dose").drop_nulls("dose")


def vasopressors_cv(rows: pl.DataFrame, items: Items, config: CohortConfig) -> pl.DataFrame:
    """CareVue vasopressor rates: icustay_id, start, end, drug, dose.

    A rate counts at its charted time only, or is held until the drug's next entry (oddity 25).
    """
    doses = _with_drug(rows, items).drop_nulls(["rate", "t"])
    doses = doses.with_columns(dose=norepinephrine_equivalent(config, carevue=True))
    doses = doses.drop_nulls("dose").sort("icustay_id", "drug", "t", "dose")
    later = pl.col("t") + config.carevue_rate_hold_hours * HOUR
    end = later
    if config.carevue_rate_hold_hours:
        following = pl.col("t").shift(-1).over("icustay_id", "drug")
        end = pl.min_horizontal(later, following)
    return doses.select("icustay_id", pl.col("t").alias("start"), end.alias("end"), "drug", "dose")


def _with_drug(rows: pl.DataFrame, items: Items) -> pl.DataFrame:
    drugs = pl.DataFrame(
        {
            "itemid": pl.Series(list(items.vasopressors), dtype=pl.Int32),
            "drug": list(items.vasopressors.values()),
        }
    )
    return rows.join(drugs, on="itemid")


def _volume() -> pl.Expr:
    factor = pl.col("itemid").replace_strict(
        concepts.TONICITY, default=1.0, return_dtype=pl.Float64
    )
    return rounded(pl.col("amount") * factor)


def fluids_mv(rows: pl.DataFrame, items: Items, config: CohortConfig) -> pl.DataFrame:
    """MetaVision fluids: icustay_id, start, end, volume (isotonic mL), rate (mL/h; null: bolus)."""
    fluids = rows.filter(
        pl.col("itemid").is_in(items.fluids)
        & pl.col("amount").is_not_null()
        & pl.col("start").is_not_null()
    )
    if config.drop_rewritten_fluids:
        fluids = fluids.filter(pl.col("statusdescription").fill_null("") != "Rewritten")
    amount, rate = rounded(pl.col("amount")), rounded(pl.col("rate"))
    normalised = pl.when(amount == 0).then(0.0).otherwise(_volume() * rate / amount)
    return fluids.select(
        "icustay_id",
        "start",
        "end",
        volume=_volume(),
        rate=pl.when(pl.col("rate").is_not_null()).then(normalised),
    )


def fluids_cv(rows: pl.DataFrame, items: Items) -> pl.DataFrame:
    """CareVue fluids, every row a bolus: icustay_id, t, volume (isotonic mL)."""
    fluids = rows.filter(
        pl.col("itemid").is_in(items.fluids)
        & pl.col("amount").is_not_null()
        & pl.col("t").is_not_null()
    )
    return fluids.select("icustay_id", "t", volume=_volume())


def preadmission_fluids(mv: pl.DataFrame, cv: pl.DataFrame, items: Items) -> pl.DataFrame:
    """Fluids before the stay: icustay_id, volume; MetaVision's sum if any, else CareVue's."""
    sums = [
        rows.filter(pl.col("itemid").is_in(items.preadmission_fluids))
        .drop_nulls("amount")
        .group_by("icustay_id")
        .agg(volume=pl.col("amount").sort().sum())  # sorted: the same sum in any row order
        for rows in (mv, cv)
    ]
    return pl.concat(sums).unique("icustay_id", keep="first", maintain_order=True)


def urine_volumes(rows: pl.DataFrame, items: Items) -> pl.DataFrame:
    """Urine: icustay_id, t, volume; irrigant that went in is taken off."""
    urine = rows.filter(pl.col("itemid").is_in(items.urine))
    into = pl.col("itemid") == concepts.IRRIGANT_IN_ITEM
    volume = pl.when(into).then(-pl.col("amount")).otherwise(pl.col("amount"))
    return urine.select("icustay_id", "t", volume=volume)


def preadmission_urine(rows: pl.DataFrame) -> pl.DataFrame:
    """Urine before the stay: icustay_id, volume; distinct rows (section 4.2)."""
    urine = rows.filter(pl.col("itemid").is_in(concepts.PREADMISSION_URINE_ITEMS)).unique()
    return urine.group_by("icustay_id").agg(volume=pl.col("amount").sort().sum())
