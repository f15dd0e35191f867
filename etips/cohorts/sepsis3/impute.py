"""Missing values: sparse columns, interpolation, nearest neighbour.

The rules: docs/cohort/rules.md section 13.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from etips.cohorts.sepsis3.grid import Bools, Floats, Ints
from etips.cohorts.sepsis3.variables import NEVER_DROPPED

SPARSE_SHARE: Final = 0.70
INTERPOLATED_SHARE: Final = 0.05
CHUNK_ROWS: Final = 10_000
_TIE: Final = 1e-9
_ROWS_AT_ONCE: Final = 256
_CANDIDATES: Final = 256
_FAR: Final = 10.0  # standard deviations
_STRANGERS: Final = 2.0  # mean squared difference of two unrelated standardised values
_MAX_THREADS: Final = 4


def dense_columns(names: tuple[str, ...], values: Floats) -> list[str]:
    """Columns missing in less than 70 % of the rows, and those the scores need.

    Args:
        names: Names of the columns.
        values: Shape (columns, rows).
    """
    missing = np.isnan(values).mean(axis=1)
    return [
        name
        for name, share in zip(names, missing, strict=True)
        if share < SPARSE_SHARE or name in NEVER_DROPPED
    ]


def interpolate(column: Floats, *, first: Ints | None = None) -> Floats:
    """Linear interpolation by row; leading and trailing gaps stay.

    Args:
        column: Shape (n,), sorted by stay, then block.
        first: Position of the first row of the same stay; given, gaps that cross stays stay too.
    """
    known = np.flatnonzero(~np.isnan(column))
    if known.size == 0:
        return column.copy()
    position = np.arange(column.size)
    filled = np.interp(position, known, column[known], left=np.nan, right=np.nan)
    if first is None:
        return filled
    before = known[(np.searchsorted(known, position, side="right") - 1).clip(min=0)]
    after = known[np.searchsorted(known, position).clip(max=known.size - 1)]
    return np.where(first[before] == first[after], filled, np.nan)


def interpolate_rarely_missing(values: Floats, *, first: Ints | None = None) -> None:
    """Interpolate, in place, the columns with more than 0 and less than 5 % missing.

    Args:
        values: Shape (columns, rows).
        first: As in `interpolate`.
    """
    for column in values:
        share = np.isnan(column).mean()
        if 0 < share < INTERPOLATED_SHARE:
            column[:] = interpolate(column, first=first)


def impute_nearest(
    values: Floats,
    *,
    donors: Bools | None = None,
    partial: bool = False,
    chunk: int = CHUNK_ROWS,
) -> None:
    """Fill every missing cell from the nearest row that has it, in place, chunk by chunk.

    The last chunk is the last `chunk` rows; where it overlaps the one before, it sees its result.

    Args:
        values: Shape (columns, rows).
        donors: Rows that values and scales are taken from, shape (rows,); all if left out.
        partial: Measure distance over every column, those that one of two rows lacks at what two
            unrelated rows would have; over the complete columns only if left out.
        chunk: Rows in a chunk.
    """
    n = values.shape[1]
    starts = [*range(0, n - chunk + 1, chunk), max(n - chunk, 0)]
    for start in starts:
        part = slice(start, start + chunk)
        allowed = np.ones(values[:, part].shape[1], bool) if donors is None else donors[part]
        values[:, part] = _impute_chunk(values[:, part], allowed, partial=partial)


def _impute_chunk(values: Floats, donors: Bools, *, partial: bool) -> Floats:
    missing = np.isnan(values)
    if not missing.any():
        return values
    measured = np.ones(len(values), bool) if partial else ~missing.any(axis=1)
    if not measured.any() or not donors.any():
        return _impute_medians(values, donors)
    points = _standardised(values[measured], donors)
    pool = Pool.of(points[:, donors], values[:, donors], whole=not partial)
    filled = values.copy()
    incomplete = np.flatnonzero(missing.any(axis=0))
    blocks = [
        incomplete[at : at + _ROWS_AT_ONCE] for at in range(0, incomplete.size, _ROWS_AT_ONCE)
    ]

    def fill(rows: Ints) -> None:
        near = _candidates(points[:, rows], pool)
        for column in np.flatnonzero(missing[:, rows].any(axis=1)):
            lacking = np.flatnonzero(missing[column, rows])
            filled[column, rows[lacking]] = _from_nearest(int(column), lacking, near, pool)

    with ThreadPoolExecutor(min(os.cpu_count() or 1, _MAX_THREADS)) as threads:
        list(threads.map(fill, blocks))  # blocks write to different rows
    return filled


def _standardised(columns: Floats, donors: Bools) -> Floats:
    """Each column over its standard deviation; a constant one adds nothing to a distance."""
    scale = np.zeros(len(columns))
    for position, column in enumerate(columns[:, donors]):
        known = column[~np.isnan(column)]
        if known.size > 1:
            scale[position] = known.std(ddof=1)
    return columns / np.where(scale > 0, scale, np.inf)[:, None]


@dataclass(frozen=True)
class Pool:
    """Rows that values may be taken from.

    Attributes:
        points: Where they are, NaN where unknown, shape (measured columns, donors).
        centre: The middle of them, shape (measured columns, 1).
        screen: Donors as `screened` wants them; single precision, so that one matrix product gives
            rough squared distances.
        whole: Whether no coordinate of a row or donor is unknown.
        values: What they have to give, shape (columns, donors).
        has: Whether they have it.
    """

    points: Floats
    centre: Floats
    screen: NDArray[np.float32]
    whole: bool
    values: Floats
    has: Bools

    @classmethod
    def of(cls, points: Floats, values: Floats, *, whole: bool) -> Self:
        """Put donors together."""
        known = ~np.isnan(points)
        centre = np.zeros((len(points), 1))
        for position in np.flatnonzero(known.any(axis=1)):
            centre[position] = np.median(points[position, known[position]])
        moved = np.where(known, points - centre, 0)
        if whole:
            screen = np.vstack([-2 * moved, (moved**2).sum(axis=0)])
        else:
            screen = np.vstack([-2 * moved, moved**2 - _STRANGERS * known, known])
        return cls(
            np.ascontiguousarray(points),
            centre,
            screen.astype(np.float32),
            whole,
            values,
            ~np.isnan(values),
        )

    def screened(self, points: Floats) -> tuple[NDArray[np.float32], Floats]:
        """Rows as factors of a product with `screen`, and what that product lacks.

        Complete columns: (x - y)^2 = -2xy + y^2, and x^2 is lacking. Otherwise, with 1 for known
        and 0 for not, a column adds kx ky (x - y)^2 + 2 (1 - kx ky), which is x ky (-2y) +
        kx (ky y^2 - 2 ky) + kx x^2 ky, and 2 a column is lacking.
        """
        known = ~np.isnan(points)
        moved = np.where(known, points - self.centre, 0)
        own = (moved**2).sum(axis=0)
        if self.whole:
            parts, lacking = [moved, np.ones((1, own.size))], own
        else:
            parts = [moved, known, moved**2]
            lacking = np.full(own.size, _STRANGERS * len(points))
        return np.vstack(parts).astype(np.float32).T, lacking

    def squared(self, difference: Floats) -> Floats:
        """Squares of differences; an unknown one counts as that of strangers."""
        squares: Floats = difference**2
        return squares if self.whole else np.nan_to_num(squares, copy=False, nan=_STRANGERS)


@dataclass(frozen=True)
class Candidates:
    """For some rows, the donors that come first into question.

    Attributes:
        points: Where the rows are, shape (complete columns, rows).
        donor: Positions of candidates in the pool, shape (rows, k).
        distance: Exact distances to them, shape (rows, k).
        reach: Every donor left out is at least this far away, shape (rows,).
    """

    points: Floats
    donor: Ints
    distance: Floats
    reach: Floats


def _candidates(points: Floats, pool: Pool) -> Candidates:
    """The nearest donors of each row by the expanded square, then their distances from differences.

    The expanded square is one matrix product but loses exact ties to rounding, so it only chooses
    whom to look at. A donor farther than `_FAR` from a row is out of reach anyway; for all others
    the square is wrong by less than `slack`, so that `reach` is a safe lower limit.
    """
    n = pool.values.shape[1]
    if n <= _CANDIDATES:
        donor = np.broadcast_to(np.arange(n), (points.shape[1], n))
        reach = np.full(points.shape[1], np.inf)
    else:
        rows, lacking = pool.screened(points)
        squared = rows @ pool.screen
        order = np.argpartition(squared, _CANDIDATES, axis=1)
        donor = order[:, :_CANDIDATES]
        border = np.take_along_axis(squared, order[:, [_CANDIDATES]], axis=1)[:, 0] + lacking
        own = np.nansum((points - pool.centre) ** 2, axis=0)
        terms = own + (np.sqrt(own) + _FAR) ** 2 + 2 * _STRANGERS * len(points)
        slack = 4e-7 * (len(pool.screen) + 1) * terms
        reach = np.minimum(np.sqrt(np.maximum(border - slack, 0)), _FAR)
    total = np.zeros(donor.shape)
    for mine, theirs in zip(points, pool.points, strict=True):
        total += pool.squared(mine[:, None] - theirs[donor])
    return Candidates(points, donor, np.sqrt(total), reach)


def _from_nearest(column: int, lacking: Ints, near: Candidates, pool: Pool) -> Floats:
    """A column's value for the rows at positions `lacking`, from the nearest that have it."""
    donor, distance = near.donor[lacking], near.distance[lacking]
    value, nearest = _mean_of_nearest(distance, pool.values[column][donor], pool.has[column][donor])
    doubtful = np.flatnonzero(~(nearest + _TIE * (1 + nearest) < near.reach[lacking]))
    for at in range(0, doubtful.size, _ROWS_AT_ONCE):
        some = doubtful[at : at + _ROWS_AT_ONCE]
        value[some] = _from_all(column, near.points[:, lacking[some]], pool)
    return value


