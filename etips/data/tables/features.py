"""Features of a long table: categories to columns, missing values carried forward, never zeroed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from etips.data.coded import Floats32
from etips.data.decisions import Ints
from etips.data.schema import MISSING_SUFFIX
from etips.errors import DataError, Faults, as_option, require

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
    """Put numeric columns and one-hot categories into one block, in the order of the table.

    Args:
        sources: Columns of the table, in order.
        numeric: Position in `matrix` of each numeric column.
        matrix: The numeric columns, shape (n, len(numeric)).
        categories: Levels and the level of each row, for each categorical column.
    """
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
    """Refuse infinite values, and missing ones unless their column may miss some.

    Args:
        where: The table, for a refusal.
        block: The features.
        rows: Number of each row in the user's own table, shape (n,).
        may_miss: Source columns that may hold NaN; None allows it in all.
    """
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
