"""Functions of what is visible that weighted decisions should have in balance, as columns.

The prognosis, the features that matter most, and those of their products that actions and losses
have in common: squares, products of two, and products with the size or the side of another, which
stand for steps and bends. Which ones is learned from some stays; their values can be asked of any.
"""

from dataclasses import dataclass

import numpy as np

from etips.evaluation.inference.checks import Floats, Ints, Rows

MOST_LOOKED_AT = 16
"""Features that are looked at for products: 800 of these, quick and rarely too few."""

MOST_FUNCTIONS = 16
"""Features and products that enter, beside the prognosis."""

WIDEST = 3.0
"""Standard deviations at which a value is cut: the exponential of a tail is no propensity."""

BEYOND_NOISE = 5.0
"""Standard deviations of chance by which a function must go with the actions, to be chosen."""

LEAST_NEW = 0.02
"""Of a function's variance: what those chosen leave of it, for it to be chosen too."""

MOST_CHOSEN_BY = 6_000
"""Decisions that functions are chosen by; more tell no better which ones matter."""


@dataclass(frozen=True, eq=False)
class Units:
    """Centre and spread of columns, as some stays had them.

    Args:
        centre: Means, shape (d,).
        spread: Standard deviations, 1 where a column does not vary, shape (d,).
    """

    centre: Floats
    spread: Floats

    def standardised(self, table: Floats) -> Floats:
        """Columns in units of their spread, cut at `WIDEST`; a missing value is the mean."""
        scaled = table - self.centre
        scaled /= self.spread
        np.clip(scaled, -WIDEST, WIDEST, out=scaled)
        if np.isnan(scaled.sum()):  # one number tells whether there is a gap
            scaled[np.isnan(scaled)] = 0.0
        return scaled

    def take(self, columns: Ints) -> "Units":
        """Those of some columns."""
        return Units(self.centre[columns], self.spread[columns])


def units_of(table: Floats) -> Units:
    """Centre and spread of the columns of `table` (n, d), missing values left out."""
    known = np.isfinite(table)
    gaps = not known.all()
    count = np.maximum(known.sum(axis=0), 1) if gaps else max(len(table), 1)
    centre = (np.where(known, table, 0.0) if gaps else table).sum(axis=0) / count
    rest = np.where(known, table - centre, 0.0) if gaps else table - centre
    rest *= rest
    spread = np.sqrt(rest.sum(axis=0) / count)
    varies = spread > 1e-9 * (1 + np.abs(centre))
    return Units(centre, np.where(varies, spread, 1.0))


@dataclass(frozen=True, eq=False)
class BalanceFunctions:
    """Chosen functions; `of` gives their values. Column 0 is the prognosis, others are features.

    Args:
        columns: That are needed, the prognosis first, shape (c,).
        units: Of these.
        pairs: Which two of their forms (see `_forms`) are multiplied, shape (m, 2).
        pair_units: Of the products.
    """

    columns: Ints
    units: Units
    pairs: Ints
    pair_units: Units

    def of(self, features: Rows, prognosis: Floats, rows: Ints | None = None) -> Floats:
        """Values of 1, the prognosis, and every other function, shape (n, 2 + m).

        Args:
            features: What was visible, shape (n, d).
            prognosis: Expected loss given that, shape (n,).
            rows: Those that are asked about; all if left out.
        """
        columns = self.columns[1:] - 1
        if rows is None:
            table = _beside(prognosis, features[:, columns])
        else:
            table = _beside(prognosis[rows], features[rows[:, None], columns])
        scaled = self.units.standardised(table)
        products = self.pair_units.standardised(_products(scaled, self.pairs))
        return np.column_stack([np.ones(len(scaled)), scaled[:, 0], products])


def choose_functions(
    features: Rows, prognosis: Floats, loss: Floats, residual: Floats
) -> BalanceFunctions:
    """Find what matters: functions that go with both the loss and the actions' residuals.

    Args:
        features: What was visible, shape (n, d).
        prognosis: Expected loss given that, shape (n,).
        loss: Logged, shape (n,).
        residual: Whether each action was taken, less its propensity, shape (n, n_actions).
    """
    some = every_so_many(np.arange(len(loss)), MOST_CHOSEN_BY)
    table, residual = _beside(prognosis[some], features[some]), residual[some]
    units = units_of(table)
    columns = np.union1d([0], _most(_promise(units.standardised(table), residual), MOST_LOOKED_AT))
    units = units.take(columns)
    scaled = units.standardised(table[:, columns])
    pairs = _pairs(scaled)
    products = _products(scaled, pairs)
    pair_units = units_of(products)
    goals = np.column_stack([loss[some], scaled[:, 0]])
    best = _forward(pair_units.standardised(products), scaled[:, 0], goals, residual)
    return BalanceFunctions(columns, units, pairs[best], pair_units.take(best))


