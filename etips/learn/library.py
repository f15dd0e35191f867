"""Models of one row a decision: what a stack of learners is made of beside networks.

Each recipe fits the propensities, or the loss of every action, from the logged decisions or from
their doubly robust scores. Linear models are ours, since their folds share one Gram matrix; trees
are scikit-learn's.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Lock
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from sklearn import config_context
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor
from threadpoolctl import threadpool_limits

from etips.data.coded import Floats32
from etips.data.decisions import Bools, Floats, Ints
from etips.data.history_rows import has_past
from etips.data.trajectories import Trajectories
from etips.learn.learners.lasso import fit_lasso, fit_lasso_scores
from etips.learn.softmax_regression import fit_softmax
from etips.models.row_model import Reads, RowModel, rows_of, spread_of, standardise
from etips.models.stack import Link, Part
from etips.models.tree_ensemble import TreeEnsemble

Target = Literal["action", "loss", "scores"]
"""What a recipe predicts: which action was taken, the loss of every action from the logged one, or
from doubly robust scores of all actions."""

N_TREES = 50
"""Trees of a forest. 100 gained no more in six curved worlds (one log each, 1,500 stays)."""

SHARE, TREE_ROWS = 0.5, 5_000
"""Of the rows that one tree is grown on, drawn without replacement (as grf does), and their number
at most, which bounds the cost of a forest."""

LOOK_AT = 20
"""Beyond the root of the number of columns so many are looked at for a split, as grf does: all of a
narrow table."""

LEAF = 5
"""Rows in a leaf at least, of trees that follow fine detail: the number of grf."""

SMOOTH_LEAF = 0.05
"""The same of the smooth forest on scores, as a share of a tree's rows: scores are noisy. Where
regions are large (Zhou, Athey and Wager, n = 1,500) leaves of 5, 40 and 80 rows gained 0.55, 0.72
and 0.76 of 0.83; where the best action follows a ring, leaves of 15 are better."""

BOOSTING = {"max_iter": 60, "learning_rate": 0.1, "max_leaf_nodes": 8, "early_stopping": False}
"""Small and early, since what boosting adds is small beside a forest and a regression."""

FEWEST_ROWS = 10
"""An action that was taken less often in the rows to learn from has their mean loss."""

LEAST = 1e-4
"""Least propensity that a model may state of an action."""


class Size(NamedTuple):
    """How large a table is: decisions, columns, actions."""

    n: int
    d: int
    k: int


@dataclass(frozen=True, eq=False)
class Table:
    """Decisions as rows for models without memory.

    Args:
        reads: What rows are made of: the last step where no decision sees an earlier one.
        columns: Places of those that vary and do not repeat another.
        width: Of the whole rows.
        values: The columns, NaN where missing, shape (n, d).
        mean: Of each column of the whole rows, shape (width,).
        scale: What these are divided by.
    """

    reads: Reads
    columns: Ints
    width: int
    values: Floats32
    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, data: Trajectories) -> Self:
        """The rows of some stays."""
        reads: Reads = "history" if has_past(data) else "last"
        rows = rows_of(data, reads)
        mean, scale = spread_of(rows)
        first: dict[bytes, int] = {}
        for place in range(rows.shape[1]):
            column = np.ascontiguousarray(rows[:, place])
            known = column[~np.isnan(column)]
            if known.size and known.min() < known.max():
                first.setdefault(column.tobytes(), place)
        columns = np.array(sorted(first.values()), np.int64)
        return cls(reads, columns, rows.shape[1], rows[:, columns], mean, scale)

    @cached_property
    def standard(self) -> Floats:
        """The columns in standard deviations, 0 where missing, shape (n, d)."""
        kept = self.columns
        return standardise(self.values, self.mean[kept], self.scale[kept])

    @cached_property
    def products(self) -> Floats:
        """The same, and their squares and products by two about their means, shape (n, w)."""
        rows, (first, second) = self.standard, np.triu_indices(len(self.columns))
        each = rows[:, first] * rows[:, second]
        return np.concatenate([rows, each - each.mean(axis=0)], axis=1)

    def quadratic(self, coefficients: Floats) -> RowModel:
        """A model of `products` as one of whole rows.

        Sums of squares are all that is kept: 2 xy = (x + y)^2 - x^2 - y^2, and 2 x = (x + 1)^2 -
        x^2 - 1.

        Args:
            coefficients: Base first, then one a product, shape (n_actions, 1 + w).
        """
        d, (first, second) = len(self.columns), np.triu_indices(len(self.columns))
        linear, product = coefficients[:, 1 : 1 + d].T, coefficients[:, 1 + d :].T
        means = (self.standard[:, first] * self.standard[:, second]).mean(axis=0)
        unit = np.eye(d)
        pair = first != second
        square = product[~pair] - linear / 2
        np.subtract.at(square, first[pair], product[pair] / 2)
        np.subtract.at(square, second[pair], product[pair] / 2)
        directions = np.concatenate([unit, unit, unit[first[pair]] + unit[second[pair]]])
        weight = np.concatenate([square, linear / 2, product[pair] / 2])
        phase = np.concatenate([np.zeros(d), np.ones(d), np.zeros(int(pair.sum()))])
        kept = (weight != 0).any(axis=1)
        basis = np.zeros((int(kept.sum()), self.width))
        basis[:, self.columns] = directions[kept]
        base = coefficients[:, 0] - means @ product - linear.sum(axis=0) / 2
        return RowModel(
            self.reads,
            "squares",
            self.mean,
            self.scale,
            basis,
            phase[kept],
            weight[None, kept],
            base[None],
        )

    def linear(self, coefficients: Floats) -> RowModel:
        """A model of the whole rows.

        Args:
            coefficients: Base first, then one a column, shape (n_actions, 1 + d).
        """
        weight = np.zeros((1, self.width, len(coefficients)))
        weight[0, self.columns] = coefficients[:, 1:].T
        nothing = np.zeros((0, self.width))
        base = coefficients[None, :, 0]
        return RowModel(
            self.reads, "linear", self.mean, self.scale, nothing, np.zeros(0), weight, base
        )


class Fitted(NamedTuple):
    """A fitted model of rows.

    Args:
        predict: Propensities, or losses, of rows of the table by their numbers, shape (n, K).
        member: The same as part of a policy; made when it is kept.
    """

    predict: Callable[[Ints], Floats]
    member: Callable[[], RowModel | TreeEnsemble]


class Task(NamedTuple):
    """What a model is fitted to.

    Args:
        table: The rows.
        action: That was taken at each, shape (n,).
        target: Losses (n,) or scores (n, K), about 0 with deviation 1; what propensities ignore.
        fold: Of each decision, so that a recipe can choose a penalty by patient, shape (n,).
        n_actions: K.
        seed: Of trees.
    """

    table: Table
    action: Ints
    target: Floats
    fold: Ints
    n_actions: int
    seed: int


@dataclass(frozen=True)
class Recipe:
    """A way to fit a model of rows.

    Args:
        name: What it is called wherever a stack is shown.
        target: What it predicts.
        fit: Fits it to some rows of a task.
        seconds: About how long one fit takes on one core.
        link: How outputs of its member become what is stacked.
    """

    name: str
    target: Target
    fit: Callable[[Task, Ints], Fitted]
    seconds: Callable[[Size], float]
    link: Link = "amount"

    @property
    def label(self) -> str:
        """Its name where those of propensities and of losses stand side by side."""
        return f"propensities, {self.name}" if self.target == "action" else self.name


def _linear_propensity(task: Task, rows: Ints, *, quadratic: bool = False) -> Fitted:
    table = task.table
    values = table.products if quadratic else table.standard
    found = fit_softmax(values[rows], task.action[rows], task.n_actions)

    def predict(asked: Ints) -> Floats:
        logits = found[0] + values[asked] @ found[1:]
        return _shares(np.exp(logits - logits.max(axis=1, keepdims=True)))

    return Fitted(predict, partial(table.quadratic if quadratic else table.linear, found.T))


def _forest_propensity(task: Task, rows: Ints) -> Fitted:
    taken = np.eye(task.n_actions)[task.action[rows]]  # squared error of shares is Gini's index
    grown = Forest.grow(task.table.values[rows], taken, LEAF, task.seed)

    def predict(asked: Ints) -> Floats:
        return _shares(grown.predict(task.table.values[asked]))

    return Fitted(predict, partial(_plant_forests, [grown], task))


def _boosted_propensity(task: Task, rows: Ints) -> Fitted:
    if len(np.unique(task.action[rows])) < 2:
        return _linear_propensity(task, rows)
    model = HistGradientBoostingClassifier(**BOOSTING, random_state=task.seed)
    with _BOOSTING_TURN:
        model.fit(_without_unknown(task.table.values[rows]), task.action[rows])

    def predict(asked: Ints) -> Floats:
        found = np.zeros((len(asked), task.n_actions))
        found[:, model.classes_] = model.predict_proba(task.table.values[asked])
        return _shares(found)

    return Fitted(predict, partial(_plant_boosting, [model], task))


def _shares(values: Floats) -> Floats:
    """Rows that sum to one, none of them below `LEAST` but for rounding."""
    shares = np.maximum(values / values.sum(axis=1, keepdims=True), LEAST)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _regression(task: Task, rows: Ints, *, quadratic: bool = False) -> Fitted:
    fold = np.unique(task.fold[rows], return_inverse=True)[1]
    table, target = task.table, task.target[rows]
    values = table.products if quadratic else table.standard
    if target.ndim == 1:
        found = fit_lasso(values[rows], task.action[rows], target, fold, task.n_actions)
    else:
        found = fit_lasso_scores(values[rows], target, fold)

    def predict(asked: Ints) -> Floats:
        return np.asarray(found[:, 0] + values[asked] @ found[:, 1:].T)

    return Fitted(predict, partial(table.quadratic if quadratic else table.linear, found))


def _forest(task: Task, rows: Ints, *, smooth: bool = False) -> Fitted:
    def make(values: Floats32, target: Floats) -> Forest:
        leaf = int(SMOOTH_LEAF * _drawn(len(values))) if smooth else LEAF
        return Forest.grow(values, target, max(leaf, LEAF), task.seed)

    return _by_target(task, rows, make, _plant_forests)


def _boosting(task: Task, rows: Ints) -> Fitted:
    def make(values: Floats32, target: Floats) -> HistGradientBoostingRegressor:
        model = HistGradientBoostingRegressor(**BOOSTING, random_state=task.seed)
        with _BOOSTING_TURN:
            return model.fit(_without_unknown(values), target)

    return _by_target(task, rows, make, _plant_boosting)


def _by_target(
    task: Task,
    rows: Ints,
    make: Callable[[Floats32, Floats], Any],
    plant: Callable[[Sequence[Any], Task], TreeEnsemble],
) -> Fitted:
    """Trees on the scores of all actions at once, or a model an action on its losses.

    Losses are first predicted from all decisions, whatever was done, and models of an action
    learn what is left: a prognosis that a third of the decisions teach badly they teach well
    together, and what is missed of it looks like an effect.
    """
    values, target, action = task.table.values[rows], task.target[rows], task.action[rows]
    models: list[Any] = []
    common = None
    if target.ndim == 2:
        models.append(make(values, target))
    else:
        common = make(values, target)
        left = target - (common.held_out if isinstance(common, Forest) else common.predict(values))
        for number in range(task.n_actions):
            taken = np.flatnonzero(action == number)
            if len(taken) >= FEWEST_ROWS:
                models.append(make(values[taken], left[taken]))
            else:  # too few: as all
                models.append(make(values[:1].repeat(FEWEST_ROWS, 0), np.zeros(FEWEST_ROWS)))

    def predict(asked: Ints) -> Floats:
        each = [model.predict(task.table.values[asked]) for model in models]
        if common is None:
            return np.asarray(each[0], np.float64)
        prognosis = common.predict(task.table.values[asked])
        return np.asarray(np.stack(each, axis=1) + prognosis[:, None])

    return Fitted(predict, partial(plant, models, task))


class Forest(NamedTuple):
    """Trees of scikit-learn, each grown on its own draw of the rows.

    scikit-learn's forests change the warning filters of the process for every tree, which two
    threads must not do at the same time.

    Args:
        estimators_: The trees.
        held_out: Mean of the trees that had not seen a row, shape (n,) or (n, K).
    """

    estimators_: list[Any]
    held_out: Floats

    @classmethod
    def grow(cls, values: Floats32, target: Floats, leaf: int, seed: int) -> Self:
        """`N_TREES` trees with leaves of `leaf` rows or more."""
        draw, n = np.random.default_rng(seed), len(values)
        targets = np.ascontiguousarray(target.reshape(n, -1))
        total, count = np.zeros(targets.shape), np.zeros((n, 1))
        look_at, gaps = _looked_at(values.shape[1]), bool(np.isnan(values).any())
        trees = []
        with config_context(skip_parameter_validation=True):  # a third of a small tree's time
            for number in range(N_TREES):
                order = draw.permutation(n)
                drawn, others = order[: _drawn(n)], order[_drawn(n) :]
                tree = DecisionTreeRegressor(
                    min_samples_leaf=leaf, max_features=look_at, random_state=seed + number
                )
                trees.append(tree.fit(values[drawn], targets[drawn], check_input=gaps))
                total[others] += tree.tree_.predict(values[others]).reshape(len(others), -1)
                count[others] += 1
        held_out = total / np.maximum(count, 1)
        return cls(trees, held_out[:, 0] if target.ndim == 1 else held_out)

    def predict(self, values: Floats32) -> Floats:
        """Mean over the trees, shape (n,) or (n, K)."""
        total = sum(tree.tree_.predict(values) for tree in self.estimators_)
        mean = np.asarray(total / len(self.estimators_)).reshape(len(values), -1)
        return mean[:, 0] if mean.shape[1] == 1 else mean


def _plant_forests(forests: Sequence[Forest], task: Task) -> TreeEnsemble:
    table = task.table
    return TreeEnsemble.of_forests(
        forests, reads=table.reads, columns=table.columns, n_outputs=task.n_actions
    )


def _plant_boosting(models: Sequence[Any], task: Task) -> TreeEnsemble:
    table = task.table
    return TreeEnsemble.of_boosting(
        models, reads=table.reads, columns=table.columns, n_outputs=task.n_actions
    )


def _without_unknown(values: Floats32) -> Floats32:
    """Rows in which columns that none of them knows are constant: boosting cannot bin these."""
    unknown = np.isnan(values).all(axis=0)
    return np.where(unknown, np.float32(0), values) if unknown.any() else values


_BOOSTING_TURN = Lock()
"""For the same reason boosted trees are grown one at a time."""


def _drawn(n: int) -> int:
    """Rows that a tree is grown on."""
    return min(max(int(SHARE * n), 1), TREE_ROWS)


def _looked_at(width: int) -> int:
    """Columns that are looked at for a split."""
    return min(width, math.ceil(math.sqrt(width)) + LOOK_AT)


def _tree_seconds(size: Size, *, outputs: int = 1) -> float:
    """Of one forest: `N_TREES` trees, by rows, columns and depth."""
    n = _drawn(size.n)
    each = 4e-4 + 3e-8 * n * _looked_at(size.d) * math.log2(n + 2) * (1 + outputs / 10)
    return N_TREES * each


def _by_action(size: Size) -> Size:
    return Size(size.n // size.k, size.d, size.k)


def _boosting_seconds(size: Size, models: int) -> float:
    return BOOSTING["max_iter"] * models * (8e-4 + 1e-5 * size.d + 3e-9 * size.n * size.d)


def _with_products(size: Size) -> Size:
    return Size(size.n, size.d * (size.d + 3) // 2, size.k)


def _softmax_seconds(size: Size) -> float:
    return 5e-8 * size.n * size.d * size.k + 0.02


def _lasso_seconds(size: Size) -> float:
    width = min(size.d, 200)
    return 2e-9 * size.n * width**2 + 1.2e-6 * size.k * width**2 + 0.02


PROPENSITIES: Sequence[Recipe] = (
    Recipe(
        "regression",
        "action",
        _linear_propensity,
        _softmax_seconds,
        "softmax",
    ),
    Recipe("forest", "action", _forest_propensity, lambda s: 1.3 * _tree_seconds(s)),
    Recipe(
        "boosting", "action", _boosted_propensity, lambda s: _boosting_seconds(s, s.k), "softmax"
    ),
    Recipe(
        "products",
        "action",
        partial(_linear_propensity, quadratic=True),
        lambda s: _softmax_seconds(_with_products(s)),
        "softmax",
    ),
)
"""What models who was given what."""

LOSSES: Sequence[Recipe] = (
    Recipe("regression", "loss", _regression, _lasso_seconds),
    Recipe("forest", "loss", _forest, lambda s: s.k * _tree_seconds(_by_action(s))),
    Recipe("boosting", "loss", _boosting, lambda s: _boosting_seconds(_by_action(s), s.k + 1)),
    Recipe(
        "products",
        "loss",
        partial(_regression, quadratic=True),
        lambda s: _lasso_seconds(_with_products(s)),
    ),
    Recipe("regression on scores", "scores", _regression, _lasso_seconds),
    Recipe(
        "products on scores",
        "scores",
        partial(_regression, quadratic=True),
        lambda s: _lasso_seconds(_with_products(s)),
    ),
    Recipe("forest on scores", "scores", _forest, lambda s: _tree_seconds(s, outputs=s.k)),
    Recipe(
        "smooth forest on scores",
        "scores",
        partial(_forest, smooth=True),
        lambda s: _tree_seconds(s, outputs=s.k) / 2,
    ),
)
"""What predicts the loss of every action."""


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """A recipe fitted in folds, and what it predicts for decisions that it did not learn from.

    Args:
        recipe: How.
        task: To what.
        predicted: Out of fold, shape (n, K).
        seconds: That the fits took, on one core.
    """

    recipe: Recipe
    task: Task
    predicted: Floats
    seconds: float

    def part(self, weight: float) -> Part:
        """The model fitted to all decisions, as a part of a stack."""
        everything = np.arange(len(self.task.action))
        member = self.recipe.fit(self.task, everything).member()
        return Part(member, weight, self.recipe.link)


class Workers:
    """Threads that fit models of rows; trees leave the interpreter free for one another.

    Args:
        count: How many.
    """

    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, initializer=_alone)

    def submit(self, work: Callable[[], Any]) -> "Future[Any]":
        """Begin a piece of work."""
        return self._pool.submit(work)

    def cross_fit(self, recipe: Recipe, task: Task) -> Callable[[], CrossFitted]:
        """Begin to fit a recipe in the folds of a task; call what is returned for the answer."""
        parts = []
        for number in np.unique(task.fold):
            asked: Bools = task.fold == number
            work = partial(_fit_fold, recipe, task, np.flatnonzero(~asked), np.flatnonzero(asked))
            parts.append((asked, self.submit(work)))

        def finish() -> CrossFitted:
            predicted, seconds = np.zeros((len(task.action), task.n_actions)), 0.0
            for asked, future in parts:
                predicted[asked], taken = future.result()
                seconds += taken
            return CrossFitted(recipe, task, predicted, seconds)

        return finish

    def close(self) -> None:
        """Let the threads go; what has not begun is not done any more."""
        self._pool.shutdown(cancel_futures=True)


def _alone() -> None:
    """In a thread of ours: OpenMP starts no threads of its own below it."""
    threadpool_limits(limits=1, user_api="openmp")


def _fit_fold(recipe: Recipe, task: Task, rows: Ints, asked: Ints) -> tuple[Floats, float]:
    started = time.thread_time()
    predicted = recipe.fit(task, rows if len(rows) else asked).predict(asked)
    return predicted, time.thread_time() - started


def affordable(
    recipes: Sequence[Recipe], size: Size, *, n_folds: int, seconds: float
) -> tuple[list[Recipe], Mapping[str, float], float]:
    """The cheapest recipes that together take at most so long; what others would, and what all.

    Args:
        recipes: That could be fitted.
        size: Of the table.
        n_folds: In which they are fitted.
        seconds: That all of them together may take on one core.
    """
    kept, dear, total = [], {}, 0.0
    costs = [n_folds * recipe.seconds(size) for recipe in recipes]
    for place in np.argsort(costs, kind="stable"):
        total += costs[place]
        if total <= seconds:
            kept.append(recipes[place])
        else:
            dear[recipes[place].label] = costs[place]
    return kept, dear, sum(costs)
