"""What the weights of a policy must look like if the propensities of all actions are right.

A sample shows only the weights that occurred: a policy can look well supported because its
unsupported choices never did. With the propensities of every action the moments and the tail of the
weights are computed, not sampled.
"""

from dataclasses import dataclass

import numpy as np

from etips.evaluation.inference.checks import Bools, Clusters, Floats
from etips.evaluation.inference.evidence import divide

N_HEAVY = 5
"""Decisions to be expected in the tail: fewer may well be missing from a log."""

_STEPS = 50  # of the logarithm of a weight, for each unit of it


@dataclass(frozen=True)
class ExpectedWeights:
    """Moments of the weights under the stated propensities.

    Args:
        mean: Of the weights: 1, less what is never done or was raised to the floor.
        std_error: Of the mean weight.
        clusters: Effective number of clusters; 0 if a weight may be infinite.
        share: Effective share of the decisions: one over the mean squared weight.
        tail: Share of the policy's choices in its heaviest weights, down to where five decisions
            are to be expected.
    """

    mean: float
    std_error: float
    clusters: float
    share: float
    tail: float


def expect_weights(
    probabilities: Floats,
    propensities: Floats,
    clusters: Clusters,
    *,
    floor: float = 0.0,
    abstains: Bools | None = None,
) -> ExpectedWeights:
    """Moments and tail of the weights that the propensities of all actions lead to expect.

    Args:
        probabilities: The policy's distribution at each decision, shape (n, n_actions).
        propensities: Of every action, shape (n, n_actions).
        clusters: The cluster of each decision.
        floor: Smaller propensities were raised to it.
        abstains: Where the weight is 1 whatever is done, shape (n,).
    """
    n = len(probabilities)
    used = np.maximum(propensities, floor)
    weight = np.where(probabilities > 0, divide(probabilities, used), 0.0)
    never = np.isnan(weight)  # the policy's choice, and never the clinicians'
    weight = np.where(never, 0.0, weight)
    square = (propensities * weight**2).sum(axis=1)
    square[never.any(axis=1)] = np.inf
    mean = (propensities * weight).sum(axis=1)
    if abstains is not None:
        square, mean = np.where(abstains, 1.0, square), np.where(abstains, 1.0, mean)
    noise = square - mean**2
    sizes = clusters.sums(np.ones(n))
    whole = float((sizes**2).sum() + noise.sum())
    return ExpectedWeights(
        mean=float(mean.mean()),
        std_error=float(np.sqrt(max(noise.sum(), 0.0)) / n),
        clusters=n**2 / whole,
        share=float(1 / square.mean()) if square.mean() > 0 else 0.0,
        tail=_tail(probabilities, propensities, weight, never, abstains),
    )


def _tail(
    probabilities: Floats,
    propensities: Floats,
    weight: Floats,
    never: Bools,
    abstains: Bools | None,
) -> float:
    """Share of the choices with the heaviest weights, until they expect `N_HEAVY` decisions."""
    speaks = probabilities > 0
    if abstains is not None:
        speaks = speaks & ~abstains[:, None]
    unseen = float(probabilities[speaks & never].sum())
    speaks &= ~never
    if not speaks.any():
        return unseen / len(probabilities)
    heavy = np.log(weight[speaks])
    place = np.floor((heavy.max() - heavy) * _STEPS).astype(np.int64)
    expected = np.bincount(place, propensities[speaks]).cumsum()
    chosen = np.bincount(place, probabilities[speaks]).cumsum()
    reached = float(np.interp(N_HEAVY, np.append(0, expected), np.append(0, chosen)))
    return (unseen + reached) / len(probabilities)
