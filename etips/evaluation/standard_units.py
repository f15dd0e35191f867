"""Columns of a table in units of their spread, a few rows at a time, which stay near the core."""

import numpy as np

from etips.evaluation.inference.checks import Floats, Ints, Rows

TILE = 256  # rows that are turned into columns at a time

NUMBERS = 65_536
"""Numbers worked on at a time: half a megabyte."""


def rows_at_once(width: int) -> int:
    """Rows of so many columns that stay near the core, a multiple of 64."""
    return max(NUMBERS // max(width, 1) // 64, 1) * 64


def centre_and_spread(rows: Rows) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the values known of each column, shape (d,) each.

    Sums run down the rows in their order and in the table's own precision, as NumPy's do.

    Args:
        rows: NaN where missing, shape (n, d).
    """
    n, width = rows.shape
    count, total = np.full(width, max(n, 1)), rows.sum(axis=0)
    gaps = bool(np.isnan(total).any())
    if gaps:
        known = ~np.isnan(rows)
        count = np.maximum(known.sum(axis=0), 1)
        total = np.where(known, rows, 0.0).sum(axis=0)
    centre: Floats = total / count
    square, step = np.zeros(width), rows_at_once(width)
    work = np.empty((step + 1, width))
    for start in range(0, n, step):
        own = rows[start : start + step]
        part = np.subtract(own, centre, out=work[1 : len(own) + 1])
        part *= part
        if gaps:
            part[np.isnan(own)] = 0.0
        work[0] = square  # first, so that each number is added to the sum of all before it
        square = work[int(start == 0) : len(own) + 1].sum(axis=0)
    return centre, np.sqrt(square / count)


def standardise(
    rows: Rows, centre: Floats, unit: Floats, reach: float, out: Floats | None = None
) -> Floats:
    """Columns less their centre, in their unit, cut at `reach`; a gap is 0, shape (n, d).

    Args:
        rows: NaN where missing, shape (n, d).
        centre: Of each column, shape (d,).
        unit: Of each column, infinite for one that says nothing, shape (d,).
        reach: In units; a value beyond is as good as that.
        out: Where to write.
    """
    scaled = np.empty(rows.shape) if out is None else out
    step = rows_at_once(rows.shape[1])
    work = np.empty((min(step, len(rows)), rows.shape[1]))
    for start in range(0, len(rows), step):
        own = rows[start : start + step]
        part = work[: len(own)]
        part[...] = own  # not `out`: passes over part of a wider table take twice as long
        part -= centre
        with np.errstate(invalid="ignore"):  # infinity in a column that says nothing is 0 too
            part /= unit
        np.clip(part, -reach, reach, out=part)
        if np.isnan(part.sum()):  # one number tells whether there is a gap
            part[np.isnan(part)] = 0.0
        scaled[start : start + step] = part
    return scaled


def by_column(rows: Rows, columns: Ints) -> Rows:
    """Some columns of a table (n, d), the values of each together, shape (columns, n)."""
    turned = np.empty((len(columns), len(rows)), rows.dtype)
    for start in range(0, len(rows), TILE):
        tile = rows[start : start + TILE]
        some = tile if len(columns) == rows.shape[1] else tile.take(columns, axis=1)
        turned[:, start : start + TILE] = some.T
    return turned
