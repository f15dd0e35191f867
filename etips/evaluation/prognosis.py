"""What a loss could be expected to be from what was visible.

If the propensities are right, every function of what was visible has the same mean weighted and
plain. The mean weight tests the function 1; the function that matters is the prognosis: its
weighted minus plain mean is in units of risk, so it can be compared with the interval itself.

Products of up to three features are searched, since neither a straight line nor a tree that is
grown cut by cut sees that a loss goes with the product of three.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from etips.evaluation.boosted_trees import Bins, Trees, fit_trees
from etips.evaluation.feature_tables import Units, by_column, rows_at_once, some_rows
from etips.evaluation.fold_work import IN_TURN, FoldWork
from etips.evaluation.inference.checks import Bools, Clusters, Floats, Ints, Rows
from etips.evaluation.inference.evidence import divide

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


N_FOLDS = 3
MORE_FOLDS = 5  # of a log with few rows, which costs little and leaves more to learn from
FEW_ROWS = 5_000
MOST_FIT = 20_000  # rows that one fit sees
MOST_SCREENED = 5_000  # rows that the search for products sees
BLOCK = 8_192  # rows predicted at a time
REACH = 4.0  # standard deviations beyond which a value is as good as that
N_PRODUCTS = 10
WIDEST_SEARCH = 150  # columns among which products are searched
LEAST_ROWS = 20  # of an action, to learn more of it than of all
ROWS_PER_COLUMN = 15
WIDEST_RIDGE = 400  # columns that a ridge regression takes at once
LEAST_COLUMNS = 3
PENALTIES = np.geomspace(1e-3, 10, 13)


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
    features: Rows,
    target: Floats,
    clusters: Clusters,
    action: Ints,
    n_actions: int,
    folds: FoldWork = IN_TURN,
) -> Expected:
    """Predict `target` from `features`, fold by fold of clusters.

    A ridge regression on the features and the few products of two or three that go with the target
    most, then boosted trees on what it leaves: the plain mean. Then a ridge regression for each
    action on what remains, for an action may help some and harm others.

    Args:
        features: One row a decision, NaN where missing, shape (n, d).
        folds: What runs the work of the folds.
    """
    if features.shape[1] == 0:
        features = np.zeros((target.size, 1))
    n_folds = MORE_FOLDS if target.size <= FEW_ROWS else N_FOLDS
    fold = np.random.default_rng(0).permutation(clusters.size)[clusters.code] % n_folds
    plain = folds.zeros((target.size,), np.float64)
    by_action = folds.zeros((target.size, n_actions), np.float32)

    @cache
    def bins() -> Bins:
        return Bins.of(features[some_rows(np.arange(target.size), MOST_SCREENED)])

    def fit(held: int) -> None:
        learn, ask = np.flatnonzero(fold != held), np.flatnonzero(fold == held)
        if learn.size == 0:
            return
        learn = some_rows(learn, MOST_FIT)
        seen = features.take(learn, axis=0)
        model = Prognosis.fit(seen, target[learn], action[learn], n_actions, bins())
        for start in range(0, ask.size, BLOCK):
            rows = ask[start : start + BLOCK]
            plain[rows], by_action[rows] = model.predict(features.take(rows, axis=0))
        # Folds differ in level by chance, and the weights' share of a fold too.
        level = plain[ask].mean() if ask.size else 0.0
        plain[ask] -= level
        by_action[ask] -= np.float32(level)

    folds.do(fit, n_folds)
    return _calibrated(plain, by_action, target, action)


def _calibrated(
    plain: Floats, by_action: NDArray[np.float32], target: Floats, action: Ints
) -> Expected:
    """Shrunk towards the mean as far as the target asks for: a fit of noise says nothing."""
    own = by_action[np.arange(target.size), action]
    mean, common = target.mean(), plain - plain.mean()
    special = own - plain
    special -= special.mean()
    first, second = _slopes(common, special, target - mean)
    kept = mean + first * common
    by_action = (kept[:, None] + second * (by_action - plain[:, None])).astype(np.float32)
    return Expected(kept, by_action)


def _slopes(first: Floats, second: Floats, target: Floats) -> tuple[float, float]:
    """Least-squares slopes of two centred columns, each kept within 0 and 1."""
    alone = _slope(first, target), _slope(second, target)
    table = np.stack([first, second], axis=1)
    square = table.T @ table
    if min(alone) == 0 or np.linalg.cond(square) > 1e8:
        return alone[0], alone[1] if alone[0] == 0 else _slope(second, target - alone[0] * first)
    both = np.clip(np.linalg.solve(square, table.T @ target), 0.0, 1.0)
    return float(both[0]), float(both[1])


def _slope(column: Floats, target: Floats) -> float:
    spread = float(column @ column)
    return min(max(float(column @ target) / spread, 0.0), 1.0) if spread > 0 else 0.0


@dataclass(frozen=True)
class _Scale:
    """Features as multiples of their standard deviation, gaps and constants at 0, and products."""

    units: Units
    pairs: Ints  # (2, m)
    products: Products

    @classmethod
    def of(cls, rows: Rows, target: Floats) -> "_Scale":
        units, some = Units.of(rows), some_rows(np.arange(target.size), MOST_SCREENED)
        scaled = units.standardised(rows[some], REACH)
        base, slope = _ridge(scaled, target[some])
        rest = target[some] - base - scaled @ slope
        return cls(units, _telling_pairs(scaled, rest), find_products(scaled, rest))

    def __call__(self, rows: Rows) -> Floats:
        """The whole table, shape (n, columns)."""
        table = np.empty((len(rows), self.width))
        step = rows_at_once(self.width)
        for start in range(0, len(rows), step):
            self.write(rows[start : start + step], table[start : start + step])
        return table

    @property
    def width(self) -> int:
        """Columns of the table."""
        return self.units.centre.size + len(self.pairs.T) + self.products.count

    def write(self, rows: Rows, table: Floats) -> None:
        """Fill a table, shape (n, columns), of a few rows."""
        width, (first, second) = rows.shape[1], self.pairs
        n_pairs = first.size
        scaled = self.units.standardised(rows, REACH, out=table[:, :width])
        np.multiply(scaled[:, first], scaled[:, second], out=table[:, width : width + n_pairs])
        table[:, width + n_pairs :] = self.products.of(scaled)


@dataclass(frozen=True)
class Prognosis:
    """A fitted model: linear on features and products, trees on the rest, linear by action."""

    scale: _Scale
    base: float
    slope: Floats  # (columns,)
    bins: Bins
    trees: Trees
    offset: Floats  # (n_actions,)
    tilt: Floats  # (columns, n_actions)

    @classmethod
    def fit(
        cls, rows: Rows, target: Floats, action: Ints, n_actions: int, bins: Bins | None = None
    ) -> "Prognosis":
        """Learn from all rows; `bins` are cut from some of them if left out."""
        bins = bins or Bins.of(rows[some_rows(np.arange(target.size), MOST_SCREENED)])
        scale = _Scale.of(rows, target)
        table = scale(rows)
        base, slope = _ridge(table, target)
        codes = bins.code(rows)
        rest = target - base - table @ slope
        trees = fit_trees(codes, rest, seed=0)
        # Not on what the trees leave: they have followed noise, and with it what an action does.
        offset, tilt = np.zeros(n_actions), np.zeros((table.shape[1], n_actions))
        for number in range(n_actions):
            own = action == number
            if own.sum() >= LEAST_ROWS:
                offset[number], tilt[:, number] = _ridge(table[own], rest[own])
        return cls(scale, base, slope, bins, trees, offset, tilt)

    def predict(self, rows: Rows) -> tuple[Floats, Floats]:
        """Expected target whatever is done, shape (n,), and by action, shape (n, n_actions)."""
        plain, tilt = np.empty(len(rows)), np.empty((len(rows), self.offset.size))
        step = rows_at_once(self.scale.width)
        table = np.empty((min(step, len(rows)), self.scale.width))
        for start in range(0, len(rows), step):
            some = slice(start, start + step)
            part = table[: len(rows[some])]
            self.scale.write(rows[some], part)
            plain[some], tilt[some] = part @ self.slope, part @ self.tilt
        plain = self.base + plain + self.trees.predict_rows(rows, self.bins)
        return plain, plain[:, None] + self.offset + tilt


def _telling_pairs(scaled: Floats, rest: Floats) -> Ints:
    """The products of two features, squares too, that go with the rest most, shape (2, m).

    One matrix product gives the covariance of all of them with what a straight line leaves.
    """
    columns = np.flatnonzero(scaled.std(axis=0) > 0)[:WIDEST_SEARCH]
    part = scaled[:, columns]
    mean = part.T @ part / rest.size
    square = part**2
    spread = np.sqrt(np.maximum(square.T @ square / rest.size - mean**2, 0.0))
    signal = np.abs((part * rest[:, None]).T @ part / rest.size)
    score = np.triu(np.where(spread > 1e-3, divide(signal, spread), 0.0)).ravel()
    best = np.argsort(-score, kind="stable")[:N_PRODUCTS]
    first, second = np.divmod(best[score[best] > 0], max(columns.size, 1))
    return np.stack([columns[first], columns[second]])


def _ridge(table: Floats, target: Floats) -> tuple[float, Floats]:
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
    rest = target[asked] - target[~asked].mean()
    share = _slope(other - one, rest - one)
    (base, slope), (base_all, slope_all) = (_fit_columns(table, target, m) for m in (few, width))
    return (1 - share) * base + share * base_all, (1 - share) * slope + share * slope_all


def _fit_columns(table: Floats, target: Floats, most: int) -> tuple[float, Floats]:
    """A ridge regression on at most so many columns, those that go with the target most."""
    middle, mean = table.mean(axis=0), float(target.mean())
    slope = np.zeros(table.shape[1])
    keep = np.arange(table.shape[1])
    if most < keep.size:
        spread = table.std(axis=0)
        signal = np.abs((target - mean) @ (table - middle)) / np.where(spread > 0, spread, np.inf)
        keep = np.sort(np.argsort(-signal, kind="stable")[:most])
    centred = by_column(table, keep)
    centred -= middle[keep, None]
    slope[keep] = _least_gcv(centred.T, target - mean)
    return mean - float(middle @ slope), slope


def _least_gcv(centred: Floats, rest: Floats) -> Floats:
    """Slopes whose penalty has the least generalised cross-validation error; none at all may."""
    n = rest.size
    values, vectors = np.linalg.eigh(centred.T @ centred / n)
    values = np.maximum(values, 0.0)
    signal = vectors.T @ (centred.T @ rest / n)
    total = float(rest @ rest) / n
    slope, least = np.zeros(centred.shape[1]), total / (1 - 1 / max(n, 2)) ** 2
    for penalty in PENALTIES:
        shrunk = signal / (values + penalty)
        error = total - 2 * float(signal @ shrunk) + float(values @ shrunk**2)
        freedom = float((values / (values + penalty)).sum()) + 1
        score = error / (1 - freedom / n) ** 2 if freedom < n else np.inf
        if score < least:
            slope, least = vectors @ shrunk, score
    return slope
