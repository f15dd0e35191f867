"""Convex weights of models, by what they say of decisions that they did not learn from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from etips.data.decisions import Floats, Ints

ROUNDS = 200
"""Of expectation and maximisation; weights of four models settle to three digits in fifty."""

TEMPERATURES = np.geomspace(0.5, 2.0, 41)
"""That the mixed propensities may be raised to one over; 1 is the mixture as it is."""

LEAST_WEIGHT = 0.01
"""A model of less weight is left out: it would cost as much to keep and to ask as any."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Propensities of several models as one.

    Args:
        weights: Of the models, shape (m,).
        temperature: Of what they come to.
        table: The propensities, shape (n, K).
    """

    weights: Floats
    temperature: float
    table: Floats


def mix_propensities(tables: Sequence[Floats], action: Ints) -> Mixture:
    """The mixture of propensities that makes what was done likeliest, then one temperature.

    Args:
        tables: Of each model, out of fold, shape (n, K).
        action: That was taken, shape (n,).
    """
    rows = np.arange(len(action))
    logged = np.stack([table[rows, action] for table in tables], axis=1)
    weights = np.full(len(tables), 1 / len(tables))
    for _ in range(ROUNDS):
        share = weights * logged
        weights = (share / share.sum(axis=1, keepdims=True)).mean(axis=0)
    weights = _without_small(weights)
    log = np.log(sum(weight * table for weight, table in zip(weights, tables, strict=True)))
    losses = [-_powered(log, t)[rows, action].mean() for t in TEMPERATURES]
    best = float(TEMPERATURES[int(np.argmin(losses))])
    return Mixture(weights, best, np.exp(_powered(log, best)))


def _powered(log: Floats, temperature: float) -> Floats:
    logits = log / temperature
    logits -= logits.max(axis=1, keepdims=True)
    return np.asarray(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))


def _without_small(weights: Floats) -> Floats:
    """Weights that sum to one, none of them small."""
    kept = np.where(weights >= min(LEAST_WEIGHT, weights.max()), weights, 0.0)
    return np.asarray(kept / kept.sum())


class LeastSquares:
    """Convex weights of predictions that come nearest to a target, for any of the folds.

    Args:
        predicted: Of each model, shape (n,) or (n, K).
        target: Of the same shape.
        fold: Of each decision, shape (n,).
    """

    def __init__(self, predicted: Sequence[Floats], target: Floats, fold: Ints) -> None:
        self._gram, self._cross = {}, {}
        for number in np.unique(fold):
            inside = fold == number
            columns = np.stack([table[inside].ravel() for table in predicted], axis=1)
            self._gram[number] = columns.T @ columns
            self._cross[number] = columns.T @ target[inside].ravel()

    def weights(self, without: int | None = None) -> Floats:
        """Not negative, summing to one, shape (m,); as all folds have it, or all but one."""
        kept = [number for number in self._gram if number != without] or list(self._gram)
        gram = np.sum([self._gram[number] for number in kept], axis=0)
        cross = np.sum([self._cross[number] for number in kept], axis=0)
        size = np.trace(gram) / len(gram) or 1.0
        gram, cross = gram / size + SUMS_TO_ONE, cross / size + SUMS_TO_ONE
        upper = np.linalg.cholesky(gram + 1e-9 * np.eye(len(gram))).T
        found = nnls(upper, np.linalg.solve(upper.T, cross))[0]
        if found.sum() <= 0:
            return np.full(len(found), 1 / len(found))
        return _without_small(found / found.sum())


def weigh(weights: Floats, tables: Sequence[Floats]) -> Floats:
    """Tables added up by weight, shape (n, K)."""
    total = np.zeros_like(tables[0], dtype=np.float64)
    for weight, table in zip(weights, tables, strict=True):
        if weight:
            total += weight * table
    return total


SUMS_TO_ONE = 1e4
"""How dear it is, in mean squares of a prediction, that weights do not sum to one."""


def about_mean(table: Floats) -> Floats:
    """Values of every action less their mean over the actions, shape (n, K)."""
    return np.asarray(table - table.mean(axis=1, keepdims=True))
