"""The four hours up to the end of each step: rules on volumes are about so long a time.

A limit on what runs in or out within a step was written for steps of four hours. Shorter steps look
back as far, so that a rule means the same whatever the length of a step.
"""

import polars as pl

from etips.cohorts.sepsis3.rules import Rules

_STAY, _BLOC = "icustayid", "bloc"


def recent_sum(rows: pl.DataFrame, name: str, rules: Rules) -> pl.Series:
    """Sum of a column over the steps of the last four hours that the stay has, shape (n,).

    Args:
        rows: icustayid, bloc and the column, sorted by stay and block.
        name: Of the column.
        rules: For the length of a step; at four hours it is the column itself.
    """
    if rules.steps_per_rule == 1:
        return rows[name]
    return _rolling(rows, rules, pl.col(name).sum())


def recent_hours(rows: pl.DataFrame, rules: Rules) -> pl.Series:
    """How much of the last four hours the stay has steps for, as a share of them, shape (n,)."""
    if rules.steps_per_rule == 1:
        return pl.Series(name="share", values=[1.0]).new_from_index(0, rows.height)
    return _rolling(rows, rules, pl.len().cast(pl.Float64) / rules.steps_per_rule)


def _rolling(rows: pl.DataFrame, rules: Rules, over: pl.Expr) -> pl.Series:
    columns = rows.with_columns(pl.col(_BLOC).cast(pl.Int64))
    period = f"{rules.steps_per_rule}i"
    rolled = columns.rolling(_BLOC, period=period, closed="right", group_by=_STAY).agg(
        over.alias("over")
    )
    return rolled["over"]
