"""Vasopressor rates to norepinephrine equivalents (docs/cohort/rules.md section 4.2)."""

from typing import Final

import polars as pl

from etips.cohorts.sepsis3.events import PER_KG, PER_MINUTE, UNITS_PER_HOUR, UNITS_PER_MINUTE
from etips.cohorts.sepsis3.rules import Rules
from etips.cohorts.sepsis3.variables import HOUR

BODY_WEIGHT_KG: Final = 80  # assumed whenever a rate is per minute and not per kg
VASOPRESSIN_LIMIT: Final = 0.2


def rounded(value: pl.Expr) -> pl.Expr:
    """Three decimals, half away from zero, as PostgreSQL rounds `numeric`.

    A double such as 0.0005 lies a hair below the decimal it stands for; PostgreSQL sees 15
    significant digits, so a value within that hair of a half counts as a half.
    """
    scaled = value.abs() * 1000
    return value.sign() * (scaled + scaled * 1e-15 + 0.5).floor() / 1000


def norepinephrine_equivalent(rules: Rules) -> pl.Expr:
    """Dose in mcg/kg/min from `drug`, `rate` and `unit`; null for any other unit.

    Args:
        rules: Potencies, and whether a vasopressin rate above 0.2 is read as per hour.
    """
    potency, rate, unit = rules.potency, pl.col("rate"), pl.col("unit")
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
        pl.when(unit == PER_KG)
        .then(rate * factor)
        .when(unit == PER_MINUTE)
        .then(rate * factor / BODY_WEIGHT_KG)
    )
    vasopressin = _vasopressin(rules)
    dose = pl.when(pl.col("drug") == "vasopressin").then(vasopressin).otherwise(catecholamine)
    return rounded(dose)


def _vasopressin(rules: Rules) -> pl.Expr:
    """Oddity 24: above 0.2 the rate is taken as per hour whatever its unit says."""
    rate, unit = pl.col("rate"), pl.col("unit")
    per_minute = rate * rules.potency.vasopressin_per_unit_per_minute
    is_minute, is_hour = unit == UNITS_PER_MINUTE, unit == UNITS_PER_HOUR
    if rules.vasopressin_as_charted:
        return pl.when(is_minute).then(per_minute).when(is_hour).then(per_minute / 60)
    return (
        pl.when(rate > VASOPRESSIN_LIMIT)
        .then(per_minute / 60)
        .when(is_minute)
        .then(per_minute)
        .when(is_hour)
        .then(per_minute / 60)
    )


def running_doses(vasopressors: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Doses and how long they run: stay, start, end, drug, dose.

    A rate charted at a moment counts there only, or is held until the drug's next one (oddity 25).

    Args:
        vasopressors: As in `Events`.
        rules: Potencies and the hold.
    """
    doses = vasopressors.with_columns(dose=norepinephrine_equivalent(rules)).drop_nulls("dose")
    charted = doses.filter(pl.col("end").is_null()).sort("stay", "drug", "start", "dose")
    end = pl.col("start") + rules.rate_hold_hours * HOUR
    if rules.rate_hold_hours:
        end = pl.min_horizontal(end, pl.col("start").shift(-1).over("stay", "drug"))
    parts = (doses.filter(pl.col("end").is_not_null()), charted.with_columns(end=end))
    return pl.concat([part.select("stay", "start", "end", "drug", "dose") for part in parts])
