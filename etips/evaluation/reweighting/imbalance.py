"""How far the decisions of an action, weighted by one over its propensity, differ from all."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from etips.evaluation.inference.checks import Clusters, Floats, Ints

FLOOR = 0.01  # propensities are raised to this before they weigh, as in the evaluation
HALF = 0.5  # the prognosis counts as much as all other functions together


@dataclass(frozen=True, eq=False)
class Imbalance:
    """Weighted minus plain means of functions, action by action.

    Args:
        gap: In standard deviations, shape (n_actions, q); the prognosis is the first function.
        share: How often each action was taken, shape (n_actions,).
        size: Mean square of the gaps: over actions by share, half of it the prognosis.
        influence: What each decision contributes to the error of `size`, shape (n,).
    """

    gap: Floats
    share: Floats
    size: float
    influence: Floats

    @property
    def prognosis(self) -> float:
        """Root mean square gap of the prognosis over actions, in its standard deviations."""
        return float(np.sqrt(self.share @ self.gap[:, 0] ** 2))


def measure_imbalance(tables: Sequence[Floats], action: Ints, functions: Floats) -> list[Imbalance]:
    """Weigh the decisions of each action by one over its propensity and compare with all.

    Args:
        tables: Propensities, shape (n, n_actions) each.
        action: Taken, shape (n,).
        functions: Values, the prognosis first, shape (n, q); brought to unit variance here.
    """
    order = np.argsort(action, kind="stable")  # decisions of an action lie together
    values = functions[order]
    values -= values.mean(axis=0)
    spread = np.sqrt(np.einsum("ij,ij->j", values, values) / len(values))
    values /= np.where(spread > 1e-12, spread, 1.0)
    return [_measure(table, action, values, order) for table in tables]


def _measure(table: Floats, action: Ints, values: Floats, order: Ints) -> Imbalance:
    """By values that are standardised and, unlike the table and the actions, in order of these."""
    n, n_actions = table.shape
    size = np.bincount(action, minlength=n_actions)
    weight = 1 / np.maximum(table[np.arange(n), action], FLOOR)[order]
    parts = [slice(end - own, end) for own, end in zip(size, np.cumsum(size), strict=True)]
    total = np.array([weight[own].sum() for own in parts])
    total[size == 0] = 1.0
    gap = np.stack([weight[own] @ values[own] for own in parts]) / total[:, None]
    share, count = size / n, np.full(values.shape[1], (1 - HALF) / max(values.shape[1] - 1, 1))
    count[0] = HALF if values.shape[1] > 1 else 1.0
    pull = 2 * share[:, None] * count * gap  # derivative of the size by each gap
    sorted_influence = -(values @ pull.sum(0)) / n
    for number, own in enumerate(parts):
        beyond = values[own] @ pull[number] - gap[number] @ pull[number]
        sorted_influence[own] += weight[own] / total[number] * beyond
    influence = np.empty(n)
    influence[order] = sorted_influence
    return Imbalance(gap, share, float((share[:, None] * count * gap**2).sum()), influence)


def less_by(before: Imbalance, after: Imbalance, clusters: Clusters) -> float:
    """By how many standard errors, of clusters, the imbalance is smaller after than before."""
    change = clusters.sums(before.influence - after.influence)
    error = np.sqrt(change.size / (change.size - 1) * ((change - change.mean()) ** 2).sum())
    return (before.size - after.size) / error if error > 0 else 0.0
