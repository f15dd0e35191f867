"""Who is a candidate: one row per ICU stay, suspected infection and its onset.

The rules: docs/cohort/rules.md sections 4.2 (deaths, readmission), 5 and 6 (infection).
"""

from typing import Final, Literal

import polars as pl

from etips.cohorts.sepsis3.rules import AntibioticOrder, Rules
from etips.cohorts.sepsis3.variables import HOUR

DAY: Final = 24 * HOUR
ADULT_DAYS: Final = 6574  # 18 years; strictly older is adult (section 6.1)
_MARGIN: Final = 48 * HOUR  # how far outside a stay an antibiotic or a sample may lie
_ANTIBIOTIC_FIRST: Final = 24 * HOUR
_SAMPLE_FIRST: Final = 72 * HOUR


def demographics(stays: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Derive the per-stay columns of the final table from times in seconds."""

    def interval(later: str, earlier: str) -> pl.Expr:
        plain = pl.col(later) - pl.col(earlier)
        return plain if rules.plain_intervals else _calendar(later, earlier)

    earlier = pl.col("icu_in").rank("min") > 1  # stays that begin together have the same rank
    group = "admission" if rules.readmission_within_admission else "patient"
    flags = {
        "re_admission": earlier.over(group),
        "died_in_hosp": interval("death", "discharge") <= DAY,
        "mortality_90d": interval("death", "icu_in") <= 90 * DAY,
        "died_within_48h_of_out_time": (pl.col("death") - pl.col("icu_out")).abs() < 2 * DAY,
    }
    return stays.with_columns(
        gender=pl.when(pl.col("gender") == "M").then(1.0).when(pl.col("gender") == "F").then(2.0),
        elixhauser=pl.lit(None, pl.Float64),  # section 20, oddity 32: skipped
        # without a date of death nobody died
        **{name: holds.fill_null(False).cast(pl.Float64) for name, holds in flags.items()},
    ).sort("stay")


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


def attach_samples(samples: pl.DataFrame, stays: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Stay and t of the samples (patient, admission, t) that belong to one."""
    rows = samples.with_row_index("row")
    parts = [_attach(rows, stays, "patient", rules)]
    if not rules.attach_nearest_stay:
        rest, key = rows.join(parts[0], on="row", how="anti"), ("patient", "admission")
        parts.append(rest.join(_only_stays(stays, *key), on=key))
    return pl.concat([part.select("stay", "t") for part in parts])


def attach_antibiotics(given: pl.DataFrame, stays: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Give each antibiotic without a stay one of its admission; the others keep theirs.

    Returns:
        stay, t, entry and own (whether the stay id was the row's own).
    """
    has_own = pl.col("stay").is_not_null()
    rest = given.filter(~has_own).drop("stay").with_row_index("row")
    parts = (
        given.filter(has_own).with_columns(own=True),
        _attach(rest, stays, "admission", rules).with_columns(own=False),
    )
    return pl.concat([part.select("stay", "t", "entry", "own") for part in parts])


def _attach(rows: pl.DataFrame, stays: pl.DataFrame, key: str, rules: Rules) -> pl.DataFrame:
    """Rows with the stay that they are given by `key`; rows without one are left out.

    The scripts take the last stay within 48 h, else the only stay there is, whatever the time
    (section 5). Corrected, it is the nearest one within 48 h (oddity 13).
    """
    pairs = rows.join(stays.select(key, "stay", "icu_in", "icu_out"), on=key)
    t, enters, leaves = pl.col("t"), pl.col("icu_in"), pl.col("icu_out")
    if rules.attach_nearest_stay:
        gap = pl.max_horizontal(enters - t, t - leaves, pl.lit(0))
        near = pairs.with_columns(gap=gap).filter(pl.col("gap") <= _MARGIN)
        near = near.sort("row", "gap", "icu_in", "stay")
        near = near.unique("row", keep="first", maintain_order=True)
        return near.select(*rows.columns, "stay")
    near = pairs.filter((enters - _MARGIN <= t) & (t <= leaves + _MARGIN))
    near = near.sort("row", "icu_in", "stay").unique("row", keep="last", maintain_order=True)
    near = near.select(*rows.columns, "stay")
    far = rows.join(near, on="row", how="anti").join(_only_stays(stays, key), on=key)
    return pl.concat([near, far.select(near.columns)])


def _only_stays(stays: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Stays that are alone under their key."""
    return stays.filter(pl.len().over(keys) == 1).select(*keys, "stay")


def find_onsets(antibiotics: pl.DataFrame, samples: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Onset of suspected infection of each stay that has one: stay, onset (section 6.1).

    The scripts test each antibiotic against the sample nearest to it, of two equally near the
    earlier one, and take the first antibiotic that passes. Corrected (oddity 11), it is the
    earliest onset that any antibiotic makes with any sample. `samples` are stay and t of
    microbiology and cultures together.
    """
    given = antibiotics.drop_nulls(["stay", "t"]).sort("stay", "t", "entry")
    taken = samples.drop_nulls().select("stay", sample="t").unique().sort("stay", "sample")
    t, before, after = pl.col("t"), pl.col("before"), pl.col("after")
    if rules.test_all_pairs:
        opened = given.with_columns(opens=t - _SAMPLE_FIRST)
        pairs = _with_nearest(opened, taken, "opens", "after")
        in_time = after <= t + _ANTIBIOTIC_FIRST
        onset: pl.Expr = pl.when(in_time).then(pl.min_horizontal("after", "t"))
        order = [pl.col("onset")]
    else:
        pairs = _with_nearest(_with_nearest(given, taken, "t", "before"), taken, "t", "after")
        use_before = (t - before <= after - t).fill_null(before.is_not_null())
        onset = (
            pl.when(~use_before & (after - t <= _ANTIBIOTIC_FIRST))
            .then(t)
            .when(use_before & (t - before <= _SAMPLE_FIRST))
            .then(before)
        )
        own_first = rules.antibiotic_order is AntibioticOrder.STAY_FIRST
        order = [~pl.col("own"), pl.col("entry"), t] if own_first else [t, pl.col("entry")]
    onsets = pairs.with_columns(onset=onset).drop_nulls("onset").sort("stay", *order)
    return onsets.unique("stay", keep="first", maintain_order=True).select("stay", "onset")


def _with_nearest(
    left: pl.DataFrame, taken: pl.DataFrame, on: str, name: Literal["before", "after"]
) -> pl.DataFrame:
    """Add the nearest sample of the stay on one side, equal times included.

    Both frames must be sorted by time within a stay, since Polars cannot check it.
    """
    return left.join_asof(
        taken.with_columns(pl.col("sample").alias(name)),
        by="stay",
        left_on=on,
        right_on="sample",
        strategy="backward" if name == "before" else "forward",
        coalesce=True,
        check_sortedness=False,
    )
