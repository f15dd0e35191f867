"""How far the decisions of an action, weighted by one over its propensity, differ from all."""

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


def measure_imbalance(propensities: Floats, action: Ints, functions: Floats) -> Imbalance:
    """Weigh the decisions of each action by one over its propensity and compare with all.

    Args:
        propensities: Shape (n, n_actions).
        action: Taken, shape (n,).
        functions: Values, the prognosis first, shape (n, q); brought to unit variance here.
    """
    n, n_actions = propensities.shape
    values = functions - functions.mean(axis=0)
    spread = values.std(axis=0)
    values = values / np.where(spread > 1e-12, spread, 1.0)
    weight = 1 / np.maximum(propensities[np.arange(n), action], FLOOR)
    total = np.bincount(action, weight, minlength=n_actions)
    sums = np.stack([np.bincount(action, weight * v, minlength=n_actions) for v in values.T], 1)
    gap = sums / np.where(total > 0, total, 1.0)[:, None]
    share = np.bincount(action, minlength=n_actions) / n
    count = np.full(values.shape[1], (1 - HALF) / max(values.shape[1] - 1, 1))
    count[0] = HALF if values.shape[1] > 1 else 1.0
    pull = 2 * share[:, None] * count * gap  # derivative of the size by each gap
    own = weight / np.where(total > 0, total, 1.0)[action]
    influence = own * ((values - gap[action]) * pull[action]).sum(axis=1) - values @ pull.sum(0) / n
    return Imbalance(gap, share, float((share[:, None] * count * gap**2).sum()), influence)


def less_by(before: Imbalance, after: Imbalance, clusters: Clusters) -> float:
    """By how many standard errors, of clusters, the imbalance is smaller after than before."""
    change = clusters.sums(before.influence - after.influence)
    error = np.sqrt(change.size / (change.size - 1) * ((change - change.mean()) ** 2).sum())
    return (before.size - after.size) / error if error > 0 else 0.0
