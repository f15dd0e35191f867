"""Features of a table: categories to columns, missing values carried forward, never zeroed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from etips.data.coded import Floats32
from etips.data.decisions import Ints
from etips.data.recipe import ColumnKind
from etips.data.schema import MISSING_SUFFIX
from etips.data.tables.sorting import HOUR, Kind, SortedTable
from etips.data.tables.table_spec import TableSpec
from etips.disclosure import shown_or_few
from etips.errors import DataError, Faults, as_option, require
from etips.notes import note

ELAPSED_HOURS, ELAPSED = "hours_since_last", "since_last"
"""Feature that holds the time since the row before: in hours, or in units of the step column."""

_CHUNK = 4096  # rows looked at together
_MOST_LEVELS = 1000  # each becomes a column, and its name part of the schema: free text must not
_IRREGULAR = 0.05  # share of rows at another distance than the usual one
_COUNTED, _FEWEST = 0.2, 20  # share of rises by one, and rises, from which whole numbers are told


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

    @property
    def sources(self) -> list[str]:
        """Column of the table that each feature was made of."""
        return [
            next((source for source in self.levels if name.startswith(f"{source}=")), name)
            for name in self.names
        ]

    @property
    def gaps(self) -> dict[str, int]:
        """Missing values of each source column that has any; -1 where there is nothing else."""
        gaps = {name: -1 for name, own in self.levels.items() if not own}
        counts = np.zeros(len(self.names), np.int64)
        for start in range(0, len(self.values), _CHUNK):  # rows lie together, columns do not
            counts += np.isnan(self.values[start : start + _CHUNK]).sum(axis=0)
        for name, missing in zip(self.sources, counts.tolist(), strict=True):
            if missing:
                gaps[name] = -1 if missing == len(self.values) else missing
        return gaps


def join(
    sources: Sequence[str],
    numeric: Mapping[str, int],
    matrix: Floats32,
    categories: Mapping[str, tuple[tuple[str, ...], Ints]],
) -> FeatureBlock:
    """Put numeric columns and one-hot categories into one block, in the order of the table.

    A missing level (-1) is NaN in all columns of its category.
    """
    if not categories:  # nothing to move: the matrix is the block
        return FeatureBlock(tuple(sources), matrix)
    names: list[str] = []
    parts: list[Floats32] = []
    for name in sources:
        if name in categories:
            levels, codes = categories[name]
            names += [f"{name}={level}" for level in levels]
            one_hot: Floats32 = (codes[:, None] == np.arange(len(levels))).astype(np.float32)
            one_hot[codes < 0] = np.nan
            parts.append(one_hot)
        else:
            names.append(name)
            parts.append(matrix[:, numeric[name], None])
    known = {name: levels for name, (levels, _) in categories.items()}
    return FeatureBlock(tuple(names), np.concatenate(parts, axis=1), known)


def carry(block: FeatureBlock, starts: Ints, wanted: Sequence[str] | None) -> FeatureBlock:
    """Carry missing values forward within a stay and add a column that says where they were.

    What is missing from a stay's first step on stays NaN: the scaler fills it with the mean of the
    training stays, which is not known here.

    Args:
        block: Features in order of stay and step.
        starts: First row of the stay that each row belongs to, shape (n,).
        wanted: Source columns that get an indicator; those with a missing value if left out.
    """
    sources = block.sources
    gaps = {name: np.isnan(block.values[:, i]) for i, name in enumerate(sources)}
    holed = {name for name, own in gaps.items() if own.any()}
    wanted_marks = holed if wanted is None else set(wanted)
    chosen = [name for name in dict.fromkeys(sources) if name in wanted_marks]
    if not chosen and not holed:
        return block
    row = np.arange(len(block.values))
    values = block.values.copy()
    for position, name in enumerate(sources):
        if name in holed:
            last = np.maximum.accumulate(np.where(gaps[name], starts, row))
            values[:, position] = block.values[last, position]
    there = () if wanted is None else block.names  # a mark of that name in a new table is not ours
    new = [name for name in chosen if name + MISSING_SUFFIX not in there]
    marks = [gaps[name].astype(np.float32)[:, None] for name in new]
    names = (*block.names, *(name + MISSING_SUFFIX for name in new))
    values = np.concatenate([values, *marks], axis=1)
    return FeatureBlock(names, values, block.levels, tuple(chosen))


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
        sequence, gaps = _read(table, "sequence", spec, elapsed)
    with faults.noting():
        static, static_gaps = _read(table, "static", spec, None)
    faults.raise_any()
    gaps |= static_gaps
    columns = [*table.layout.sequence, *table.layout.static]
    if spec.like is None:
        empty = [name for name, count in gaps.items() if count < 0]
        columns = [name for name in columns if name not in empty]
        _remark_on_gaps(table, spec, gaps, len(columns), (sequence, static))
    else:
        _remark_on_news(table, spec, [name for name in gaps if name not in spec.like.indicators])
    kinds = {name: table.layout.kinds[name] for name in columns}
    levels = {**sequence.levels, **static.levels}
    kinds |= {name: ColumnKind("category", own) for name, own in levels.items() if name in kinds}
    return TableFeatures(sequence, static, kinds)


def _read(
    table: SortedTable, kind: Kind, spec: TableSpec, elapsed: str | None
) -> tuple[FeatureBlock, dict[str, int]]:
    """Features of one kind, and how many values of each column are missing; -1 if all are."""
    like = spec.like
    block = _spread_out(table, kind, spec)
    if like is not None:  # what was spread out before it was written belongs together too
        block = replace(block, levels=like.categories)
    if elapsed is not None and elapsed not in block.names:
        since = np.diff(table.step, prepend=table.step[:1])
        since[table.offsets[:-1]] = since[0] * 0
        hours = since / HOUR if table.clock else since
        values = np.concatenate([block.values, hours.astype(np.float32)[:, None]], axis=1)
        block = replace(block, names=(*block.names, elapsed), values=values)
    marked = None if like is None else like.indicators
    _require_finite(table, block, may_miss=None if not spec.strict else marked or ())
    starts = table.starts
    if kind == "static":
        block = _per_stay(table, block)
        starts = np.arange(len(block.values))  # nothing to carry from: a stay has one row
    gaps = block.gaps
    if like is None and any(count < 0 for count in gaps.values()):
        kept = [at for at, name in enumerate(block.sources) if gaps.get(name, 0) >= 0]
        levels = {name: own for name, own in block.levels.items() if gaps.get(name, 0) >= 0}
        names = tuple(block.names[at] for at in kept)
        block = replace(block, names=names, values=block.values[:, kept], levels=levels)
    if gaps or marked:
        block = carry(block, starts, marked)
    return block if like is None else arrange(table.name, block, getattr(like, kind)), gaps


def _spread_out(table: SortedTable, kind: Kind, spec: TableSpec) -> FeatureBlock:
    layout = table.layout
    columns = layout.sequence if kind == "sequence" else layout.static
    numeric = {name: i for i, name in enumerate(layout.numeric(columns))}
    known = {} if spec.like is None else spec.like.categories
    categories, faults = {}, Faults()
    for name in [own for own in columns if own in layout.categorical]:
        with faults.noting():
            levels, code = table.levels(name, known.get(name))
            if len(levels) > _MOST_LEVELS:
                raise DataError(table.place(name), f"must have at most {_MOST_LEVELS} levels")
            if spec.strict:
                rule = "must be one of the levels known so far"
                require(table.place(name), rule, code != -2, rows=table.rows)
            table.unseen[name] = int((code == -2).sum())
            categories[name] = (levels, np.maximum(code, -1))
    faults.raise_any()
    return join(columns, numeric, table.matrices[kind], categories)


def _require_finite(
    table: SortedTable, block: FeatureBlock, *, may_miss: Collection[str] | None
) -> None:
    """Refuse infinite values, and missing ones unless their column may miss some."""
    starts = range(0, len(block.values), _CHUNK)
    if all(np.isfinite(block.values[start : start + _CHUNK]).all() for start in starts):
        return
    faults = Faults()
    for position, source in enumerate(block.sources):
        place, column = table.place(source), block.values[:, position]
        with faults.noting():
            out = f'--drop {as_option(source)} (drop=["{source}"])'
            fix = f"Correct it, or leave the column out: {out}."
            finite = ~np.isinf(column)
            require(place, "must be finite in float32", finite, rows=table.rows, fix=fix)
        if may_miss is not None and source not in may_miss:
            with faults.noting():
                fix = 'Fill it, or carry the last value forward: --missing carry (missing="carry").'
                there = ~np.isnan(column)
                require(place, "must not be missing", there, rows=table.rows, fix=fix)
    faults.raise_any()


def _per_stay(table: SortedTable, block: FeatureBlock) -> FeatureBlock:
    """Static features once a stay; they must not change within one, missing cells apart."""
    starts, lengths = table.offsets[:-1], np.diff(table.offsets)
    first, faults = block.values[starts].copy(), Faults()
    for position, source in enumerate(block.sources):
        column = block.values[:, position]
        if np.isnan(column).any():  # the first value that is there speaks for the stay
            there = np.where(np.isnan(column), len(column), np.arange(len(column)))
            at = np.minimum.reduceat(there, starts)
            first[:, position] = np.where(at < len(column), column[at % len(column)], np.nan)
        same = (column == np.repeat(first[:, position], lengths)) | np.isnan(column)
        rule = "is static, so it must not change within a stay"
        fix = "If it is sequential, leave it out of --static (static=)."
        with faults.noting():
            require(table.place(source), rule, same, rows=table.rows, fix=fix)
    faults.raise_any()
    return FeatureBlock(block.names, first, block.levels)


def _remark_on_gaps(
    table: SortedTable,
    spec: TableSpec,
    gaps: Mapping[str, int],
    n_columns: int,
    blocks: Sequence[FeatureBlock],
) -> None:
    """Say which columns are empty, how many values are missing, and what stands there."""
    empty = [name for name, count in gaps.items() if count < 0]
    if empty and spec.strict:
        fix = f"Leave it out: --drop {empty[0]} (drop=[...])."
        raise DataError(table.place(empty[0]), "holds no value at all", fix=fix)
    if empty:
        one = len(empty) == 1
        which = f"column {empty[0]} holds" if one else f"columns {', '.join(empty)} hold"
        note(f"{which} no value at all and {'is' if one else 'are'} left out")
    counts = [count for count in gaps.values() if count > 0]
    if not counts:
        return
    left = sum(sum(block.gaps.values()) for block in blocks)
    done = "become the mean of the training stays"
    if not left:
        done = "are carried forward"
    elif left < sum(counts):
        done = f"are carried forward, or {done} where a stay has no value before"
    many = f"{shown_or_few(sum(counts))} missing values in {len(counts)} of {n_columns} columns"
    note(f"{many} {done}; columns name{MISSING_SUFFIX} say where")


def _remark_on_news(table: SortedTable, spec: TableSpec, gaps: Sequence[str]) -> None:
    """Gaps and levels that the data of before did not have: refused, or said."""
    if gaps:
        one = len(gaps) == 1
        which = f"column {gaps[0]} has" if one else f"columns {', '.join(gaps)} have"
        note(
            f"{which} missing values, unlike in the data before; the stay's last value, "
            "or the mean of the training stays, stands there"
        )
    for name, count in table.unseen.items():
        if count and spec.strict:
            rule = f"must be one of the levels known so far; {count} of {len(table.step)} rows fail"
            fix = '--missing carry (missing="carry") reads them as missing.'
            raise DataError(table.place(name), rule, fix=fix)
        if count:
            rows = shown_or_few(count)
            note(f"column {name}: {rows} rows hold a level not seen before, read as missing")


def elapsed_feature(table: SortedTable, spec: TableSpec, columns: Collection[str]) -> str | None:
    """Name of the feature that holds the time since the row before, where rows are irregular.

    Whole numbers count steps, of which some may be left out, unless they hardly ever rise by one.
    """
    if spec.like is not None:
        return None if spec.like.recipe is None else spec.like.recipe.elapsed
    between = np.delete(np.diff(table.step), table.offsets[1:-1] - 1)
    if "step" not in table.layout.present or between.size < 2:
        return None
    _, count = np.unique(between, return_counts=True)
    whole = between.dtype.kind == "i"  # lengths of time are integers to NumPy, of another kind
    counted = whole and (between.size < _FEWEST or (between == 1).mean() > _COUNTED)
    name = ELAPSED_HOURS if table.clock else ELAPSED
    if counted or count.max() >= (1 - _IRREGULAR) * between.size or name in columns:
        return None
    unit = "in hours" if table.clock else f"in units of {table.layout.roles.step}"
    note(f"rows come at unequal times: feature {name} holds the time since the row before, {unit}")
    return name
