"""Missing values: sparse columns, interpolation, nearest neighbour.

The rules: docs/cohort/rules.md section 13.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
import polars as pl

from etips.cohorts.sepsis3.grid import Bools, Floats, Ints, first_of_run
from etips.cohorts.sepsis3.rules import Rules
from etips.cohorts.sepsis3.variables import DELAY, NEVER_DROPPED

SPARSE_SHARE: Final = 0.70
INTERPOLATED_SHARE: Final = 0.05
CHUNK_ROWS: Final = 10_000
_TIE: Final = 1e-9
_ROWS_AT_ONCE: Final = 256
_CANDIDATES: Final = 256
_FAR: Final = 10.0  # standard deviations
_STRANGERS: Final = 2.0  # mean squared difference of two unrelated standardised values
_MAX_THREADS: Final = 4


def impute(
    rows: pl.DataFrame,
    charted: tuple[str, ...],
    rules: Rules,
    *,
    donors: Bools | None,
    drop_sparse: bool,
) -> pl.DataFrame:
    """Fill the charted columns of one pass.

    Args:
        rows: Sorted by stay, then block; NaN where missing.
        charted: Columns to fill.
        rules: The switches.
        donors: Rows that values and scales are taken from, shape (n,); all if None.
        drop_sparse: Leave columns alone that are missing in 70 % of the rows or more, unless the
            scores need them.
    """
    names = list(charted)
    if drop_sparse:
        missing = rows.select(pl.col(names).is_nan().mean()).row(0, named=True)
        names = [n for n in names if missing[n] < SPARSE_SHARE or n in NEVER_DROPPED]
    if not rules.impute_without_delay:
        names = [DELAY, *names]
    values = np.ascontiguousarray(rows.select(names).to_numpy().T)
    first = first_of_run(rows["icustayid"].to_numpy()) if rules.interpolate_within_stay else None
    for column in values:
        if 0 < np.isnan(column).mean() < INTERPOLATED_SHARE:
            column[:] = interpolate(column, first=first)
    impute_nearest(values, donors=donors, partial=rules.impute_by_all_columns)
    return rows.with_columns(
        pl.Series(name, column) for name, column in zip(names, values, strict=True)
    )


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
    allowed = np.ones(n, bool) if donors is None else donors
    for start in (*range(0, n - chunk + 1, chunk), max(n - chunk, 0)):
        part = slice(start, start + chunk)
        values[:, part] = _impute_chunk(values[:, part], allowed[part], partial=partial)


def _impute_chunk(values: Floats, donors: Bools, *, partial: bool) -> Floats:
    missing, filled = np.isnan(values), values.copy()
    if not missing.any():
        return values
    measured = np.ones(len(values), bool) if partial else ~missing.any(axis=1)
    if not measured.any() or not donors.any():  # medians stand in
        for column in filled:
            known = column[donors & ~np.isnan(column)]
            if known.size:
                column[np.isnan(column)] = np.median(known)
        return filled
    points = values[measured]
    scale = np.full(len(points), np.inf)  # a constant column adds nothing to a distance
    for position, column in enumerate(points[:, donors]):
        known = column[~np.isnan(column)]
        if known.size > 1 and known.std(ddof=1) > 0:
            scale[position] = known.std(ddof=1)
    points = points / scale[:, None]
    pool = _Pool(points[:, donors], values[:, donors], whole=not partial)
    rows_to_fill = np.flatnonzero(missing.any(axis=0))
    starts = range(0, rows_to_fill.size, _ROWS_AT_ONCE)

    def fill(start: int) -> None:
        rows = rows_to_fill[start : start + _ROWS_AT_ONCE]
        donor, distance, reach = pool.nearest(points[:, rows])
        for column in np.flatnonzero(missing[:, rows].any(axis=1)):
            at = np.flatnonzero(missing[column, rows])
            has = pool.has[column]
            value, near = _mean_of_nearest(
                distance[at], pool.values[column][donor[at]], has[donor[at]]
            )
            doubtful = np.flatnonzero(~(near + _TIE * (1 + near) < reach[at]))
            value[doubtful] = pool.exact(int(column), points[:, rows[at[doubtful]]])
            filled[column, rows[at]] = value

    with ThreadPoolExecutor(min(os.cpu_count() or 1, _MAX_THREADS)) as threads:
        list(threads.map(fill, starts))  # each writes to different rows
    return filled


class _Pool:
    """Rows that values may be taken from.

    Args:
        points: Where they are, NaN where unknown, shape (measured columns, donors).
        values: What they have to give, shape (columns, donors); `has` says whether they have it.
        whole: Whether no coordinate of a row or donor is unknown.
    """

    def __init__(self, points: Floats, values: Floats, *, whole: bool) -> None:
        known = ~np.isnan(points)
        self.centre = np.zeros((len(points), 1))
        for position in np.flatnonzero(known.any(axis=1)):
            self.centre[position] = np.median(points[position, known[position]])
        moved = np.where(known, points - self.centre, 0)
        parts = [-2 * moved, (moved**2).sum(axis=0)]
        if not whole:
            parts = [-2 * moved, moved**2 - _STRANGERS * known, known]
        # one factor of a matrix product that gives rough squared distances
        self.screen = np.vstack(parts).astype(np.float32)
        self.points = np.ascontiguousarray(points)
        self.values, self.has, self.whole = values, ~np.isnan(values), whole

    def nearest(self, points: Floats) -> tuple[Ints, Floats, Floats]:
        """The donors that come first into question for rows at `points` (measured columns, rows).

        Complete columns: (x - y)^2 = -2xy + y^2 + x^2. Otherwise, with 1 for known and 0 for not, a
        column adds kx ky (x - y)^2 + 2 (1 - kx ky), which is x ky (-2y) + kx (ky y^2 - 2 ky) +
        kx x^2 ky + 2. The last term of each stands in `lacking`, the others are one matrix product.
        That product loses exact ties to rounding, so it only chooses whom to look at. A donor
        farther than `_FAR` from a row is out of reach anyway; for all others the square is wrong by
        less than `slack`, so that `reach` is a safe lower limit.

        Returns:
            Their positions and exact distances, shape (rows, k), and how far away every donor left
            out is at least, shape (rows,).
        """
        n = self.values.shape[1]
        if n <= _CANDIDATES:
            donor = np.broadcast_to(np.arange(n), (points.shape[1], n))
            reach = np.full(points.shape[1], np.inf)
        else:
            known = ~np.isnan(points)
            moved = np.where(known, points - self.centre, 0)
            own = (moved**2).sum(axis=0)
            parts, lacking = [moved, np.ones((1, own.size))], own
            if not self.whole:
                parts = [moved, known, moved**2]
                lacking = np.full(own.size, _STRANGERS * len(points))
            squared = np.vstack(parts).astype(np.float32).T @ self.screen
            order = np.argpartition(squared, _CANDIDATES, axis=1)
            donor = order[:, :_CANDIDATES]
            border = np.take_along_axis(squared, order[:, [_CANDIDATES]], axis=1)[:, 0] + lacking
            terms = own + (np.sqrt(own) + _FAR) ** 2 + 2 * _STRANGERS * len(points)
            slack = 4e-7 * (len(self.screen) + 1) * terms
            reach = np.minimum(np.sqrt(np.maximum(border - slack, 0)), _FAR)
        total = np.zeros(donor.shape)
        for mine, theirs in zip(points, self.points, strict=True):
            total += self._squared(mine[:, None] - theirs[donor])
        return donor, np.sqrt(total), reach

    def exact(self, column: int, points: Floats) -> Floats:
        """A column's value for rows at `points`, looking at every donor that has it."""
        value, has = np.empty(points.shape[1]), self.has[column]
        for start in range(0, value.size, _ROWS_AT_ONCE):
            some = points[:, start : start + _ROWS_AT_ONCE]
            total = np.zeros((some.shape[1], int(has.sum())))
            for mine, theirs in zip(some, self.points[:, has], strict=True):
                total += self._squared(mine[:, None] - theirs[None, :])
            given = np.broadcast_to(self.values[column][has], total.shape)
            found, _ = _mean_of_nearest(np.sqrt(total), given, np.ones(total.shape, bool))
            value[start : start + _ROWS_AT_ONCE] = found
        return value

    def _squared(self, difference: Floats) -> Floats:
        """Squares of differences; an unknown one counts as that of strangers."""
        squares: Floats = difference**2
        return squares if self.whole else np.nan_to_num(squares, copy=False, nan=_STRANGERS)


def _mean_of_nearest(distance: Floats, value: Floats, has: Bools) -> tuple[Floats, Floats]:
    """Mean over the donors at the smallest distance, and that distance; NaN and inf without one.

    Distances within 1e-9 x (1 + d) count as equal. The mean is taken of differences to the smallest
    value, so that equal values give exactly themselves. All shapes are (rows, donors).
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
