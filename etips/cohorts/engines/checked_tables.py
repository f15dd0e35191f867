"""Tables and rows of a source: refused where something is missing, times as seconds."""

import ibis  # type: ignore[import-untyped, unused-ignore]
import polars as pl

from etips.cohorts.engines.address import RawSource
from etips.cohorts.engines.layouts import TEXT, TypedTables, joined
from etips.errors import DataError


def open_checked(
    source: RawSource, needed: TypedTables, optional: TypedTables, *, label: str, version: str
) -> dict[str, ibis.Table]:
    """Check that a source holds what is needed and return its tables.

    Args:
        source: Where the raw tables are.
        needed: Tables and columns that must be there.
        optional: Further ones that are read if they are there. A column of text that is not there
            is null; a table that is not there is left out.
        label: What refusals call the database.
        version: What they call the one whose columns are meant.
    """
    there = source.tables()
    missing = [name for name in needed if name not in there]
    if missing:
        raise DataError(
            source.name,
            f"must hold the {label} tables; missing: {', '.join(missing)}",
            fix="Give the folder or schema that holds all of them.",
        )
    lacking = [
        f"{name}.{column}"
        for name, columns in needed.items()
        for column in columns
        if column not in there[name]
    ]
    if lacking:
        raise DataError(
            source.name,
            f"must hold the {version} columns; missing: {', '.join(lacking)}",
            fix="Give the tables as PhysioNet ships them.",
        )
    tables = {}
    for name, columns in joined(needed, optional).items():
        here = there.get(name, frozenset())
        numbers = [column for column, kind in columns.items() if kind != TEXT]
        if name not in needed and not (name in there and here.issuperset(numbers)):
            continue
        table = source.table(name, {c: kind for c, kind in columns.items() if c in here})
        absent = {c: ibis.null("string") for c in columns if c not in here}
        tables[name] = table.mutate(**absent) if absent else table
    return tables


def in_seconds(frame: pl.DataFrame) -> pl.DataFrame:
    """Timestamps to whole seconds since 1970; the other columns as they are."""
    times = [name for name, kind in frame.schema.items() if isinstance(kind, pl.Datetime)]
    return frame.with_columns(pl.col(times).dt.epoch("s"))


def require_owners(
    source: RawSource, rows: ibis.Table, owners: ibis.Table, *, key: str, table: str, owner: str
) -> None:
    """Refuse rows whose owner is missing: a join would lose them in silence."""
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
