"""The features of a table: spread out, complete or carried forward, in the order of its schema."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from etips.data.coded import Floats32
from etips.data.intake.column_values import HOUR
from etips.data.intake.recipe import ColumnKind
from etips.data.intake.remarks import (
    refuse_unseen,
    tell_empty,
    tell_gaps,
    tell_new_gaps,
    tell_unseen,
)
from etips.data.intake.request import Request
from etips.data.tables.features import (
    FeatureBlock,
    arrange,
    carry,
    per_stay,
    require_finite,
    source_column,
)
from etips.data.tables.sorting import Kind, SortedTable
from etips.errors import DataError, Faults
from etips.notes import note

ELAPSED_HOURS, ELAPSED = "hours_since_last", "since_last"
"""Feature that holds the time since the row before: in hours, or in units of the step column."""

_CHUNK = 4096  # rows looked at together
_IRREGULAR = 0.05  # share of rows at another distance than the usual one
_COUNTED, _FEWEST = 0.2, 20  # share of rises by one, and rises, from which whole numbers are told


@dataclass(frozen=True, eq=False)
class TableFeatures:
    """The features of a table, and how its columns were read.

    Args:
        sequence: Sequential features, a row a step.
        static: Static features, a row a stay.
        kinds: Kind of each column, with the levels found.
    """

    sequence: FeatureBlock
    static: FeatureBlock
    kinds: Mapping[str, ColumnKind]


def read_features(table: SortedTable, asked: Request, elapsed: str | None) -> TableFeatures:
    """The features of a table in order; what is missing is carried forward and marked.

    Args:
        table: The table.
        asked: What was asked for, with what its `like` fixes.
        elapsed: Name of the feature that holds the time since the row before, if there is one.
    """
    faults = Faults()
    with faults.noting():
        sequence, gaps = _raw(table, "sequence", asked, elapsed)
    with faults.noting():
        static, static_gaps = _raw(table, "static", asked, None)
    faults.raise_any()
    columns = [*table.layout.sequence, *table.layout.static]
    gaps |= static_gaps
    if asked.like is None:
        empty = [name for name, count in gaps.items() if count < 0]
        if empty and asked.strict:
            fix = f"Leave it out: --drop {empty[0]} (drop=[...])."
            raise DataError(f"{table.name}, column {empty[0]}", "holds no value at all", fix=fix)
        tell_empty(empty)
        gaps = {name: count for name, count in gaps.items() if count > 0}
        left = sum(sum(_gaps(block).values()) for block in (sequence, static)) if gaps else 0
        tell_gaps(gaps, len(columns) - len(empty), left=left)
        columns = [name for name in columns if name not in empty]
    else:
        tell_new_gaps([name for name in gaps if name not in asked.like.indicators])
        if asked.strict:
            refuse_unseen(table.name, table.unseen, len(table.step))
        tell_unseen(table.unseen)
    levels = {**sequence.levels, **static.levels}
    kinds = {name: table.layout.kinds[name] for name in columns}
    kinds |= {name: ColumnKind("category", own) for name, own in levels.items() if name in kinds}
    return TableFeatures(sequence, static, kinds)


def _raw(
    table: SortedTable, kind: Kind, asked: Request, elapsed: str | None
) -> tuple[FeatureBlock, dict[str, int]]:
    """Features of one kind, and how many values of each column are missing; -1 if all are."""
    like = asked.like
    block = table.features(kind, {} if like is None else like.categories, strict=asked.strict)
    if like is not None:  # what was spread out before it was written belongs together too
        block = replace(block, levels=like.categories)
    if elapsed is not None and elapsed not in block.names:
        values = np.concatenate([block.values, _elapsed(table)[:, None]], axis=1)
        block = replace(block, names=(*block.names, elapsed), values=values)
    marked = None if like is None else like.indicators
    may_miss = None if not asked.strict else marked or ()
    require_finite(table.name, block, table.rows, may_miss=may_miss)
    starts = table.starts
    if kind == "static":
        block = per_stay(table.name, block, table.offsets, table.rows)
        starts = np.arange(len(block.values))  # nothing to carry from: a stay has one row
    gaps = _gaps(block)
    if like is None:
        block = _without_empty(block, [name for name, count in gaps.items() if count < 0])
    if gaps or marked:
        block = carry(block, starts, marked)
    return block if like is None else arrange(table.name, block, getattr(like, kind)), gaps


def _gaps(block: FeatureBlock) -> dict[str, int]:
    """Missing values of each source column that has any; -1 where there is nothing else."""
    gaps = {name: -1 for name, own in block.levels.items() if not own}
    counts = np.zeros(len(block.names), np.int64)
    for start in range(0, len(block.values), _CHUNK):  # rows lie together, columns do not
        counts += np.isnan(block.values[start : start + _CHUNK]).sum(axis=0)
    for name, missing in zip(block.names, counts.tolist(), strict=True):
        if missing:
            gaps[source_column(block, name)] = -1 if missing == len(block.values) else missing
    return gaps


def _without_empty(block: FeatureBlock, empty: list[str]) -> FeatureBlock:
    if not empty:
        return block
    kept = [i for i, name in enumerate(block.names) if source_column(block, name) not in empty]
    levels = {name: own for name, own in block.levels.items() if name not in empty}
    names = tuple(block.names[i] for i in kept)
    return replace(block, names=names, values=block.values[:, kept], levels=levels)


def elapsed_feature(table: SortedTable, asked: Request, columns: Collection[str]) -> str | None:
    """Name of the feature that holds the time since the row before, where rows are irregular.

    Args:
        table: The table in order.
        asked: What was asked for.
        columns: All columns of the table, those that play no part too.
    """
    if asked.like is not None:
        return None if asked.like.recipe is None else asked.like.recipe.elapsed
    if "step" not in table.layout.present or not _is_irregular(table):
        return None
    clock = np.issubdtype(table.step.dtype, np.datetime64)
    name = ELAPSED_HOURS if clock else ELAPSED
    if name in columns:
        return None  # somebody thought of it before
    unit = "in hours" if clock else f"in units of {table.layout.roles.step}"
    note(f"rows come at unequal times: feature {name} holds the time since the row before, {unit}")
    return name


def _is_irregular(table: SortedTable) -> bool:
    """Whether rows follow one another at unequal distances, a hole here and there apart.

    Whole numbers count steps, of which some may be left out, unless they hardly ever rise by one.
    """
    gaps = np.delete(np.diff(table.step), table.offsets[1:-1] - 1)
    if gaps.size < 2:
        return False
    _, count = np.unique(gaps, return_counts=True)
    whole = gaps.dtype.kind == "i"  # lengths of time are integers to NumPy, of another kind
    counted = whole and (gaps.size < _FEWEST or (gaps == 1).mean() > _COUNTED)
    return bool(not counted and count.max() < (1 - _IRREGULAR) * gaps.size)


def _elapsed(table: SortedTable) -> Floats32:
    """Time since the row before in the same stay, 0 at the first."""
    gaps = np.diff(table.step, prepend=table.step[:1])
    gaps[table.offsets[:-1]] = gaps[0] * 0
    hours = gaps / HOUR if np.issubdtype(gaps.dtype, np.timedelta64) else gaps
    return np.asarray(hours, np.float32)