def every_so_many(rows: Ints, most: int) -> Ints:
    """At most so many of the rows, as far from each other as that allows."""
    return rows[:: max(-(-len(rows) // most), 1)]


def _beside(prognosis: Floats, features: Rows) -> Floats:
    """One table, the prognosis first."""
    return np.column_stack([prognosis, features]).astype(np.float64, copy=False)


def _forms(scaled: Floats) -> Floats:
    """1, every column, its distance from the mean, and its side of it, shape (n, 1 + 3 c)."""
    return np.column_stack([np.ones(len(scaled)), scaled, np.abs(scaled), np.sign(scaled)])


def _products(scaled: Floats, pairs: Ints) -> Floats:
    forms = np.ascontiguousarray(_forms(scaled).T)  # each form's values together
    product = forms[pairs[:, 0]]
    product *= forms[pairs[:, 1]]
    return np.asarray(product.T)


def _pairs(scaled: Floats) -> Ints:
    """Forms that may be multiplied, shape (m, 2): a feature itself is its product with 1."""
    count = scaled.shape[1]
    own = 1 + np.arange(count)
    bent = own[[np.unique(column).size > 2 for column in scaled.T]]  # else its forms are itself
    size, side = bent + count, bent + 2 * count
    first, second = np.triu_indices(count, k=1)
    couples = [
        (own[first], own[second]),
        (bent, bent),
        *((np.zeros_like(form), form) for form in (own[1:], size, side)),
        *((np.repeat(own, form.size), np.tile(form, count)) for form in (size, side)),
    ]
    table = np.concatenate([np.stack(couple, axis=1) for couple in couples])
    other = table[:, 1] - table[:, 0] != 2 * count  # a column times its side is its size
    return np.asarray(table[other], np.int64)


def _promise(scaled: Floats, residual: Floats) -> Floats:
    """How much a column could matter, itself, squared or in a product; the first is the prognosis.

    A feature that matters in a product alone goes with neither loss nor action; yet where it is
    large the prognosis lies far from its mean, on either side.
    """
    outlook = scaled[:, :1]
    goals = np.concatenate([outlook, outlook**2, residual], axis=1)
    each = [np.abs(_correlation(form, goals)).max(axis=1) for form in (scaled, scaled**2)]
    return np.asarray(np.maximum(*each))


def _forward(functions: Floats, first: Floats, goals: Floats, residual: Floats) -> Ints:
    """Functions one by one: each time what confounds most of what is not yet chosen.

    What confounds goes with the loss and with the actions. The part of the loss has a floor, the
    noise of its correlation, so that of functions that do not go with the loss those that go with
    the actions still come first. The part of the actions is what a function adds to those chosen,
    lest several places go to forms of one thing.

    Args:
        functions: To choose from, shape (n, m).
        first: Chosen already, shape (n,).
        goals: The loss and what goes with it, shape (n, g).
        residual: Of the actions, shape (n, n_actions).
    """
    functions = _unit(functions)
    outcome = np.abs(functions.T @ _unit(goals)).max(axis=1) + 1 / np.sqrt(len(functions))
    target = residual - residual.mean(axis=0)
    along = functions.T @ target  # (m, n_actions)
    left = (functions**2).sum(axis=0)  # squared length of what is new in each
    chance = (target**2).mean(axis=0).sum()  # what noise has along a function of length 1
    least = chance * (1 + BEYOND_NOISE * np.sqrt(2 / max(target.shape[1] - 1, 1)))
    basis, newest, chosen = np.zeros((len(functions), 0)), _unit(first[:, None]), []
    for _ in range(MOST_FUNCTIONS):
        share = functions.T @ newest
        along = along - share @ (newest.T @ target)
        left = left - share[:, 0] ** 2
        fresh = left > LEAST_NEW
        square = (along**2).sum(axis=1) / np.where(fresh, left, np.inf)
        best = int(np.argmax(outcome * np.sqrt(square * (square > least))))
        if square[best] <= least:
            break
        chosen.append(best)
        basis = np.column_stack([basis, newest])
        column = functions[:, [best]]
        newest = _unit(column - basis @ (basis.T @ column))
    return np.array(chosen, np.int64)


def _unit(table: Floats) -> Floats:
    """Columns less their mean, of length 1; 0 where one does not vary."""
    centred: Floats = table - table.mean(axis=0)
    size = np.sqrt((centred**2).sum(axis=0))
    centred /= np.where(size > 1e-9, size, np.inf)
    return centred


def _correlation(left: Floats, right: Floats) -> Floats:
    """Correlation of every column with every other, 0 where one does not vary."""
    return np.asarray(_unit(left).T @ _unit(right))


def _most(score: Floats, count: int) -> Ints:
    """Places of the largest scores above 0, in their order."""
    best = np.argsort(-score, kind="stable")[:count]
    return np.sort(best[score[best] > 0])
