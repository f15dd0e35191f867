"""Tables of features: columns in units of their spread, a few rows at a time, near the core."""

from dataclasses import dataclass

import numpy as np

from etips.evaluation.inference.checks import Floats, Ints, Rows

TILE = 256  # rows that are turned into columns at a time

NUMBERS = 65_536
"""Numbers worked on at a time: half a megabyte."""


@dataclass(frozen=True, eq=False)
class Units:
    """Centre and spread of columns, as some rows had them.

    Args:
        centre: Means, shape (d,).
        spread: Standard deviations, infinite where a column does not vary, shape (d,).
    """

    centre: Floats
    spread: Floats

    @classmethod
    def of(cls, rows: Rows) -> "Units":
        """Those of the values known, of rows (n, d) that are NaN where one is missing.

        Sums run down the rows in their order and in the table's own precision, as NumPy's do.
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
        spread = np.sqrt(square / count)
        return cls(centre, np.where(spread > 1e-9 * (1 + np.abs(centre)), spread, np.inf))

    def take(self, columns: Ints) -> "Units":
        """Those of some columns."""
        return Units(self.centre[columns], self.spread[columns])

    def standardised(self, rows: Rows, reach: float, out: Floats | None = None) -> Floats:
        """Columns of rows (n, d) in units of their spread, cut at `reach`; a gap is 0."""
        scaled = np.empty(rows.shape) if out is None else out
        step = rows_at_once(rows.shape[1])
        work = np.empty((min(step, len(rows)), rows.shape[1]))
        for start in range(0, len(rows), step):
            own = rows[start : start + step]
            part = work[: len(own)]
            part[...] = own  # not `out`: passes over part of a wider table take twice as long
            part -= self.centre
            with np.errstate(invalid="ignore"):  # infinity in a column that says nothing is 0 too
                part /= self.spread
            np.clip(part, -reach, reach, out=part)
            if np.isnan(part.sum()):  # one number tells whether there is a gap
                part[np.isnan(part)] = 0.0
            scaled[start : start + step] = part
        return scaled


def rows_at_once(width: int) -> int:
    """Rows of so many columns that stay near the core, a multiple of 64."""
    return max(NUMBERS // max(width, 1) // 64, 1) * 64


def some_rows(rows: Ints, most: int) -> Ints:
    """At most so many of the rows, drawn evenly, in their order."""
    if rows.size <= most:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def with_one(table: Floats) -> Floats:
    """A column of ones, then the table."""
    return np.hstack([np.ones((len(table), 1)), table])


def by_column(rows: Rows, columns: Ints) -> Rows:
    """Some columns of a table (n, d), the values of each together, shape (columns, n)."""
    turned = np.empty((len(columns), len(rows)), rows.dtype)
    for start in range(0, len(rows), TILE):
        tile = rows[start : start + TILE]
        some = tile if len(columns) == rows.shape[1] else tile.take(columns, axis=1)
        turned[:, start : start + TILE] = some.T
    return turned
