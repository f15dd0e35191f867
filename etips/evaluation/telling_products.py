"""Products of up to three features that go with a target, where each of them alone may not.

Neither a straight line nor a tree that is grown cut by cut sees that a loss goes with the product
of three features; a search through all of them does. Features enter as they are, by their side of
the mean and by their size, which stand for steps and bends.
"""

from dataclasses import dataclass

import numpy as np

from etips.evaluation.inference.checks import Bools, Floats, Ints

MOST_COLUMNS = 16
"""Features among which all products are tried, about 6,000."""

BEYOND_CHANCE = 4.0
"""Standard errors by which a product must go with the target: of 6,000 that have nothing to do with
it, one does in a third of the searches."""

MOST_PRODUCTS = 8

USUAL_SIZE = np.sqrt(2 / np.pi)  # of a normal value, in units of its spread


@dataclass(frozen=True, eq=False)
class Products:
    """Products of forms of features; `of` gives their values.

    Args:
        columns: Features that are looked at, shape (c,).
        factors: Three forms of each product, see `_forms`, shape (m, 3); form 0 is 1.
    """

    columns: Ints
    factors: Ints

    @property
    def count(self) -> int:
        """How many products."""
        return len(self.factors)

    def of(self, scaled: Floats) -> Floats:
        """Values of the products of features in units of their spread (n, d), shape (n, m)."""
        if not self.count:
            return np.empty((len(scaled), 0))
        return _multiplied(_forms(scaled[:, self.columns]), self.factors)


def find_products(scaled: Floats, rest: Floats) -> Products:
    """The products that go with `rest` beyond chance; those that do so most.

    Args:
        scaled: Features in units of their spread, shape (n, d).
        rest: What is to be explained, shape (n,).
    """
    target = rest - rest.mean()
    columns = _most_promising(scaled, target)
    forms = _forms(scaled[:, columns])
    told = _different(scaled[:, columns])
    pairs = np.stack(np.triu_indices(forms.shape[1], k=1), axis=1)
    pairs = pairs[told[pairs].all(axis=1)]
    signed = pairs[(pairs[:, 0] > 0) & (pairs[:, 1] <= 2 * columns.size)]  # not by size
    score = [_scores(forms, forms, target)[pairs[:, 0], pairs[:, 1]]]
    factors = [np.column_stack([np.zeros(len(pairs), np.int64), pairs])]
    if len(signed):
        product = _multiplied(forms, signed)
        third = 1 + np.flatnonzero(told[1 : 2 * columns.size + 1])
        couple, last = np.nonzero(signed[:, 1, None] < third)
        score.append(_scores(product, forms[:, third], target)[couple, last])
        factors.append(np.column_stack([signed[couple], third[last]]))
    # what is equal but for rounding must come in one order on every machine
    scores, table = np.round(np.concatenate(score), 6), np.concatenate(factors)
    best = np.argsort(-scores, kind="stable")[:MOST_PRODUCTS]
    return Products(columns, table[best[scores[best] > BEYOND_CHANCE]])


def _forms(part: Floats) -> Floats:
    """1, every column, its side of the mean, and its size, shape (n, 1 + 3 c)."""
    return np.column_stack([np.ones(len(part)), part, np.sign(part), np.abs(part) - USUAL_SIZE])


def _multiplied(forms: Floats, factors: Ints) -> Floats:
    """Products of columns of `forms` (n, c) by their places (m, few), shape (n, m)."""
    columns = np.ascontiguousarray(forms.T)  # each column's values together
    first, *others = factors.T
    product = columns[first]
    for other in others:
        product *= columns[other]
    return np.asarray(product.T)


def _different(part: Floats) -> Bools:
    """Which forms say something of their own: of a column with two values only itself does."""
    bent = np.array([np.unique(column).size > 2 for column in part.T], dtype=np.bool_)
    return np.concatenate([[True], np.ones(bent.size, np.bool_), bent, bent])


def _scores(left: Floats, right: Floats, target: Floats) -> Floats:
    """How the product of each two columns goes with the target, in standard errors of chance."""
    along = (left * target[:, None]).T @ right
    size = left**2
    size *= target[:, None] ** 2
    square = size.T @ right**2
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
