"""What any database does with rows it has read: times as seconds, and refusals of unusable rows."""

import ibis  # type: ignore[import-untyped, unused-ignore]
import polars as pl

from etips.cohorts.engines.raw_source import RawSource
from etips.errors import DataError


def in_seconds(frame: pl.DataFrame) -> pl.DataFrame:
    """Timestamps to whole seconds since 1970; the other columns as they are."""
    times = [name for name, kind in frame.schema.items() if isinstance(kind, pl.Datetime)]
    return frame.with_columns(pl.col(times).dt.epoch("s"))


def require_owners(
    source: RawSource, rows: ibis.Table, owners: ibis.Table, *, key: str, table: str, owner: str
) -> None:
    """Refuse rows whose owner is missing: a join would lose them in silence.

    Args:
        source: Where the query runs.
        rows: Rows that belong to somebody.
        owners: Those they may belong to.
        key: Column of both that says to whom.
        table: What a refusal calls `rows`.
        owner: What a refusal calls `owners`.
    """
    orphans = source.fetch(rows.anti_join(owners, key).select(key))
    if orphans.height:
        rule = f"must have a row for every {key} of {table}"
        raise DataError(owner, rule, fix="Give the tables of the same patients.")


def require_some(table: str, n_rows: int) -> None:
    """Refuse a table without a single row that could be used: an export that went wrong."""
    if not n_rows:
        rule = "must hold rows that can be used; none was found"
        raise DataError(table, rule, fix="Check that it is whole and its ids fit.")


def require_finite(table: str, frame: pl.DataFrame) -> None:
    """Refuse NaN and infinity, which no chart holds; a missing number is null."""
    numbers = [column for column, kind in frame.schema.items() if kind == pl.Float64]
    if not numbers:
        return
    bad = frame.select(pl.any_horizontal(pl.col(numbers).is_finite().not_())).to_series()
    if bad.any():
        rule = f"{' and '.join(numbers)} must be finite; {bad.sum()} rows fail"
        raise DataError(table, rule, fix="Leave the cell empty where there is no number.")
