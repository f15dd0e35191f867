"""Who is left out at the end of pass 1, in order (docs/cohort/rules.md section 15)."""

from collections.abc import Callable
from typing import Final

import polars as pl

from etips.cohorts.sepsis3.recent import recent_sum
from etips.cohorts.sepsis3.rules import Rules
from etips.cohorts.sepsis3.variables import DELAY

Rule = Callable[[pl.DataFrame, Rules], pl.Series]
"""Rows and settings to the stays that a rule drops."""

_FULL_RECORD: Final = 20  # rows of four hours; fewer means the record ended early
_DIED_IN_COLLECTION: Final = (pl.col("died_within_48h_of_out_time") == 1) & (pl.col(DELAY) < 24)


def _stays_with(rows: pl.DataFrame, condition: pl.Expr | pl.Series) -> pl.Series:
    return rows.filter(condition)["icustayid"].unique()


def too_much_urine(rows: pl.DataFrame, rules: Rules) -> pl.Series:
    """15.1: more than 12 litres in four hours."""
    return _stays_with(rows, recent_sum(rows, "output_4hourly", rules) > 12_000)


def absurd_bilirubin(rows: pl.DataFrame, rules: Rules) -> pl.Series:  # noqa: ARG001
    """15.2: total bilirubin above 10,000."""
    return _stays_with(rows, pl.col("Total_bili") > 10_000)


def too_much_fluid(rows: pl.DataFrame, rules: Rules) -> pl.Series:
    """15.3: more than 10 litres in four hours."""
    return _stays_with(rows, recent_sum(rows, "input_4hourly", rules) > 10_000)


def care_withdrawn(rows: pl.DataFrame, rules: Rules) -> pl.Series:
    """15.4: vasopressors stopped while still severely ill, death within 90 days, record cut short.

    The scripts take the row whose block number equals the number of rows as the last one, so that a
    stay with gaps may escape (oddity 23).
    """
    n_rows = pl.len().over("icustayid")
    if rules.true_last_row:
        is_last = pl.col("bloc") == pl.col("bloc").max().over("icustayid")
    else:
        is_last = pl.col("bloc") == n_rows
    short = min(_FULL_RECORD * rules.steps_per_rule, rules.most_steps)
    return _stays_with(
        rows,
        (pl.col("mortality_90d") == 1)
        & (n_rows < short)
        & (pl.col("max_dose_vaso").max().over("icustayid") > 0.3)
        & is_last
        & (pl.col("max_dose_vaso") == 0)
        & (pl.col("SOFA") >= pl.col("SOFA").max().over("icustayid") / 2),
    )


def death_in_collection(rows: pl.DataFrame, rules: Rules) -> pl.Series:
    """15.5: died within 48 h of leaving, record ending under a day before.

    Void in the scripts, which lose single rows instead; see `without_scattered_rows`.
    """
    if not rules.drop_deaths_in_collection:
        return rows["icustayid"].clear()
    first = pl.col("bloc") == pl.col("bloc").min().over("icustayid")
    return _stays_with(rows, first & _DIED_IN_COLLECTION)


def mild(rows: pl.DataFrame, rules: Rules) -> pl.Series:
    """15.6: SOFA never reaches 2."""
    return _stays_with(rows, pl.col("SOFA").max().over("icustayid") < rules.least_sofa)


RULES: Final[dict[str, Rule]] = {
    "output above 12,000 mL in a step": too_much_urine,
    "bilirubin above 10,000": absurd_bilirubin,
    "input above 10,000 mL in a step": too_much_fluid,
    "possible withdrawal of care": care_withdrawn,
    "death during data collection": death_in_collection,
    "maximum SOFA below 2": mild,
}


def exclude(rows: pl.DataFrame, rules: Rules) -> tuple[pl.DataFrame, dict[str, int]]:
    """Apply every rule in turn; return the rows kept and how many stays each rule dropped.

    Args:
        rows: Scored, sorted by stay and block.
        rules: The switches.
    """
    scattered = not (rules.no_scattered_deletion or rules.drop_deaths_in_collection)
    dropped = {}
    left = rows["icustayid"].n_unique()
    for name, rule in RULES.items():
        if scattered and rule is death_in_collection:
            rows = without_scattered_rows(rows)
        out = rule(rows, rules)
        rows = rows.filter(~pl.col("icustayid").is_in(out.implode()))
        dropped[name] = left - rows["icustayid"].n_unique()
        left -= dropped[name]
    return rows, dropped


def without_scattered_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Lose the rows that the scripts lose where they mean to drop the dying (oddity 1).

    Their mask has one entry a stay, in order, and is applied to the rows of the table from the top:
    if the third stay died, the third row goes, whosever it is.
    """
    first = rows.group_by("icustayid", maintain_order=True).first()
    hit = first.select(_DIED_IN_COLLECTION).to_series().arg_true()
    return (
        rows.with_row_index("position")
        .filter(~pl.col("position").is_in(hit.implode()))
        .drop("position")
    )
