"""Features of a table: categories to columns, missing values carried forward, never zeroed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from etips.data.coded import Floats32
from etips.data.decisions import NO_ACTION, Ints
from etips.data.recipe import ColumnKind
from etips.data.schema import MISSING_SUFFIX
from etips.data.tables.sorting import HOUR, Kind, SortedTable, place_of
from etips.data.tables.table_spec import TableSpec
from etips.data.trajectories import Trajectories
from etips.disclosure import FEW, are_few, tells_few
from etips.errors import DataError, Faults, as_option, require
from etips.notes import note

_CHUNK = 4096  # rows looked at together


@dataclass(frozen=True, eq=False)
class FeatureBlock:
    """Feature columns of one kind (sequential or static) and where each came from.

    Args:
        names: Column names, d of them.
        values: The features, shape (n, d); NaN where a value is missing.
        levels: Levels of each column that was categorical.
        indicators: Source columns that may be missing and have an indicator.
    """

    names: tuple[str, ...]
    values: Floats32
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    indicators: tuple[str, ...] = ()


def one_hot(levels: tuple[str, ...], codes: Ints) -> Floats32:
    """One column a level, 1 where it holds; a missing level is NaN in all of them."""
    one_hot: Floats32 = (codes[:, None] == np.arange(len(levels))).astype(np.float32)
    one_hot[codes < 0] = np.nan
    return one_hot


def join(
    sources: Sequence[str],
    numeric: Mapping[str, int],
    matrix: Floats32,
    categories: Mapping[str, tuple[tuple[str, ...], Ints]],
) -> FeatureBlock:
    """Put numeric columns and one-hot categories into one block, in the order of the table."""
    levels = {name: own for name, (own, _) in categories.items()}
    if not categories:  # nothing to move: the matrix is the block
        return FeatureBlock(tuple(sources), matrix)
    names: list[str] = []
    parts: list[Floats32] = []
    for name in sources:
        if name in categories:
            names += [f"{name}={level}" for level in levels[name]]
            parts.append(one_hot(*categories[name]))
        else:
            names.append(name)
            parts.append(matrix[:, numeric[name], None])
    return FeatureBlock(tuple(names), np.concatenate(parts, axis=1), levels)


def require_finite(
    where: str, block: FeatureBlock, rows: Ints | None, *, may_miss: Collection[str] | None
) -> None:
    """Refuse infinite values, and missing ones unless their column may miss some."""
    starts = range(0, len(block.values), _CHUNK)
    if all(np.isfinite(block.values[start : start + _CHUNK]).all() for start in starts):
        return
    faults = Faults()
    for position, name in enumerate(block.names):
        source, column = source_column(block, name), block.values[:, position]
        place = f"{where}, column {source}"
        with faults.noting():
            out = f'--drop {as_option(source)} (drop=["{source}"])'
            fix = f"Correct it, or leave the column out: {out}."
            require(place, "must be finite in float32", ~np.isinf(column), rows=rows, fix=fix)
        if may_miss is not None and source not in may_miss:
            with faults.noting():
                fix = 'Fill it, or carry the last value forward: --missing carry (missing="carry").'
                require(place, "must not be missing", ~np.isnan(column), rows=rows, fix=fix)
    faults.raise_any()


def carry(block: FeatureBlock, starts: Ints, wanted: Sequence[str] | None) -> FeatureBlock:
    """Carry missing values forward within a stay and add a column that says where they were.

    What is missing from a stay's first step on stays NaN: the scaler fills it with the mean of the
    training stays, which is not known here.

    Args:
        block: Features in order of stay and step.
        starts: First row of the stay that each row belongs to, shape (n,).
        wanted: Source columns that get an indicator; those with a missing value if left out.
    """
    source_of = [source_column(block, name) for name in block.names]
    gaps = {name: np.isnan(block.values[:, i]) for i, name in enumerate(source_of)}
    holed = {name for name, own in gaps.items() if own.any()}
    wanted_marks = holed if wanted is None else set(wanted)
    chosen = [name for name in dict.fromkeys(source_of) if name in wanted_marks]
    if not chosen and not holed:
        return block
    row = np.arange(len(block.values))
    values = block.values.copy()
    for position, name in enumerate(source_of):
        if name in holed:
            last = np.maximum.accumulate(np.where(gaps[name], starts, row))
            values[:, position] = block.values[last, position]
    there = () if wanted is None else block.names  # a mark of that name in a new table is not ours
    new = [name for name in chosen if name + MISSING_SUFFIX not in there]
    marks = [gaps[name].astype(np.float32)[:, None] for name in new]
    return FeatureBlock(
        (*block.names, *(name + MISSING_SUFFIX for name in new)),
        np.concatenate([values, *marks], axis=1),
        block.levels,
        tuple(chosen),
    )


def source_column(block: FeatureBlock, name: str) -> str:
    """Column of the table that a feature was made of."""
    return next((source for source in block.levels if name.startswith(f"{source}=")), name)


def per_stay(where: str, block: FeatureBlock, offsets: Ints, rows: Ints | None) -> FeatureBlock:
    """Static features once a stay; they must not change within one, missing cells apart."""
    lengths = np.diff(offsets)
    first, faults = block.values[offsets[:-1]].copy(), Faults()
    for position, name in enumerate(block.names):
        column = block.values[:, position]
        if np.isnan(column).any():  # the first value that is there speaks for the stay
            there = np.where(np.isnan(column), len(column), np.arange(len(column)))
            at = np.minimum.reduceat(there, offsets[:-1])
            first[:, position] = np.where(at < len(column), column[at % len(column)], np.nan)
        same = (column == np.repeat(first[:, position], lengths)) | np.isnan(column)
        rule = "is static, so it must not change within a stay"
        fix = "If it is sequential, leave it out of --static (static=)."
        place = f"{where}, column {source_column(block, name)}"
        with faults.noting():
            require(place, rule, same, rows=rows, fix=fix)
    faults.raise_any()
    return FeatureBlock(block.names, first, block.levels)


def arrange(where: str, block: FeatureBlock, names: Sequence[str]) -> FeatureBlock:
    """The columns of these `names`, in their order; one that is not there is refused by name."""
    position = {name: i for i, name in enumerate(block.names)}
    faults = Faults()
    for name in names:
        if name not in position:
            faults.note(DataError(f"{where}, column {name}", "is missing from the table"))
    faults.raise_any()
    if tuple(names) == block.names:
        return block
    values = block.values[:, [position[name] for name in names]]
    return FeatureBlock(tuple(names), values, block.levels, block.indicators)


def tell_gaps(gaps: Mapping[str, int], n_columns: int, *, left: int = 0) -> None:
    """How many feature values are missing, and what stands there."""
    if gaps:
        total = sum(gaps.values())
        many = f"{shown(total)} missing values in {len(gaps)} of {n_columns} columns"
        done = "become the mean of the training stays"
        if not left:
            done = "are carried forward"
        elif left < total:
            done = f"are carried forward, or {done} where a stay has no value before"
        note(f"{many} {done}; columns name{MISSING_SUFFIX} say where")


def tell_lag(data: Trajectories, *, fixed: bool = False) -> None:
    """How many steps with an action and a loss are no decisions since nothing comes before."""
    if data.schema.lag != 1 or data.action is None or data.loss is None:
        return
    first = data.offsets[:-1]
    known: NDArray[np.bool_] = data.action[first] != NO_ACTION
    if data.missing_loss == "drop":
        known = known & ~np.isnan(data.loss[first])
    if data.eligible is not None:
        known = known & data.eligible[first]
    if not known.any():
        return
    count = shown_beside(int(known.sum()), (first.size, int(data.offsets[-1])))
    remedy = "" if fixed else "; --lag 0 keeps them"
    note(f"lag 1: {count} first steps of stays are no decisions{remedy}")


def shown_beside(count: int, known: Sequence[int]) -> str:
    """A count as it may be printed beside others that results tell: about right, if need be."""
    if tells_few(count, known) and not are_few(count):
        return f"about {round(count, -1):,}"
    return shown(count)


def shown(count: int) -> str:
    """A count as it may be printed."""
    return FEW if are_few(count) else f"{count:,}"


ELAPSED_HOURS, ELAPSED = "hours_since_last", "since_last"
"""Feature that holds the time since the row before: in hours, or in units of the step column."""

_IRREGULAR = 0.05  # share of rows at another distance than the usual one
_COUNTED, _FEWEST = 0.2, 20  # share of rises by one, and rises, from which whole numbers are told


@dataclass(frozen=True, eq=False)
class TableFeatures:
    """The features of a table, and how its columns were read."""

    sequence: FeatureBlock
    static: FeatureBlock
    kinds: Mapping[str, ColumnKind]


def read_features(table: SortedTable, spec: TableSpec, elapsed: str | None) -> TableFeatures:
    """The features of a table in order; what is missing is carried forward and marked."""
    faults = Faults()
    with faults.noting():
        sequence, gaps = _raw(table, "sequence", spec, elapsed)
    with faults.noting():
        static, static_gaps = _raw(table, "static", spec, None)
    faults.raise_any()
    columns = [*table.layout.sequence, *table.layout.static]
    gaps |= static_gaps
    if spec.like is None:
        empty = [name for name, count in gaps.items() if count < 0]
        if empty and spec.strict:
            fix = f"Leave it out: --drop {empty[0]} (drop=[...])."
            raise DataError(f"{table.name}, column {empty[0]}", "holds no value at all", fix=fix)
        if empty:
            one = len(empty) == 1
            which = f"column {empty[0]} holds" if one else f"columns {', '.join(empty)} hold"
            note(f"{which} no value at all and {'is' if one else 'are'} left out")
        gaps = {name: count for name, count in gaps.items() if count > 0}
        left = sum(sum(_gaps(block).values()) for block in (sequence, static)) if gaps else 0
        tell_gaps(gaps, len(columns) - len(empty), left=left)
        columns = [name for name in columns if name not in empty]
    else:
        _tell_unlike(table, spec, [name for name in gaps if name not in spec.like.indicators])
    levels = {**sequence.levels, **static.levels}
    kinds = {name: table.layout.kinds[name] for name in columns}
    kinds |= {name: ColumnKind("category", own) for name, own in levels.items() if name in kinds}
    return TableFeatures(sequence, static, kinds)


def _tell_unlike(table: SortedTable, spec: TableSpec, new_gaps: Sequence[str]) -> None:
    """Gaps and levels that the data of before did not have: refused, or told."""
    if new_gaps:
        one = len(new_gaps) == 1
        which = f"column {new_gaps[0]} has" if one else f"columns {', '.join(new_gaps)} have"
        note(
            f"{which} missing values, unlike in the data before; the stay's last value, "
            "or the mean of the training stays, stands there"
        )
    for name, count in table.unseen.items():
        if count and spec.strict:
            total = len(table.step)
            rule = f"must be one of the levels known so far; {count} of {total} rows fail"
            fix = '--missing carry (missing="carry") reads them as missing.'
            raise DataError(place_of(table.name, name), rule, fix=fix)
        if count:
            note(
                f"column {name}: {shown(count)} rows hold a level not seen before, read as missing"
            )


_MOST_LEVELS = 1000  # each becomes a column, and its name part of the schema: free text must not


def spread_out(
    table: SortedTable, kind: Kind, known: Mapping[str, tuple[str, ...]], *, strict: bool = True
) -> FeatureBlock:
    """Features of one kind, categories spread out."""
    layout = table.layout
    columns = layout.sequence if kind == "sequence" else layout.static
    numeric = {name: i for i, name in enumerate(layout.numeric(columns))}
    categories, faults = {}, Faults()
    for name in [own for own in columns if own in layout.categorical]:
        with faults.noting():
            levels, code = table.column_levels(name, known.get(name))
            place, rule = place_of(table.name, name), "must be one of the levels known so far"
            if len(levels) > _MOST_LEVELS:
                raise DataError(place, f"must have at most {_MOST_LEVELS} levels")
            if strict:
                require(place, rule, code != -2, rows=table.rows)
            table.unseen[name] = int((code == -2).sum())
            categories[name] = (levels, np.maximum(code, -1))
    faults.raise_any()
    return join(columns, numeric, table.matrices[kind], categories)


def _raw(
    table: SortedTable, kind: Kind, spec: TableSpec, elapsed: str | None
) -> tuple[FeatureBlock, dict[str, int]]:
    """Features of one kind, and how many values of each column are missing; -1 if all are."""
    like = spec.like
    block = spread_out(table, kind, {} if like is None else like.categories, strict=spec.strict)
    if like is not None:  # what was spread out before it was written belongs together too
        block = replace(block, levels=like.categories)
    if elapsed is not None and elapsed not in block.names:
        values = np.concatenate([block.values, _elapsed(table)[:, None]], axis=1)
        block = replace(block, names=(*block.names, elapsed), values=values)
    marked = None if like is None else like.indicators
    may_miss = None if not spec.strict else marked or ()
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


def elapsed_feature(table: SortedTable, spec: TableSpec, columns: Collection[str]) -> str | None:
    """Name of the feature that holds the time since the row before, where rows are irregular."""
    if spec.like is not None:
        return None if spec.like.recipe is None else spec.like.recipe.elapsed
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
