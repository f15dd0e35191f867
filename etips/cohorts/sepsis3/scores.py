"""Derived variables: ratios, SOFA and SIRS (docs/cohort/rules.md section 14)."""

import numpy as np
import polars as pl

from etips.cohorts.sepsis3.grid import Bools, Floats
from etips.cohorts.sepsis3.recent import recent_hours, recent_sum
from etips.cohorts.sepsis3.rules import Rules

SOFA_PARTS = ("sofa_resp", "sofa_plt", "sofa_bili", "sofa_circ", "sofa_gcs", "sofa_renal")
_MAX_AGE_DAYS = 150 * 365.25
_AGE_IF_HIDDEN_DAYS = 91.4 * 365.25  # births of the oldest are shifted by 300 years, to hide them


def _largest(*scored: tuple[int, Bools]) -> Floats:
    """The largest score whose condition holds, NaN where none does (a hole)."""
    part = np.full(scored[0][1].shape, np.nan)
    for score, holds in sorted(scored, key=lambda pair: pair[0]):
        part[holds] = score
    return part


def respiratory_part(ratio: Floats, *, closed: bool = False) -> Floats:
    """P/F; ventilation is ignored. Exactly 400 is a hole unless `closed`."""
    return _largest(
        (0, (ratio > 400) | (closed & (ratio == 400))),
        (1, (ratio >= 300) & (ratio < 400)),
        (2, (ratio >= 200) & (ratio < 300)),
        (3, (ratio >= 100) & (ratio < 200)),
        (4, ratio < 100),
    )


def platelet_part(platelets: Floats, *, closed: bool = False) -> Floats:
    """Platelets in 10^9/L. Exactly 150 is a hole unless `closed`."""
    return _largest(
        (0, (platelets > 150) | (closed & (platelets == 150))),
        (1, (platelets >= 100) & (platelets < 150)),
        (2, (platelets >= 50) & (platelets < 100)),
        (3, (platelets >= 20) & (platelets < 50)),
        (4, platelets < 20),
    )


def bilirubin_part(bilirubin: Floats, *, closed: bool = False) -> Floats:
    """Total bilirubin in mg/dL. Exactly 12 is a hole unless `closed`."""
    return _largest(
        (0, bilirubin < 1.2),
        (1, (bilirubin >= 1.2) & (bilirubin < 2)),
        (2, (bilirubin >= 2) & (bilirubin < 6)),
        (3, (bilirubin >= 6) & (bilirubin < 12)),
        (4, (bilirubin > 12) | (closed & (bilirubin == 12))),
    )


def circulation_part(pressure: Floats, dose: Floats, *, low_scores_one: bool = False) -> Floats:
    """Mean pressure (mmHg) and vasopressor dose (mcg/kg/min).

    In the scripts a pressure below 65 scores 2; `low_scores_one` gives 1 below 70 (oddity 4).
    """
    low = pressure < 65
    return _largest(
        (0, pressure >= 70),
        (1, pressure < 70 if low_scores_one else (pressure >= 65) & (pressure < 70)),
        (2, np.zeros_like(low) if low_scores_one else low),
        (3, (dose > 0) & (dose <= 0.1)),
        (4, dose > 0.1),
    )


def coma_part(gcs: Floats) -> Floats:
    """Glasgow coma scale; step means need not be whole numbers."""
    return _largest(
        (0, gcs > 14),
        (1, (gcs > 12) & (gcs <= 14)),
        (2, (gcs > 9) & (gcs <= 12)),
        (3, (gcs > 5) & (gcs <= 9)),
        (4, gcs <= 5),
    )


def renal_part(
    creatinine: Floats,
    urine: Floats,
    *,
    closed: bool = False,
    has_urine: Bools | None = None,
    share: Floats | float = 1.0,
) -> Floats:
    """Creatinine (mg/dL) and urine of four hours (mL); 84 and 34 are 500 and 200 mL a day over 6.

    Creatinine of exactly 5 with urine of 84 or more is a hole unless `closed`.

    Args:
        creatinine: Shape (n,).
        urine: Shape (n,).
        closed: Whether the hole is closed.
        has_urine: Steps with a urine record; only there does urine count (oddity 2, corrected).
        share: How much of the four hours the urine is of.
    """
    counts = np.ones(urine.shape, bool) if has_urine is None else has_urine
    return _largest(
        (0, creatinine < 1.2),
        (1, (creatinine >= 1.2) & (creatinine < 2)),
        (2, (creatinine >= 2) & (creatinine < 3.5)),
        (3, ((creatinine >= 3.5) & (creatinine < 5)) | (counts & (urine < 84 * share))),
        (4, (creatinine > 5) | (closed & (creatinine == 5)) | (counts & (urine < 34 * share))),
    )


