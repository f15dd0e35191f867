"""k-means: rows in so many groups, each told by its mean."""

import numpy as np
from numpy.typing import NDArray

from etips.data.decisions import Floats, Ints
from etips.models.row_model import nearest

MOST_ROWS = 30_000
"""Means are looked for among no more rows than this, drawn by the seed."""

ROUNDS = 25

BLOCK = 8192


def find_centres(rows: NDArray[np.float32], n_centres: int, *, seed: int) -> Floats:
    """Means of groups of rows, shape (at most n_centres, d).

    They start far apart (Arthur and Vassilvitskii 2007). Where there are no more distinct rows than
    centres, the distinct rows are the centres.

    Args:
        rows: Standardised, shape (n, d).
        n_centres: How many groups at most.
        seed: Of the draws.
    """
    distinct, count = _distinct(rows)
    if len(distinct) <= n_centres:
        return distinct.astype(np.float64)
    rng = np.random.default_rng([seed, n_centres])
    if len(distinct) > MOST_ROWS:
        some = np.sort(rng.permutation(len(distinct))[:MOST_ROWS])
        distinct, count = distinct[some], count[some]
    values = distinct.astype(np.float64)
    centres = _spread_out(values, count, n_centres, rng)
    for _ in range(ROUNDS):
        group = assign(values, centres)
        size = np.bincount(group, count, len(centres))
        moved = centres.copy()
        for column in range(values.shape[1]):
            total = np.bincount(group, count * values[:, column], len(centres))
            moved[size > 0, column] = (total / np.maximum(size, 1e-300))[size > 0]
        if np.abs(moved - centres).max() < 1e-6:
            break
        centres = moved
    return centres


def assign(rows: NDArray[np.floating], centres: Floats) -> Ints:
    """The nearest centre of each row, shape (n,)."""
    parts = [
        nearest(np.asarray(rows[start : start + BLOCK], np.float64), centres)
        for start in range(0, len(rows), BLOCK)
    ]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _distinct(rows: NDArray[np.float32]) -> tuple[NDArray[np.float32], Floats]:
    """Distinct rows in a fixed order, and how often each occurs."""
    if not rows.shape[1]:
        return rows[:1], np.array([float(len(rows))])
    whole = np.ascontiguousarray(rows + np.float32(0))  # minus zero is zero
    keys = whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1]))).ravel()
    _, first, count = np.unique(keys, return_index=True, return_counts=True)
    order = np.argsort(first)
    return whole[first[order]], count[order].astype(np.float64)


def _spread_out(rows: Floats, count: Floats, n_centres: int, rng: np.random.Generator) -> Floats:
    """First centres, each drawn by its squared distance from those before."""
    size = (rows**2).sum(axis=1)
    chosen = [_draw(count, rng)]
    apart = np.full(len(rows), np.inf)
    for _ in range(n_centres - 1):
        last = rows[chosen[-1]]
        apart = np.minimum(apart, np.maximum(size - 2 * (rows @ last) + last @ last, 0.0))
        apart[chosen[-1]] = 0.0
        chosen.append(_draw(count * apart, rng))
    return rows[chosen].copy()


def _draw(weight: Floats, rng: np.random.Generator) -> int:
    total = np.cumsum(weight)
    return int(
        np.searchsorted(total, rng.random() * total[-1], side="right").clip(0, len(weight) - 1)
    )
