"""Models of one row a decision, as the evaluation fits them: standardised columns, ridge, trees."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from etips.evaluation.inference.checks import Floats, Ints, Rows

REACH = 4.0
"""Standard deviations beyond which a value is as good as that."""

PENALTIES = np.geomspace(1e-3, 10, 13)
ROWS_PER_COLUMN = 15
WIDEST_RIDGE = 400  # columns that a ridge regression takes at once
LEAST_COLUMNS = 3


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
        """Those of the values known, of rows (n, d) that are NaN where one is missing."""
        known = ~np.isnan(rows)
        count = np.maximum(known.sum(axis=0), 1)
        centre = np.where(known, rows, 0.0).sum(axis=0, dtype=np.float64) / count
        spread = np.sqrt(np.square(np.where(known, rows - centre, 0.0)).sum(axis=0) / count)
        return cls(centre, np.where(spread > 1e-9 * (1 + np.abs(centre)), spread, np.inf))

    def standardised(self, rows: Rows) -> Floats:
        """Columns of rows (n, d) in units of their spread, cut at `REACH`; a gap is 0."""
        scaled = (rows - self.centre) / self.spread
        scaled[np.isnan(scaled)] = 0.0
        return np.asarray(np.clip(scaled, -REACH, REACH, out=scaled))


def some_rows(rows: Ints, most: int) -> Ints:
    """At most so many of the rows, drawn evenly, in their order."""
    if rows.size <= most:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def fit_trees(rows: Rows, target: Floats, *, classifier: bool = False) -> Callable[[Rows], Floats]:
    """Boosted trees of depth three, small on purpose: they follow what a straight line leaves.

    Returns what predicts the target of other rows, or its log-odds if that is 0 or 1.
    """
    # Here, since importing it takes a second that a refused command need not wait for.
    from sklearn.ensemble import (  # noqa: PLC0415
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
    )

    asked = np.flatnonzero(~np.isnan(rows).all(axis=0))
    if not asked.size:
        return lambda later: np.full(len(later), 0.0 if classifier else target.mean())
    settings = {
        "max_iter": 60,
        "learning_rate": 0.1,
        "max_depth": 3,
        "min_samples_leaf": 10,
        "l2_regularization": 5.0,
        "max_bins": 32,
        "early_stopping": False,
        "random_state": 0,
    }
    kind = HistGradientBoostingClassifier if classifier else HistGradientBoostingRegressor
    # One thread: processes that are forked later must not find a pool of threads half copied.
    one_thread = ThreadpoolController().wrap(limits=1, user_api="openmp")
    trees: Any = kind(**settings)
    one_thread(trees.fit)(rows[:, asked], target)
    answer = one_thread(trees.decision_function if classifier else trees.predict)
    return lambda later: np.asarray(answer(later[:, asked]))


def fit_ridge(table: Floats, target: Floats) -> tuple[float, Floats]:
    """Intercept and slopes: of all columns, and of the few that tell most where there are many.

    Many columns may each tell a little, or a few tell all; a held-out third says how much of the
    one and of the other.
    """
    n, width = table.shape
    few = max(LEAST_COLUMNS, n // ROWS_PER_COLUMN)
    if width <= few or width > WIDEST_RIDGE:
        return _fit_columns(table, target, few)
    asked = np.arange(n) % 3 == 0
    held = table[asked] - table[~asked].mean(axis=0)
    one, other = (held @ _fit_columns(table[~asked], target[~asked], m)[1] for m in (few, width))
    share = fit_slope(other - one, target[asked] - target[~asked].mean() - one)
    (base, slope), (base_all, slope_all) = (_fit_columns(table, target, m) for m in (few, width))
    return (1 - share) * base + share * base_all, (1 - share) * slope + share * slope_all


def fit_slope(column: Floats, target: Floats) -> float:
    """Least-squares slope without an intercept, kept within 0 and 1."""
    spread = float(column @ column)
    return min(max(float(column @ target) / spread, 0.0), 1.0) if spread > 0 else 0.0


def _fit_columns(table: Floats, target: Floats, most: int) -> tuple[float, Floats]:
    """A ridge regression on at most so many columns, those that go with the target most.

    Its penalty has the least generalised cross-validation error; no slope at all may.
    """
    n, width = table.shape
    middle, mean = table.mean(axis=0), float(target.mean())
    rest, slope, keep = target - mean, np.zeros(width), np.arange(width)
    if most < width:
        spread = table.std(axis=0)
        signal = np.abs(rest @ (table - middle)) / np.where(spread > 0, spread, np.inf)
        keep = np.sort(np.argsort(-signal, kind="stable")[:most])
    centred = table[:, keep] - middle[keep]
    values, vectors = np.linalg.eigh(centred.T @ centred / n)
    values = np.maximum(values, 0.0)
    signal = vectors.T @ (centred.T @ rest / n)
    total = float(rest @ rest) / n
    least = total / (1 - 1 / max(n, 2)) ** 2
    for penalty in PENALTIES:
        shrunk = signal / (values + penalty)
        error = total - 2 * float(signal @ shrunk) + float(values @ shrunk**2)
        freedom = float((values / (values + penalty)).sum()) + 1
        score = error / (1 - freedom / n) ** 2 if freedom < n else np.inf
        if score < least:
            slope[keep], least = vectors @ shrunk, score
    return mean - float(middle @ slope), slope
