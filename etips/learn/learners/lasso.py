"""l1-penalised least squares with one set of coefficients an action beside a common one.

The loss of an action is `base + z'common + effect_a + z'own_a`. Rows of different actions never
meet in a product, so that all of the Gram matrix is a block an action, and folds are differences of
blocks: nothing of the size of rows times columns times actions is ever made.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from etips.data.decisions import Bools, Floats, Ints
from etips.data.trajectories import Trajectories
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.learner import Fit
from etips.learn.learners.row_learner import RowLearner

PENALTIES = 20
"""Penalties that are tried, from the least that leaves nothing down to `LEAST` of it."""

MOST_COLUMNS = 200
"""Of wider rows (images, say) so many columns take part: those that go most with the loss, over
all decisions or those of one action (sure independence screening, Fan and Lv 2008)."""

LEAST = 1e-3
PASSES = 200
_SETTLED = 1e-5  # relative change at which a penalty is done


@dataclass(frozen=True, eq=False)
class Products:
    """Sums over decisions of each action, with a column of ones before the rows.

    Args:
        gram: Shape (K, 1 + d, 1 + d).
        cross: Products with the loss, shape (K, 1 + d).
        square: Sum of squared losses.
    """

    gram: Floats
    cross: Floats
    square: float

    @classmethod
    def of(cls, rows: Floats, action: Ints, loss: Floats, n_actions: int) -> "Products":
        """Sums over all decisions given."""
        width = rows.shape[1] + 1
        gram, cross = np.zeros((n_actions, width, width)), np.zeros((n_actions, width))
        for number in range(n_actions):
            own = np.insert(rows[action == number], 0, 1.0, axis=1)
            gram[number] = own.T @ own
            cross[number] = own.T @ loss[action == number]
        return cls(gram, cross, float(loss @ loss))

    @classmethod
    def of_scores(cls, rows: Floats, scores: Floats) -> "Products":
        """Sums where every decision counts for every action."""
        own = np.insert(rows, 0, 1.0, axis=1)
        gram = own.T @ own
        shared = np.broadcast_to(gram, (scores.shape[1], *gram.shape))
        return cls(shared, scores.T @ own, float((scores**2).sum()))

    def less(self, other: "Products") -> "Products":
        """Sums over what is left when others are taken away."""
        return Products(
            self.gram - other.gram, self.cross - other.cross, self.square - other.square
        )

    @property
    def size(self) -> float:
        """How many decisions there are."""
        return float(self.gram[:, 0, 0].sum())

    def squared_error(self, coefficients: Floats) -> float:
        """Sum of squared errors of coefficients (K, 1 + d), without a common part."""
        fit = np.einsum("ki,kij,kj->", coefficients, self.gram, coefficients)
        return float(self.square - 2 * (coefficients * self.cross).sum() + fit)


def fit_lasso(rows: Floats, action: Ints, loss: Floats, fold: Ints, n_actions: int) -> Floats:
    """Coefficients of the predicted loss of every action, shape (n_actions, 1 + d).

    The penalty is the one of least squared error in cross-validation. Columns are scaled, so that
    a rare action's are not penalised more than others; its own mean is penalised too, the common
    one is not. The loss is taken in standard deviations while it is fitted.

    Args:
        rows: Standardised, shape (n, d).
        action: Shape (n,).
        loss: Shape (n,).
        fold: Of each decision, so that patients stay together, shape (n,).
        n_actions: How many there are.
    """
    each = [fold == k for k in np.unique(fold)]
    if rows.shape[1] > MOST_COLUMNS:
        kept = _screen(rows, action, loss, n_actions)
        return _spread(fit_lasso(rows[:, kept], action, loss, fold, n_actions), kept, rows.shape[1])
    centre, unit = _spread_of(loss)
    scaled = (loss - centre) / unit
    whole = Products.of(rows, action, scaled, n_actions)
    parts = [Products.of(rows[own], action[own], scaled[own], n_actions) for own in each]
    return _choose(whole, parts, centre, unit)


def _choose(whole: Products, parts: Sequence[Products], centre: float, unit: float) -> Floats:
    """Coefficients at the penalty of least squared error in cross-validation."""
    penalties = _most(whole) * np.geomspace(1, LEAST, PENALTIES)
    errors = np.zeros(PENALTIES)
    for part in parts if len(parts) > 1 else ():
        path = _path(whole.less(part), penalties)
        errors += [part.squared_error(own) for own in path]
    best = int(errors.argmin()) if len(parts) > 1 else PENALTIES // 2
    return _in_units(_path(whole, penalties[: best + 1])[-1], centre, unit)


def fit_lasso_scores(rows: Floats, scores: Floats, fold: Ints) -> Floats:
    """The same where every decision has a value of every action, such as doubly robust scores.

    Args:
        rows: Standardised, shape (n, d).
        scores: Shape (n, n_actions).
        fold: Of each decision, shape (n,).
    """
    n_actions = scores.shape[1]
    if rows.shape[1] > MOST_COLUMNS:
        size = np.abs(rows.T @ scores).max(axis=1)
        kept = np.sort(np.argsort(-size, kind="stable")[:MOST_COLUMNS])
        return _spread(fit_lasso_scores(rows[:, kept], scores, fold), kept, rows.shape[1])
    centre, unit = _spread_of(scores)
    scaled = (scores - centre) / unit
    parts = [Products.of_scores(rows[fold == k], scaled[fold == k]) for k in np.unique(fold)]
    gram = np.sum([own.gram[0] for own in parts], axis=0)
    cross = np.sum([own.cross for own in parts], axis=0)
    shared = np.broadcast_to(gram, (n_actions, *gram.shape))
    whole = Products(shared, cross, sum(own.square for own in parts))
    return _choose(whole, parts, centre, unit)


def _spread_of(loss: Floats) -> tuple[float, float]:
    """Mean and standard deviation of losses; 1 where they do not vary."""
    return float(loss.mean()), float(loss.std()) or 1.0


def _in_units(coefficients: Floats, centre: float, unit: float) -> Floats:
    """Coefficients of losses in standard deviations as those of the losses themselves."""
    found = coefficients * unit
    found[:, 0] += centre
    return found


def _spread(coefficients: Floats, kept: Ints, width: int) -> Floats:
    """Coefficients of some columns as those of all of them."""
    found = np.zeros((len(coefficients), 1 + width))
    found[:, 0], found[:, 1 + kept] = coefficients[:, 0], coefficients[:, 1:]
    return found


def _screen(rows: Floats, action: Ints, loss: Floats, n_actions: int) -> Ints:
    """The columns that go most with the loss, in their order."""
    score = np.abs(rows.T @ loss) / np.sqrt(len(loss))
    for number in range(n_actions):
        own = action == number
        if own.any():
            score = np.maximum(score, np.abs(rows[own].T @ loss[own]) / np.sqrt(own.sum()))
    return np.sort(np.argsort(-score, kind="stable")[:MOST_COLUMNS])


@dataclass(frozen=True, eq=False)
class _Problem:
    """Scaled products: every column that varies has variance about one.

    Coefficients have shape (1 + K, 1 + d): the common ones, then those of each action.

    Args:
        gram: Per decision, shape (K, 1 + d, 1 + d).
        cross: Shape (K, 1 + d).
        scale: What coefficients are divided by, shape (1 + K, 1 + d).
    """

    gram: Floats
    cross: Floats
    scale: Floats

    @classmethod
    def of(cls, products: Products) -> "_Problem":
        size = max(products.size, 1.0)
        gram, cross = products.gram / size, products.cross / size
        spread = np.sqrt(np.maximum(np.einsum("kii->ki", gram), 0.0))
        total = np.sqrt((spread**2).sum(axis=0))
        return cls(gram, cross, _inverse(np.concatenate([total[None], spread])))

    def slope(self, at: Floats) -> Floats:
        """Gradient of half the mean squared error."""
        slope = np.empty_like(at)
        np.matmul(self.gram, self.coefficients(at)[:, :, None], out=slope[1:, :, None])
        slope[1:] -= self.cross
        slope[1:].sum(axis=0, out=slope[0])
        slope *= self.scale
        return slope

    def coefficients(self, at: Floats) -> Floats:
        """Of every action, with the common part in them, shape (K, 1 + d)."""
        scaled = self.scale * at
        joined: Floats = scaled[1:]
        joined += scaled[0]
        return joined


def _inverse(spread: Floats) -> Floats:
    """One over it, 0 for a column that is zero throughout."""
    there: Bools = spread > 1e-9
    return np.where(there, 1 / np.where(there, spread, 1.0), 0.0)


def _most(products: Products) -> float:
    """The least penalty that leaves nothing but the common mean."""
    problem = _Problem.of(products)
    size = np.abs(problem.slope(np.zeros_like(problem.scale)))
    size[0, 0] = 0.0  # the common mean is free
    return max(float(size.max()), 1e-9)


def _path(products: Products, penalties: Floats) -> list[Floats]:
    """Coefficients at falling penalties, each begun where the one before ended."""
    problem = _Problem.of(products)
    step = 1 / _steepest(problem)
    found, at = [], np.zeros_like(problem.scale)
    for penalty in penalties:
        at = _proximal(problem, at, float(penalty), step)
        found.append(problem.coefficients(at))
    return found


def _steepest(problem: _Problem) -> float:
    """Largest curvature, by power iteration from a fixed start."""
    at = np.random.default_rng(0).normal(size=problem.scale.shape)
    plain = _Problem(problem.gram, np.zeros_like(problem.cross), problem.scale)
    size = 1.0
    for _ in range(30):
        at = plain.slope(at)
        size = float(np.sqrt((at**2).sum())) or 1.0
        at /= size
    return 1.05 * size


def _proximal(problem: _Problem, start: Floats, penalty: float, step: float) -> Floats:
    """Accelerated proximal gradient (Beck and Teboulle 2009), begun anew where it turns uphill."""
    last, at, pace = start, start, 1.0
    for _ in range(PASSES):
        down = problem.slope(at)
        down *= -step
        down += at
        new = _shrink(down, step * penalty)
        new[0, 0] = down[0, 0]  # the mean is not penalised
        moved = new - last
        uphill = np.vdot(at - new, moved) > 0
        faster = 1.0 if uphill else (1 + math.sqrt(1 + 4 * pace**2)) / 2
        at = new + (0.0 if uphill else (pace - 1) / faster) * moved
        last, pace = new, faster
        change = np.abs(moved, out=moved)
        if change[0].max() + change[1:].max() < _SETTLED:
            break
    return last


def _shrink(values: Floats, by: float) -> Floats:
    """Each nearer to zero by so much, or zero."""
    return np.asarray(values - np.maximum(np.minimum(values, by), -by))


@dataclass(kw_only=True, eq=False)
class QLearning(RowLearner):
    """Penalised least squares with treatment interactions (Qian and Murphy 2011).

    The loss is regressed on the summary of the history, the action and their products with an l1
    penalty, chosen by cross-validation over patients; the recommended action has the least
    predicted loss. It is as good as that regression: where the loss does not follow a line in the
    summary, so is the rule.

    Args:
        propensities: Not looked at by the regression: support and `score` alone ask for them.
        support: As in `RowLearner`, like the rest.
        clip: Likewise.
        seed: Of the folds.
    """

    def _learn(self, stays: Trajectories, trainer: Trainer) -> Fit:  # noqa: ARG002
        log = self._read(stays)
        rows = log.rows.double().numpy()
        found = fit_lasso(rows, log.action, log.loss, log.fold(self.seed), stays.n_actions)
        return log.fit("least amount", log.model(found.T), support=self.support)