def _from_all(column: int, points: Floats, pool: Pool) -> Floats:
    """The same, looking at every donor that has the value."""
    has = pool.has[column]
    total = np.zeros((points.shape[1], int(has.sum())))
    for mine, theirs in zip(points, pool.points[:, has], strict=True):
        total += pool.squared(mine[:, None] - theirs[None, :])
    given = np.broadcast_to(pool.values[column][has], total.shape)
    return _mean_of_nearest(np.sqrt(total), given, np.ones(total.shape, bool))[0]


def _mean_of_nearest(distance: Floats, value: Floats, has: Bools) -> tuple[Floats, Floats]:
    """Mean over the donors at the smallest distance, and that distance; NaN and inf without one.

    Distances within 1e-9 x (1 + d) count as equal. The mean is taken of differences to the smallest
    value, so that equal values give exactly themselves.

    Args:
        distance: Shape (rows, donors).
        value: Shape (rows, donors).
        has: Which donors have the value, shape (rows, donors).
    """
    if distance.shape[1] == 0:
        return np.full(len(distance), np.nan), np.full(len(distance), np.inf)
    reachable = np.where(has, distance, np.inf)
    nearest = reachable.min(axis=1)
    tied = has & (reachable <= (nearest + _TIE * (1 + nearest))[:, None])
    lowest = np.where(tied, value, np.inf).min(axis=1)
    excess = np.where(tied, value - lowest[:, None], 0).sum(axis=1)
    count = tied.sum(axis=1)
    mean = np.where(count > 0, lowest + excess / np.maximum(count, 1), np.nan)
    return mean, nearest


def _impute_medians(values: Floats, donors: Bools) -> Floats:
    """Fallback for a chunk in which no column is complete."""
    filled = values.copy()
    for column in filled:
        known = column[donors & ~np.isnan(column)]
        if known.size:
            column[np.isnan(column)] = np.median(known)
    return filled
