"""Events of a block of stays to rows of steps before imputation.

The rules: docs/cohort/rules.md sections 7 to 12.
"""

import numpy as np
import polars as pl

from etips.cohorts.sepsis3.cross_estimates import cross_estimate, hold_all
from etips.cohorts.sepsis3.doses import fluid_columns, urine_columns, vasopressor_columns
from etips.cohorts.sepsis3.events import Events
from etips.cohorts.sepsis3.grid import INDEX, Bools, Floats, Grid, Ints, drop_outliers, make_grid
from etips.cohorts.sepsis3.rules import Rules, Window
from etips.cohorts.sepsis3.steps import Steps, make_steps
from etips.cohorts.sepsis3.variables import CHARTED, DELAY, DEMOGRAPHICS, HOUR, PASS_1_COLUMNS


def step_rows(
    events: Events, stays: pl.DataFrame, rules: Rules, *, second_pass: bool
) -> pl.DataFrame:
    """Rows of one pass, sorted by stay and block number; missing values are NaN.

    Args:
        events: What happened to these stays.
        stays: Demographics and `onset` of the stays to build, sorted by stay.
        rules: The switches.
        second_pass: Which window, and whether the two extra outlier limits apply.

    Returns:
        `PASS_1_COLUMNS` and n_urine_records.
    """
    window = rules.window_2 if second_pass else rules.window_1
    windows = _windows(stays, window)
    grid = make_grid(events, windows, rules)
    drop_outliers(grid, rules, second_pass=second_pass)
    cross_estimate(grid, rules)
    hold_all(grid, rules)
    anchor = _of_stay(grid, windows, "opens") if rules.anchor_at_window else None
    opening = _in_icu(grid, stays) if rules.open_steps_in_icu_only else None
    steps = make_steps(grid, rules, anchor=anchor, opening=opening)
    volumes = {
        **vasopressor_columns(events, steps, rules),
        **fluid_columns(events, steps),
        **urine_columns(events, steps, rules),
    }
    return _assemble(steps, volumes, stays)


def _windows(stays: pl.DataFrame, window: Window) -> pl.DataFrame:
    return stays.select(
        "stay",
        opens=pl.col("onset") - int(window.before * HOUR),
        closes=pl.col("onset") + int(window.after * HOUR),
    )


def _of_stay(grid: Grid, stays: pl.DataFrame, name: str) -> Ints:
    """A column of `stays`, sorted by stay, for each row of the grid."""
    position = np.searchsorted(stays["stay"].to_numpy(), grid.stay)
    values: Ints = stays[name].to_numpy()[position]
    return values


def _in_icu(grid: Grid, stays: pl.DataFrame) -> Bools:
    """Rows inside the ICU stay itself; only they open a step in the clean profile (oddity 15)."""
    enters = _of_stay(grid, stays, "icu_in")
    leaves = _of_stay(grid, stays.with_columns(pl.col("icu_out").fill_null(2**52)), "icu_out")
    inside: Bools = (enters <= grid.t) & (grid.t <= leaves)
    return inside


def _assemble(steps: Steps, volumes: dict[str, Floats], stays: pl.DataFrame) -> pl.DataFrame:
    """Put keys, demographics, means and volumes side by side."""
    owner = np.searchsorted(stays["stay"].to_numpy(), steps.stays)[steps.owner]
    known = [name for name in DEMOGRAPHICS if name != DELAY]
    frame = stays.select(*known, "discharge")[owner]
    last = pl.Series(steps.last[steps.owner])
    frame = frame.with_columns(
        bloc=pl.Series(steps.number + 1),
        icustayid=pl.Series(steps.stays[steps.owner]),
        charttime=pl.Series(steps.t0),
        **{DELAY: (pl.col("discharge") - last) / HOUR},
        **{name: pl.Series(steps.means[INDEX[name]]) for name in CHARTED},
        **{name: pl.Series(values) for name, values in volumes.items()},
        Shock_Index=pl.lit(np.nan),
        PaO2_FiO2=pl.lit(np.nan),
    )
    frame = frame.with_columns(cumulated_balance=pl.col("input_total") - pl.col("output_total"))
    return frame.select(*PASS_1_COLUMNS, "n_urine_records")
