"""What a loss could be expected to be from what was visible.

If the propensities are right, every function of what was visible has the same mean weighted and
plain. The mean weight tests the function 1; the function that matters is the prognosis: its
weighted minus plain mean is in units of risk, so it can be compared with the interval itself.

Products of up to three features are searched, since neither a straight line nor a tree that is
grown cut by cut sees that a loss goes with the product of three.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from etips.evaluation.inference.checks import Bools, Clusters, Floats, Ints, Rows
from etips.evaluation.row_models import (
    Units,
    fit_ridge,
    fit_slope,
    fit_trees,
    some_rows,
)

MOST_COLUMNS = 16
"""Features among which all products are tried, about 6,000."""

BEYOND_CHANCE = 4.0
"""Standard errors by which a product must go with the target: of 6,000 that have nothing to do with
it, one does in a third of the searches."""

MOST_PRODUCTS, MOST_PAIRS = 8, 10
WIDEST_SEARCH = 150  # columns whose pairs are all tried

USUAL_SIZE = np.sqrt(2 / np.pi)  # of a normal value, in units of its spread

N_FOLDS = 3
MORE_FOLDS = 5  # of a log with few rows, which costs little and leaves more to learn from
FEW_ROWS = 5_000
MOST_FIT = 20_000  # rows that one fit sees
MOST_SCREENED = 5_000  # rows that the search for products sees
BLOCK = 8_192  # rows predicted at a time
LEAST_ROWS = 20  # of an action, to learn more of it than of all


@dataclass(frozen=True, eq=False)
class Products:
    """Products of features, and of forms of some of them; `of` gives their values.

    Args:
        pairs: Two features each, or one twice, shape (p, 2).
        columns: Features whose forms are looked at, shape (c,).
        factors: Three forms of each product, see `_forms`, shape (m, 3); form 0 is 1.
    """

    pairs: Ints
    columns: Ints
    factors: Ints

    def of(self, scaled: Floats) -> Floats:
        """Values of the products of features in units of their spread (n, d), shape (n, p + m)."""
        forms = _forms(scaled[:, self.columns])
        parts = scaled[:, self.pairs].prod(axis=2), forms[:, self.factors].prod(axis=2)
        return np.hstack(parts)


def find_products(scaled: Floats, rest: Floats) -> Products:
    """The pairs that go with `rest` most, and the products of forms that do so beyond chance.

    Args:
        scaled: Features in units of their spread, shape (n, d).
        rest: What is to be explained, shape (n,).
    """
    target = rest - rest.mean()
    columns = _most_promising(scaled, target)
    forms = _forms(scaled[:, columns])
    # of a column with two values only itself tells something, neither its side nor its size
    bent = np.array([np.unique(column).size > 2 for column in scaled[:, columns].T], np.bool_)
    telling = np.concatenate([[True], np.ones(bent.size, np.bool_), bent, bent])
    pairs = np.stack(np.triu_indices(forms.shape[1], k=1), axis=1)
    pairs = pairs[telling[pairs].all(axis=1)]
    signed = pairs[(pairs[:, 0] > 0) & (pairs[:, 1] <= 2 * columns.size)]  # not by size
    scores = [_scores(forms, forms, target)[pairs[:, 0], pairs[:, 1]]]
    factors = [np.column_stack([np.zeros(len(pairs), np.int64), pairs])]
    if len(signed):
        product = forms[:, signed[:, 0]] * forms[:, signed[:, 1]]
        third = 1 + np.flatnonzero(telling[1 : 2 * columns.size + 1])
        couple, last = np.nonzero(signed[:, 1, None] < third)
        scores.append(_scores(product, forms[:, third], target)[couple, last])
        factors.append(np.column_stack([signed[couple], third[last]]))
    # what is equal but for rounding must come in one order on every machine
    score, table = np.round(np.concatenate(scores), 6), np.concatenate(factors)
    best = np.argsort(-score, kind="stable")[:MOST_PRODUCTS]
    return Products(
        _telling_pairs(scaled, target), columns, table[best[score[best] > BEYOND_CHANCE]]
    )


def _telling_pairs(scaled: Floats, target: Floats) -> Ints:
    """The products of two features, squares too, that go with the target most, shape (p, 2)."""
    columns = np.flatnonzero(scaled.std(axis=0) > 0)[:WIDEST_SEARCH]
    score = np.triu(_scores(scaled[:, columns], scaled[:, columns], target)).ravel()
    best = np.argsort(-np.round(score, 6), kind="stable")[:MOST_PAIRS]
    first, second = np.divmod(best[score[best] > 0], max(columns.size, 1))
    return np.stack([columns[first], columns[second]], axis=1)


def _forms(part: Floats) -> Floats:
    """1, every column, its side of the mean, and its size, shape (n, 1 + 3 c)."""
    return np.column_stack([np.ones(len(part)), part, np.sign(part), np.abs(part) - USUAL_SIZE])


def _scores(left: Floats, right: Floats, target: Floats) -> Floats:
    """How the product of each two columns goes with the target, in standard errors of chance."""
    along = (left * target[:, None]).T @ right
    square = (left**2 * target[:, None] ** 2).T @ right**2
    return np.abs(along) / np.sqrt(np.where(square > 1e-12, square, np.inf))


def _most_promising(scaled: Floats, target: Floats) -> Ints:
    """All columns that vary, or of many those that go with the target most, or with its size."""
    varies = np.flatnonzero(scaled.std(axis=0) > 1e-9)
    if varies.size <= MOST_COLUMNS:
        return varies
    goals = np.column_stack([target, np.abs(target) - np.abs(target).mean()])
    part = scaled[:, varies]
    promise = np.maximum(
        *(np.abs(form.T @ goals).max(axis=1) for form in (part, np.abs(part) - USUAL_SIZE))
    )
    return np.sort(varies[np.argsort(-promise, kind="stable")[:MOST_COLUMNS]])


@dataclass(frozen=True)
class Expected:
    """Mean of a target given what was visible, of each row by a model that never saw its cluster.

    Args:
        plain: Over the actions as they were taken, shape (n,).
        by_action: Had each action been taken, shape (n, n_actions).
    """

    plain: Floats
    by_action: NDArray[np.float32]

    def take(self, keep: Bools) -> "Expected":
        """Of the rows for which `keep` (n,) holds."""
        return Expected(self.plain[keep], self.by_action[keep])


def cross_fit(
    features: Rows, target: Floats, clusters: Clusters, action: Ints, n_actions: int
) -> Expected:
    """Predict `target` from `features`, fold by fold of clusters; see `Prognosis`.

    Args:
        features: One row a decision, NaN where missing, shape (n, d).
    """
    if features.shape[1] == 0:
        features = np.zeros((target.size, 1))
    n_folds = MORE_FOLDS if target.size <= FEW_ROWS else N_FOLDS
    fold = np.random.default_rng(0).permutation(clusters.size)[clusters.code] % n_folds
    plain, by_action = np.zeros(target.size), np.zeros((target.size, n_actions), np.float32)
    for held in range(n_folds):
        learn, ask = np.flatnonzero(fold != held), np.flatnonzero(fold == held)
        if learn.size == 0 or ask.size == 0:
            continue
        learn = some_rows(learn, MOST_FIT)
        model = Prognosis.fit(features[learn], target[learn], action[learn], n_actions)
        for start in range(0, ask.size, BLOCK):
            rows = ask[start : start + BLOCK]
            plain[rows], by_action[rows] = model.predict(features[rows])
        # Folds differ in level by chance, and the weights' share of a fold too.
        level = plain[ask].mean()
        plain[ask] -= level
        by_action[ask] -= np.float32(level)
    return _calibrated(plain, by_action, target, action)


def _calibrated(
    plain: Floats, by_action: NDArray[np.float32], target: Floats, action: Ints
) -> Expected:
    """Shrunk towards the mean as far as the target asks for: a fit of noise says nothing."""
    mean, common = target.mean(), plain - plain.mean()
    special = by_action[np.arange(target.size), action] - plain
    special -= special.mean()
    rest = target - mean
    first, second = fit_slope(common, rest), fit_slope(special, rest)
    table = np.stack([common, special], axis=1)
    square = table.T @ table
    if min(first, second) > 0 and np.linalg.cond(square) <= 1e8:
        first, second = np.clip(np.linalg.solve(square, table.T @ rest), 0.0, 1.0)
    elif first > 0:
        second = fit_slope(special, rest - first * common)
    kept = mean + first * common
    by_action = (kept[:, None] + second * (by_action - plain[:, None])).astype(np.float32)
    return Expected(kept, by_action)


@dataclass(frozen=True)
class Prognosis:
    """A fitted model of what is to be expected, whatever is done and by action.

    A ridge regression on the features and the few products of two or three that go with the target
    most, then boosted trees on what it leaves: the plain mean. Then a ridge regression for each
    action on what remains, for an action may help some and harm others.
    """

    units: Units
    products: Products
    base: float
    slope: Floats  # (columns,)
    trees: Callable[[Rows], Floats]
    offset: Floats  # (n_actions,)
    tilt: Floats  # (columns, n_actions)

    @classmethod
    def fit(cls, rows: Rows, target: Floats, action: Ints, n_actions: int) -> "Prognosis":
        """Learn from all rows, shape (n, d)."""
        units, some = Units.of(rows), some_rows(np.arange(target.size), MOST_SCREENED)
        scaled = units.standardised(rows)
        base, slope = fit_ridge(scaled[some], target[some])
        products = find_products(scaled[some], target[some] - base - scaled[some] @ slope)
        table = np.hstack([scaled, products.of(scaled)])
        base, slope = fit_ridge(table, target)
        rest = target - base - table @ slope
        trees = fit_trees(rows, rest)
        # Not on what the trees leave: they have followed noise, and with it what an action does.
        offset, tilt = np.zeros(n_actions), np.zeros((table.shape[1], n_actions))
        for number in range(n_actions):
            own = action == number
            if own.sum() >= LEAST_ROWS:
                offset[number], tilt[:, number] = fit_ridge(table[own], rest[own])
        return cls(units, products, base, slope, trees, offset, tilt)

    def predict(self, rows: Rows) -> tuple[Floats, Floats]:
        """Expected target whatever is done, shape (n,), and by action, shape (n, n_actions)."""
        scaled = self.units.standardised(rows)
        table = np.hstack([scaled, self.products.of(scaled)])
        plain = self.base + table @ self.slope + self.trees(rows)
        return plain, plain[:, None] + self.offset + table @ self.tilt
