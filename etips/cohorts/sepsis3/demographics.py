"""One row per ICU stay: gender, readmission, deaths (docs/cohort/rules.md section 4.2)."""

from typing import Final

import polars as pl

from etips.cohorts.sepsis3.rules import Rules
from etips.cohorts.sepsis3.variables import HOUR

DAY: Final = 24 * HOUR
ADULT_DAYS: Final = 6574  # 18 years; strictly older is adult (section 6.1)


def demographics(stays: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Derive the per-stay columns of the final table from times in seconds.

    Args:
        stays: All stays of the source, as an `Extraction` gives them.
        rules: Intervals and the meaning of a readmission.
    """
    interval = _plain if rules.plain_intervals else _calendar
    earlier = pl.col("icu_in").rank("min") > 1  # stays that begin together have the same rank
    group = "admission" if rules.readmission_within_admission else "patient"
    return stays.with_columns(
        gender=pl.when(pl.col("gender") == "M").then(1.0).when(pl.col("gender") == "F").then(2.0),
        elixhauser=pl.lit(None, pl.Float64),  # section 20, oddity 32: skipped
        re_admission=_flag(earlier.over(group)),
        died_in_hosp=_flag(interval("death", "discharge") <= DAY),
        mortality_90d=_flag(interval("death", "icu_in") <= 90 * DAY),
        died_within_48h_of_out_time=_flag((pl.col("death") - pl.col("icu_out")).abs() < 2 * DAY),
    ).sort("stay")


def is_adult() -> pl.Expr:
    """Older than 18 years at ICU admission (section 6.1)."""
    return pl.col("age") > ADULT_DAYS


def _flag(holds: pl.Expr) -> pl.Expr:
    """A null date of death means no."""
    return holds.fill_null(False).cast(pl.Float64)


def _plain(later: str, earlier: str) -> pl.Expr:
    return pl.col(later) - pl.col(earlier)


def _calendar(later: str, earlier: str) -> pl.Expr:
    """Seconds between two times as PostgreSQL's `age()` counts them.

    Whole calendar months first, then the remaining days, where a borrowed month has the length of
    the earlier date's month; a month then counts 30 days.
    """
    last, first = pl.max_horizontal(later, earlier), pl.min_horizontal(later, earlier)
    last_date, first_date = (pl.from_epoch(t, time_unit="s") for t in (last, first))
    clock = last % DAY - first % DAY
    days = last_date.dt.day().cast(pl.Int64) - first_date.dt.day() - (clock < 0).cast(pl.Int64)
    months = (
        12 * (last_date.dt.year() - first_date.dt.year()).cast(pl.Int64)
        + last_date.dt.month()
        - first_date.dt.month()
        - (days < 0).cast(pl.Int64)
    )
    month_length = first_date.dt.month_end().dt.day().cast(pl.Int64)
    days = pl.when(days < 0).then(days + month_length).otherwise(days)
    length = (30 * months + days) * DAY + clock % DAY
    sign = pl.when(pl.col(later) >= pl.col(earlier)).then(1).otherwise(-1)
    known = pl.col(later).is_not_null() & pl.col(earlier).is_not_null()
    return pl.when(known).then(sign * length)
