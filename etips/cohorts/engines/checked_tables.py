"""Tables of a source, once it is known that none is missing and each has its columns."""

from collections.abc import Mapping

import ibis  # type: ignore[import-untyped, unused-ignore]

from etips.cohorts.engines.layouts import TEXT, TypedTables
from etips.cohorts.engines.raw_source import RawSource
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
    further = [name for name in optional if name not in needed and name in there]
    names = [*needed, *(name for name in further if _usable(optional[name], there[name]))]
    return {
        name: _completed(source, name, {**needed.get(name, {}), **optional.get(name, {})})
        for name in names
    }


def _usable(columns: Mapping[str, str], there: frozenset[str]) -> bool:
    """Whether a table that may be missing is there with everything but texts."""
    return all(kind == TEXT or c in there for c, kind in columns.items())


def _completed(source: RawSource, name: str, columns: Mapping[str, str]) -> ibis.Table:
    """A table with all of the columns; one of text that it lacks says nothing."""
    there = source.tables()[name]
    table = source.table(name, {c: kind for c, kind in columns.items() if c in there})
    absent = {c: ibis.null("string") for c, kind in columns.items() if c not in there}
    return table.mutate(**absent) if absent else table
