"""Derived variables (section 14) and who is left out by them (section 15)."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl

from etips.cohorts.sepsis3.grid import Bools, Floats
from etips.cohorts.sepsis3.rules import Rules
from etips.cohorts.sepsis3.variables import DELAY

SOFA_PARTS: Final = (
    "sofa_resp", "sofa_plt", "sofa_bili", "sofa_circ", "sofa_gcs", "sofa_renal",
)  # fmt: skip
_MAX_AGE_DAYS: Final = 150 * 365.25
_AGE_IF_HIDDEN_DAYS: Final = 91.4 * 365.25  # births of the oldest are shifted by 300 years
_FULL_RECORD: Final = 20  # rows of four hours; fewer means the record ended early
_DEATHS: Final = "death during data collection"


def recent_sum(rows: pl.DataFrame, name: str, rules: Rules) -> pl.Series:
    """Sum of a column over the steps of the last four hours that the stay has, shape (n,).

    Limits on what runs in or out were written for steps of four hours. Shorter steps look back as
    far, so that a rule means the same whatever the length of a step. `rows` are sorted by stay and
    block.
    """
    if rules.steps_per_rule == 1:
        return rows[name]
    period = f"{rules.steps_per_rule}i"
    numbered = rows.with_columns(pl.col("bloc").cast(pl.Int64))
    rolling = numbered.rolling("bloc", period=period, closed="right", group_by="icustayid")
    return rolling.agg(pl.col(name).sum())[name]


def _points(value: Floats, beyond: Sequence[Bools], hole: Bools | None = None) -> Floats:
    """How many limits a value lies beyond; NaN where it is unknown or in a hole of the table."""
    points: Floats = np.sum(beyond, axis=0).astype(np.float64)
    points[np.isnan(value) if hole is None else np.isnan(value) | hole] = np.nan
    return points


def respiratory_part(ratio: Floats, *, closed: bool = False) -> Floats:
    """P/F; ventilation is ignored. Exactly 400 is a hole unless `closed`."""
    return _points(ratio, [ratio < x for x in (400, 300, 200, 100)], (ratio == 400) & (not closed))


def platelet_part(count: Floats, *, closed: bool = False) -> Floats:
    """Platelets in 10^9/L. Exactly 150 is a hole unless `closed`."""
    return _points(count, [count < x for x in (150, 100, 50, 20)], (count == 150) & (not closed))


def bilirubin_part(level: Floats, *, closed: bool = False) -> Floats:
    """Total bilirubin in mg/dL. Exactly 12 is a hole unless `closed`."""
    return _points(level, [level >= x for x in (1.2, 2, 6, 12)], (level == 12) & (not closed))


def coma_part(gcs: Floats) -> Floats:
    """Glasgow coma scale; step means need not be whole numbers."""
    return _points(gcs, [gcs <= x for x in (14, 12, 9, 5)])


def circulation_part(pressure: Floats, dose: Floats, *, low_scores_one: bool = False) -> Floats:
    """Mean pressure (mmHg) and vasopressor dose (mcg/kg/min).

    In the scripts a pressure below 65 scores 2; `low_scores_one` gives 1 below 70 (oddity 4).
    """
    limits = (70,) if low_scores_one else (70, 65)
    of_dose = np.where(dose > 0.1, 4, np.where(dose > 0, 3, np.nan))
    return np.fmax(_points(pressure, [pressure < x for x in limits]), of_dose)


def renal_part(
    creatinine: Floats,
    urine: Floats,
    *,
    closed: bool = False,
    has_urine: Bools | None = None,
    share: Floats | float = 1.0,
) -> Floats:
    """Creatinine (mg/dL) and urine of four hours (mL); 84 and 34 are 500 and 200 mL a day over 6.

    Creatinine of exactly 5 with urine of 84 or more is a hole unless `closed`. Given `has_urine`,
    urine counts in steps with a record only (oddity 2, corrected). `share` is how much of the four
    hours the urine is of.
    """
    limits = [creatinine >= x for x in (1.2, 2, 3.5, 5)]
    of_blood = _points(creatinine, limits, (creatinine == 5) & (not closed))
    counts = np.ones(urine.shape, bool) if has_urine is None else has_urine
    low, lowest = counts & (urine < 84 * share), counts & (urine < 34 * share)
    return np.fmax(of_blood, np.where(lowest, 4, np.where(low, 3, np.nan)))


def sirs(
    temperature: Floats, heart_rate: Floats, breaths: Floats, carbon_dioxide: Floats, white: Floats
) -> Floats:
    """SIRS 0-4: temperature (deg C), heart rate, breathing rate or paCO2, white cells."""
    criteria = (
        (temperature >= 38) | (temperature <= 36),
        heart_rate > 90,
        (breaths >= 20) | (carbon_dioxide <= 32),
        (white >= 12) | (white < 4),
    )
    score: Floats = np.sum(criteria, axis=0).astype(np.float64)
    return score


def add_scores(rows: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """SOFA with its parts, and SIRS.

    A part is NaN in a hole of its table. A row with a hole scores 0 in all, or 0 in that part if
    holes are closed.
    """
    column = {name: series.to_numpy() for name, series in rows.to_dict().items()}
    closed = rules.close_sofa_holes
    rows = rows.with_columns(_one=pl.lit(1.0))
    urine, n_records, n_steps = (
        recent_sum(rows, name, rules).to_numpy()
        for name in ("output_4hourly", "n_urine_records", "_one")
    )
    parts = (
        respiratory_part(column["PaO2_FiO2"], closed=closed),
        platelet_part(column["Platelets_count"], closed=closed),
        bilirubin_part(column["Total_bili"], closed=closed),
        circulation_part(
            column["MeanBP"], column["max_dose_vaso"], low_scores_one=rules.low_pressure_scores_one
        ),
        coma_part(column["GCS"]),
        renal_part(
            column["Creatinine"],
            urine,
            closed=closed,
            has_urine=n_records > 0 if rules.renal_score_needs_urine_record else None,
            share=n_steps / rules.steps_per_rule,
        ),
    )
    sofa = np.nan_to_num(parts).sum(axis=0)
    if not closed:
        sofa[np.isnan(parts).any(axis=0)] = 0
    criteria = (column[name] for name in ("Temp_C", "HR", "RR", "paCO2", "WBC_count"))
    return rows.drop("_one").with_columns(
        **{name: pl.Series(part) for name, part in zip(SOFA_PARTS, parts, strict=True)},
        SOFA=pl.Series(sofa),
        SIRS=pl.Series(sirs(*criteria)),
    )


def add_ratios(rows: pl.DataFrame, *, capped: bool, reference: Bools | None = None) -> pl.DataFrame:
    """PaO2_FiO2 and Shock_Index, after imputation.

    `capped`, the shock index is cut at its 99.9th percentile (pass 2); the mean and the percentile
    are taken from the `reference` rows, from all if left out.
    """
    pao2, fio2, rate, pressure = (
        rows[name].to_numpy() for name in ("paO2", "FiO2_1", "HR", "SysBP")
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        oxygenation, shock = pao2 / fio2, rate / pressure
    shock = np.where(np.isinf(shock), np.nan, shock)
    chosen = slice(None) if reference is None else reference
    known = shock[chosen][~np.isnan(shock[chosen])]
    if known.size:
        shock = np.where(np.isnan(shock), known.mean(), shock)
        if capped:
            shock = np.minimum(shock, np.quantile(shock[chosen], 0.999, method="hazen"))
    return rows.with_columns(PaO2_FiO2=pl.Series(oxygenation), Shock_Index=pl.Series(shock))


def tidy(rows: pl.DataFrame) -> pl.DataFrame:
    """Ventilation to 0/1, gender to 0/1, hidden ages, no vasopressor to 0 (section 14)."""
    hidden = pl.col("age") > _MAX_AGE_DAYS
    return rows.with_columns(
        (pl.col("mechvent").fill_nan(0) > 0).cast(pl.Float64),
        pl.col("gender") - 1,
        age=pl.when(hidden).then(_AGE_IF_HIDDEN_DAYS).otherwise(pl.col("age")),
        median_dose_vaso=pl.col("median_dose_vaso").fill_nan(0),
        max_dose_vaso=pl.col("max_dose_vaso").fill_nan(0),
    )


def care_withdrawn(rules: Rules) -> pl.Expr:
    """15.4: vasopressors stopped while still severely ill, death within 90 days, record cut short.

    The scripts take the row whose block number equals the number of rows as the last one, so that a
    stay with gaps may escape (oddity 23).
    """
    bloc, dose, sofa = pl.col("bloc"), pl.col("max_dose_vaso"), pl.col("SOFA")
    n_rows = pl.len().over("icustayid")
    last = bloc.max().over("icustayid") if rules.true_last_row else n_rows
    short = min(_FULL_RECORD * rules.steps_per_rule, rules.most_steps)
    return (
        (pl.col("mortality_90d") == 1)
        & (n_rows < short)
        & (dose.max().over("icustayid") > 0.3)
        & (bloc == last)
        & (dose == 0)
        & (sofa >= sofa.max().over("icustayid") / 2)
    )


_DIED_IN_COLLECTION: Final = (pl.col("died_within_48h_of_out_time") == 1) & (pl.col(DELAY) < 24)
"""15.5: died within 48 h of leaving, record ending under a day before."""


def exclude(rows: pl.DataFrame, rules: Rules) -> tuple[pl.DataFrame, dict[str, int]]:
    """Apply the rules of section 15 in turn; return the rows left and how many stays each dropped.

    A rule drops the stays of the rows that it is true of. The one on deaths is void in the scripts,
    which lose single rows instead (oddity 1).
    """
    output, intake = (recent_sum(rows, f"{name}_4hourly", rules) for name in ("output", "input"))
    rows = rows.with_columns(_output=output, _input=intake)
    first_row = pl.col("bloc") == pl.col("bloc").min().over("icustayid")
    going = {
        "output above 12,000 mL in a step": pl.col("_output") > 12_000,
        "bilirubin above 10,000": pl.col("Total_bili") > 10_000,
        "input above 10,000 mL in a step": pl.col("_input") > 10_000,
        "possible withdrawal of care": care_withdrawn(rules),
        _DEATHS: first_row & _DIED_IN_COLLECTION & rules.drop_deaths_in_collection,
        "maximum SOFA below 2": pl.col("SOFA").max().over("icustayid") < rules.least_sofa,
    }
    scattered = not (rules.no_scattered_deletion or rules.drop_deaths_in_collection)
    dropped, left = {}, rows["icustayid"].n_unique()
    for name, condition in going.items():
        if scattered and name == _DEATHS:
            rows = without_scattered_rows(rows)
        stays = rows.filter(condition)["icustayid"].unique()
        rows = rows.filter(~pl.col("icustayid").is_in(stays.implode()))
        dropped[name] = left - rows["icustayid"].n_unique()
        left -= dropped[name]
    return rows.drop("_output", "_input"), dropped


def without_scattered_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Lose the rows that the scripts lose where they mean to drop the dying (oddity 1).

    Their mask has one entry a stay, in order, and is applied to the rows of the table from the top:
    if the third stay died, the third row goes, whosever it is.
    """
    first = rows.group_by("icustayid", maintain_order=True).first()
    hit = first.select(_DIED_IN_COLLECTION).to_series().arg_true()
    return rows.filter(~pl.int_range(pl.len()).is_in(hit.implode()))
