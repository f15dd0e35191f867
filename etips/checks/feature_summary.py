"""The features of a table as somebody reads about them: kind, gaps, levels; no count of few."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from etips.checks.column_facts import ColumnFacts
from etips.checks.guessing import part_columns
from etips.data.intake.recipe import ColumnKind
from etips.data.tables.columns import TableColumns
from etips.disclosure import LEAST_PEOPLE, are_few

MOST_SHOWN_LEVELS = 6

_SHAPES: Mapping[str, str] = {
    "number": "number",
    "yes_no": "yes/no",
    "text": "category",
    "time": "time",
    "mixed": "not readable",
    "other": "not readable",
}
_KINDS: Mapping[str, str] = {
    "number": "number",
    "yes_no": "yes/no",
    "category": "category",
    "hours": "time",
    "years": "time",
    "age": "time",
    "duration": "time",
}
KINDS = ("number", "yes/no", "category", "time", "not readable")
"""In the order in which they are told."""


@dataclass(frozen=True)
class FeatureSummary:
    """A feature of a table.

    Args:
        name: Its column.
        kind: One of `KINDS`.
        static: Whether it is one of the stay.
        missing: Share of its cells that are empty, in whole percent; None if that tells of few.
        n_levels: Of a category.
        levels: Their names, where they are few and common.
    """

    name: str
    kind: str
    static: bool = False
    missing: int | None = 0
    n_levels: int | None = None
    levels: tuple[str, ...] = ()


def feature_names(facts: Sequence[ColumnFacts], columns: TableColumns) -> tuple[str, ...]:
    """The columns that would be features, in the order of the table."""
    static = set(columns.static or ())
    taken = set(part_columns(columns)) - static
    names = [own.name for own in facts if own.name not in taken]
    names = [name for name in names if not _matches(name, columns.drop)]
    if columns.features is None:
        return tuple(names)
    return tuple(name for name in names if name in static or _matches(name, columns.features))


def summarize_features(
    facts: Sequence[ColumnFacts],
    columns: TableColumns,
    kinds: Mapping[str, ColumnKind] | None = None,
) -> tuple[FeatureSummary, ...]:
    """Every feature.

    Args:
        facts: Of all columns of the table.
        columns: Who plays which part.
        kinds: How they were read, where they were.
    """
    wanted = set(feature_names(facts, columns))
    static, codes = set(columns.static or ()), set(columns.categorical or ())
    return tuple(
        _summary(own, (kinds or {}).get(own.name), own.name in static, own.name in codes)
        for own in facts
        if own.name in wanted
    )


def _summary(own: ColumnFacts, read: ColumnKind | None, static: bool, code: bool) -> FeatureSummary:
    kind = _SHAPES[own.shape] if read is None else _KINDS.get(read.kind, read.kind)
    if code:
        kind = "category"
    category = kind == "category"
    common = own.n_rows >= LEAST_PEOPLE * max(len(own.levels), 1)
    shown = category and len(own.levels) <= MOST_SHOWN_LEVELS and common
    return FeatureSummary(
        own.name,
        kind,
        static,
        _percent(own),
        own.n_distinct if category else None,
        own.levels if shown else (),
    )


def _percent(own: ColumnFacts) -> int | None:
    known = own.n_rows - own.n_missing
    if not own.n_missing:
        return 0
    if are_few(own.n_missing) or are_few(known):
        return None
    return round(100 * own.n_missing / max(own.n_rows, 1))


def _matches(name: str, patterns: Sequence[str] | None) -> bool:
    return any(name == own or fnmatchcase(name, own) for own in patterns or ())