def sofa_parts(rows: pl.DataFrame, rules: Rules) -> dict[str, Floats]:
    """The six parts of SOFA per row; NaN marks a hole of the score table."""
    column = {
        name: rows[name].to_numpy()
        for name in (
            "PaO2_FiO2", "Platelets_count", "Total_bili", "MeanBP", "max_dose_vaso", "GCS",
            "Creatinine",
        )
    }  # fmt: skip
    closed = rules.close_sofa_holes
    urine, n_records = (
        recent_sum(rows, name, rules).to_numpy() for name in ("output_4hourly", "n_urine_records")
    )
    recorded = n_records > 0 if rules.renal_score_needs_urine_record else None
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
            has_urine=recorded,
            share=recent_hours(rows, rules).to_numpy(),
        ),
    )
    return dict(zip(SOFA_PARTS, parts, strict=True))


def sofa(parts: dict[str, Floats], *, closed: bool) -> Floats:
    """Sum of the parts. A row with a hole scores 0 in all, or 0 in that part if `closed`."""
    stacked = np.stack([parts[name] for name in SOFA_PARTS])
    total: Floats = np.nan_to_num(stacked).sum(axis=0)
    if not closed:
        total[np.isnan(stacked).any(axis=0)] = 0
    return total


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


def hazen_quantile(values: Floats, share: float) -> float:
    """Quantile at positions (k - 0.5) / n with linear interpolation between them."""
    return float(np.quantile(values, share, method="hazen"))


def add_ratios(rows: pl.DataFrame, *, capped: bool, reference: Bools | None = None) -> pl.DataFrame:
    """PaO2_FiO2 and Shock_Index, after imputation.

    Args:
        rows: Needs paO2, FiO2_1, HR, SysBP.
        capped: Whether the shock index is cut at its 99.9th percentile (pass 2).
        reference: Rows that the mean and the percentile are taken from; all if left out.
    """
    pao2, fio2, rate, pressure = (
        rows[name].to_numpy() for name in ("paO2", "FiO2_1", "HR", "SysBP")
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        oxygenation, shock = pao2 / fio2, rate / pressure
    shock = np.where(np.isinf(shock), np.nan, shock)
    judged = shock if reference is None else shock[reference]
    known = judged[~np.isnan(judged)]
    if known.size:
        shock = np.where(np.isnan(shock), known.mean(), shock)
    if capped and known.size:
        filled = shock if reference is None else shock[reference]
        shock = np.minimum(shock, hazen_quantile(filled, 0.999))
    return rows.with_columns(PaO2_FiO2=pl.Series(oxygenation), Shock_Index=pl.Series(shock))


def tidy(rows: pl.DataFrame) -> pl.DataFrame:
    """Ventilation to 0/1, gender to 0/1, hidden ages, no vasopressor to 0 (section 14)."""
    ventilated = pl.col("mechvent").fill_nan(0) > 0
    hidden = pl.col("age") > _MAX_AGE_DAYS
    return rows.with_columns(
        mechvent=ventilated.cast(pl.Float64),
        gender=pl.col("gender") - 1,
        age=pl.when(hidden).then(_AGE_IF_HIDDEN_DAYS).otherwise(pl.col("age")),
        median_dose_vaso=pl.col("median_dose_vaso").fill_nan(0),
        max_dose_vaso=pl.col("max_dose_vaso").fill_nan(0),
    )


def add_scores(rows: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """SOFA with its parts, and SIRS."""
    parts = sofa_parts(rows, rules)
    criteria = (rows[name].to_numpy() for name in ("Temp_C", "HR", "RR", "paCO2", "WBC_count"))
    return rows.with_columns(
        **{name: pl.Series(part) for name, part in parts.items()},
        SOFA=pl.Series(sofa(parts, closed=rules.close_sofa_holes)),
        SIRS=pl.Series(sirs(*criteria)),
    )
