"""Raw rows of a block of stays to four-hour rows before imputation.

The rules: docs/cohort/rules.md sections 7 to 12.
"""

import numpy as np
import polars as pl

from etips.cohorts.mimic3.columns import CHARTED, DELAY, DEMOGRAPHICS, HOUR, PASS_1_COLUMNS
from etips.cohorts.mimic3.concepts import Items
from etips.cohorts.mimic3.config import CohortConfig, Window
from etips.cohorts.mimic3.doses import fluid_columns, urine_columns, vasopressor_columns
from etips.cohorts.mimic3.estimates import cross_estimate, hold_all
from etips.cohorts.mimic3.extract import Block
from etips.cohorts.mimic3.grid import INDEX, Bools, Floats, Grid, Ints, drop_outliers, make_grid
from etips.cohorts.mimic3.steps import Steps, make_steps


def four_hour_rows(
    block: Block, stays: pl.DataFrame, items: Items, config: CohortConfig, *, second_pass: bool
) -> pl.DataFrame:
    """Rows of one pass, sorted by stay and block number; missing values are NaN.

    Args:
        block: Raw rows of these stays.
        stays: Demographics and `onset` of the stays to build, sorted by icustay_id.
        items: Which column each item belongs to.
        config: The switches.
        second_pass: Which window, and whether the two extra outlier limits apply.

    Returns:
        `PASS_1_COLUMNS` and n_urine_records.
    """
    window = config.window_2 if second_pass else config.window_1
    windows = _windows(stays, window)
    grid = make_grid(block, windows, items, config)
    drop_outliers(grid, config, second_pass=second_pass)
    cross_estimate(grid, config)
    hold_all(grid, config)
    anchor = _of_stay(grid, windows, "opens") if config.anchor_at_window else None
    opening = _in_icu(grid, stays) if config.open_steps_in_icu_only else None
    steps = make_steps(grid, config, anchor=anchor, opening=opening)
    volumes = {
        **vasopressor_columns(block, steps, items, config),
        **fluid_columns(block, steps, items, config),
        **urine_columns(block, steps, items, config),
    }
    return _assemble(steps, volumes, stays)


def _windows(stays: pl.DataFrame, window: Window) -> pl.DataFrame:
    return stays.select(
        "icustay_id",
        opens=pl.col("onset") - int(window.before * HOUR),
        closes=pl.col("onset") + int(window.after * HOUR),
    )


def _of_stay(grid: Grid, stays: pl.DataFrame, name: str) -> Ints:
    """A column of `stays`, sorted by icustay_id, for each row of the grid."""
    position = np.searchsorted(stays["icustay_id"].to_numpy(), grid.stay)
    values: Ints = stays[name].to_numpy()[position]
    return values


def _in_icu(grid: Grid, stays: pl.DataFrame) -> Bools:
    """Rows inside the ICU stay itself; only they open a step in the clean profile (oddity 15)."""
    intime = _of_stay(grid, stays, "intime")
    outtime = _of_stay(grid, stays.with_columns(pl.col("outtime").fill_null(2**52)), "outtime")
    inside: Bools = (intime <= grid.t) & (grid.t <= outtime)
    return inside


def _assemble(steps: Steps, volumes: dict[str, Floats], stays: pl.DataFrame) -> pl.DataFrame:
    """Put keys, demographics, means and volumes side by side."""
    owner = np.searchsorted(stays["icustay_id"].to_numpy(), steps.stays)[steps.owner]
    known = [name for name in DEMOGRAPHICS if name != DELAY]
    frame = stays.select(*known, "dischtime")[owner]
    last = pl.Series(steps.last[steps.owner])
    frame = frame.with_columns(
        bloc=pl.Series(steps.number + 1),
        icustayid=pl.Series(steps.stays[steps.owner]),
        charttime=pl.Series(steps.t0),
        **{DELAY: (pl.col("dischtime") - last) / HOUR},
        **{name: pl.Series(steps.means[INDEX[name]]) for name in CHARTED},
        **{name: pl.Series(values) for name, values in volumes.items()},
        Shock_Index=pl.lit(np.nan),
        PaO2_FiO2=pl.lit(np.nan),
    )
    frame = frame.with_columns(cumulated_balance=pl.col("input_total") - pl.col("output_total"))
    return frame.select(*PASS_1_COLUMNS, "n_urine_records")
