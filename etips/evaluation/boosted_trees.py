"""Gradient-boosted trees of depth three for squared loss, on features cut into a few bins.

Small on purpose: it predicts a loss from what was visible, so that the evaluation can ask whether
weighting left the patients' prognosis as it was. Trees follow thresholds and products of features,
which a linear model does not. NumPy alone, about a second for 20,000 rows of 60 columns.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from etips.evaluation.feature_tables import by_column
from etips.evaluation.inference.checks import Bools, Floats, Ints, Rows

Codes = NDArray[np.uint8]
DEPTH = 3
N_BINS = 32
LEAVES = 2**DEPTH
BLOCK = 8192  # values of a column that are coded at a time: their comparisons stay near the core
NO_SPLIT = 255  # above every bin: all rows go left


@dataclass(frozen=True)
class Boosting:
    """How trees are grown.

    Args:
        shrinkage: Share of each tree that is added.
        least_rows: Rows that each side of a split must keep.
        ridge: Rows' worth of zero that each leaf is averaged with.
        tree_rows: A tree sees at most so many rows, drawn anew.
        tree_columns: And at most so many columns.
    """

    n_trees: int = 60
    shrinkage: float = 0.1
    least_rows: int = 10
    ridge: float = 5.0
    tree_rows: int = 3000
    tree_columns: int = 24


@dataclass(frozen=True)
class Bins:
    """Cuts of each feature, about as many rows between two of them everywhere.

    Args:
        cuts: Rising, padded with infinity, shape (d, N_BINS - 2).
    """

    cuts: Floats

    @classmethod
    def of(cls, rows: Rows) -> "Bins":
        """Quantiles of the values that are known."""
        shares = np.linspace(0, 1, N_BINS)[1:-1]
        cuts = np.full((rows.shape[1], shares.size), np.inf)
        for number, column in enumerate(rows.T):
            known = np.sort(column)  # gaps last
            known = known[: np.searchsorted(known, np.nan)]
            if known.size:
                own = known[np.floor((known.size - 1) * shares).astype(np.intp)]
                # a cut twice, or with nothing above it, splits nothing
                own = own[(own != np.append(np.nan, own[:-1])) & (own < known[-1])]
                cuts[number, : own.size] = own
        return cls(cuts)

    def code(self, rows: Rows) -> Codes:
        """Bin of each value, shape (n, d): 0 where missing, else one more than cuts below it.

        A column's codes lie together, as trees ask for them.
        """
        n, width = rows.shape
        codes = np.zeros((width, n), np.uint8)
        cuts = _as_narrow(self.cuts, rows)
        above = np.empty((N_BINS - 2, min(n, BLOCK)), bool)
        for start in range(0, n, BLOCK):
            block = by_column(rows[start : start + BLOCK], np.arange(width))
            for values, own, result in zip(block, cuts, codes, strict=True):
                _count_below(values, own[own < np.inf], above, result[start : start + BLOCK])
        return codes.T

    def limits(self, column: Ints, cut: Ints) -> Floats:
        """Value beyond which a bin of `column` is above `cut`; NaN if every known one is."""
        n, shares = self.cuts.shape
        limits = np.full((n, shares + 2), np.inf)
        limits[:, 0], limits[:, 1:-1] = np.nan, self.cuts
        return np.asarray(limits[column, np.minimum(cut, shares + 1)])


def _as_narrow(values: Floats, rows: Rows) -> Rows:
    """In the precision of `rows` if nothing is lost: those are then compared without a cast."""
    if rows.dtype != np.float32:
        return values
    narrow = values.astype(np.float32)
    return narrow if np.array_equal(narrow, values, equal_nan=True) else values


def _count_below(values: Rows, cuts: Rows, above: Bools, codes: Codes) -> None:
    """Write one more than the cuts below each value, 0 of NaN; a search asks one at a time."""
    some = above[: len(cuts), : len(values)]
    np.greater(values, cuts[:, None], out=some)
    np.add.reduce(some.view(np.uint8), axis=0, out=codes)
    codes += values == values  # NaN is not itself


@dataclass(frozen=True)
class Trees:
    """Fitted trees, each complete; inner node j has children 2 j + 1 and 2 j + 2.

    Args:
        base: Mean of the target.
        column: Feature that each inner node asks for, shape (trees, LEAVES - 1).
        cut: Rows whose bin is above go right, shape (trees, LEAVES - 1).
        value: Of each leaf, shrunk, shape (trees, LEAVES).
    """

    base: float
    column: Ints
    cut: Ints
    value: Floats

    @property
    def asked(self) -> Ints:
        """The columns that a node splits by, ascending."""
        return np.unique(self.column[self.cut < NO_SPLIT])

    def predict(self, codes: Codes) -> Floats:
        """Sum of all trees, shape (n,)."""
        result, columns = np.full(len(codes), self.base), np.ascontiguousarray(codes.T)
        for column, cut, value in zip(self.column, self.cut, self.value, strict=True):
            result += value[
                _leaf([columns[own] > above for own, above in zip(column, cut, strict=True)])
            ]
        return result

    def predict_rows(self, rows: Rows, bins: Bins) -> Floats:
        """The same of values before they are put into bins, shape (n,); quicker than to do that."""
        result, asked = np.full(len(rows), self.base), self.asked
        limits = _as_narrow(bins.limits(self.column, self.cut), rows)
        place = np.minimum(np.searchsorted(asked, self.column), max(asked.size - 1, 0))
        for start in range(0, len(rows) if asked.size else 0, BLOCK):
            columns = by_column(rows[start : start + BLOCK], asked)
            total = result[start : start + BLOCK]
            for own, limit, value in zip(place, limits, self.value, strict=True):
                total += value[
                    _leaf([_beyond(columns[a], b) for a, b in zip(own, limit, strict=True)])
                ]
        return result


def _beyond(values: Rows, limit: float) -> Bools:
    """Which values are larger; of a limit that is NaN, which are known."""
    return np.asarray(values == values if np.isnan(limit) else values > limit)


def fit_trees(
    codes: Codes, target: Floats, *, seed: int, settings: Boosting | None = None
) -> Trees:
    """Boost trees on the squared error."""
    grow = settings or Boosting()
    generator = np.random.default_rng(seed)
    base = float(target.mean())
    rest = target - base
    features = np.ascontiguousarray(codes.T)  # a tree asks for columns, which then lie together
    columns, cuts, values = [], [], []
    for _ in range(grow.n_trees):
        rows = _some(generator, len(codes), grow.tree_rows)
        asked = _some(generator, codes.shape[1], grow.tree_columns)
        column, cut = _grow(features[asked].take(rows, axis=1), rest[rows], grow)
        column = asked[column]
        leaf = _leaf([features[own] > above for own, above in zip(column, cut, strict=True)])
        seen = leaf[rows]
        size = np.bincount(seen, minlength=LEAVES) + grow.ridge
        value = grow.shrinkage * np.bincount(seen, rest[rows], LEAVES) / size
        rest -= value[leaf]
        columns.append(column)
        cuts.append(cut)
        values.append(value)
    return Trees(base, np.stack(columns), np.stack(cuts), np.stack(values))


def _some(generator: np.random.Generator, size: int, most: int) -> Ints:
    """Numbers 0..size-1, or `most` of them."""
    if size <= most:
        return np.arange(size)
    return np.sort(generator.choice(size, most, replace=False))


def _grow(features: Codes, rest: Floats, grow: Boosting) -> tuple[Ints, Ints]:
    """Columns and cuts of the inner nodes, level by level, from bins of shape (columns, rows).

    Each sum runs over rows in their order: other orders round otherwise.
    """
    width, n = features.shape
    # Rows side by side: the processor waits where the same bin is added to twice in turn.
    place = np.ascontiguousarray(features.T) + N_BINS * np.arange(width)
    spread = np.repeat(rest, width)
    size = float(rest @ rest) or 1.0
    node = np.zeros(n, np.int64)
    columns, cuts = [], []
    count = np.bincount(place.ravel(), minlength=width * N_BINS).reshape(1, width, N_BINS)
    for level in range(DEPTH):
        shape = (2**level, width, N_BINS)
        cell = place + (node * (width * N_BINS))[:, None] if level else place
        total = np.bincount(cell.ravel(), spread, int(np.prod(shape))).reshape(shape)
        if level:
            count = _children(count, cell[node % 2 == 0])
        gain = _gain(total.cumsum(axis=2), count.cumsum(axis=2), grow).reshape(2**level, -1)
        gain = np.round(gain / size, 10)  # of cuts that are alike the first, on every machine
        best = gain.argmax(axis=1)
        splits = gain.max(axis=1) > 0
        column = np.where(splits, best // N_BINS, 0)
        cut = np.where(splits, best % N_BINS, NO_SPLIT)
        columns.append(column)
        cuts.append(cut)
        right = np.zeros(n, bool)
        for number in range(2**level):
            right |= (node == number) & (features[column[number]] > cut[number])
        node = 2 * node + right
    return np.concatenate(columns), np.concatenate(cuts)


def _children(count: Ints, left: Ints) -> Ints:
    """Rows in each cell of the children, from those of their parents and of the left ones."""
    nodes, width, n_bins = count.shape
    both = np.bincount(left.ravel(), minlength=2 * count.size).reshape(2 * nodes, width, n_bins)
    both[1::2] = count - both[::2]
    return both


def _gain(total: Floats, count: Ints, grow: Boosting) -> Floats:
    """Fall of the squared error by a cut after each bin, shape (nodes, columns, bins)."""
    whole, all_rows = total[..., -1:], count[..., -1:]
    gain = total**2 / (count + grow.ridge)
    gain += (whole - total) ** 2 / (all_rows - count + grow.ridge)
    gain -= whole**2 / (all_rows + grow.ridge)
    allowed = (count >= grow.least_rows) & (all_rows - count >= grow.least_rows)
    return np.where(allowed, gain, -np.inf)


def _leaf(right: list[Bools]) -> Ints:
    """Leaf 0..LEAVES-1 of each row, shape (n,), from whether each inner node sends it right."""
    path: list[Bools] = []  # whether a row went right, level by level
    for depth in range(DEPTH):
        level = right[2**depth - 1 : 2 ** (depth + 1) - 1]
        for went in reversed(path):  # of two neighbours the one that the row came by
            level = [a ^ (went & (a ^ b)) for a, b in zip(level[::2], level[1::2], strict=True)]
        path += level
    leaf = np.zeros(len(right[0]), np.uint8)
    for went in path:
        leaf += leaf
        leaf += went
    return leaf.astype(np.int64)
