"""A limit on the gain that holds in every sample, however few the stays and heavy the weights.

For losses in 0..1, `Z = 1 + (weight - 1) (1 - loss)` is never negative, and its mean is one minus
the gain (the policy's risk minus the clinicians'), since weights have mean one. Somebody who thinks
that the mean is not above m can offer fair bets on it: a stake of `bet` times the capital returns
`bet * Z / m`. If the mean is at most m, the capital is not expected to grow, and reaches 20 with a
probability of at most 1/20 (Markov, Ville). So every m at which it does is excluded, at 95 %. The
capital is an average over bets that are fixed in advance, and a product over the stays, so that
their order is of no account. See Waudby-Smith and Ramdas (2024).

It asks for the right propensities, as every estimate does, and for nothing else: no normal
approximation, no standard error. It is wider than an interval in return.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from etips.evaluation.inference.checks import (
    ClusterLike,
    Floats,
    check_numbers,
    check_share,
    check_weights,
    code_clusters,
)

BETS = tuple(0.95 * 0.6**step for step in range(14))
"""Shares of the capital at stake, down to one in a thousand; each starts with an equal part."""

BLOCK = 8  # factors multiplied before a logarithm is taken: none leaves the range of a float


def guaranteed_gain(
    loss: ArrayLike, weight: ArrayLike, cluster: ClusterLike, *, level: float = 0.95
) -> float | None:
    """The greatest gain that is not excluded; below zero, the policy is better, guaranteed.

    None where a loss lies outside 0..1. One-sided: the chance that the policy's risk minus the
    clinicians' lies above it is at most `1 - level`. The sizes of the clusters are taken as given,
    and the stake is what the largest of them can bear.

    Args:
        weight: Policy probability over propensity of the logged action, shape (n,).
        cluster: Stay or patient of each decision, shape (n,).
        level: Probability with which it holds.
    """
    check_share("level", level)
    losses = check_numbers("loss", loss)
    weights = check_weights("weight", weight, n=losses.size)
    clusters = code_clusters(cluster, n=losses.size)
    if losses.min() < 0 or losses.max() > 1:
        return None
    total = clusters.sums(1 + (weights - 1) * (1 - losses))
    size = clusters.sums(np.ones(losses.size))
    return 1 - _least_mean(np.maximum(total, 0.0), size, math.log(1 / (1 - level)))


def log_capital(total: Floats, size: Floats, mean: float) -> float:
    """Logarithm of what a capital of one becomes by bets against a mean of at most `mean`.

    Args:
        total: Total of a quantity that is never negative in each cluster, shape (k,).
        size: How many parts it has, shape (k,).
        mean: What each part is said not to exceed on average.
    """
    back = (total / mean - size) / size.max()  # of a stake of one; at least -1
    padded = np.zeros(-(-back.size // BLOCK) * BLOCK)
    padded[: back.size] = back
    parts = padded.reshape(BLOCK, -1)
    gains = np.empty(len(BETS))
    for place, bet in enumerate(BETS):
        gains[place] = np.log(np.prod(1 + bet * parts, axis=0)).sum()
    top = float(gains.max())
    return top + math.log(float(np.exp(gains - top).mean()))


def _least_mean(total: Floats, size: Floats, goal: float) -> float:
    """The mean at which the logarithm of the capital, which falls with it, is `goal`."""
    high = float(total.sum() / size.sum())  # here no bet has won
    if high <= 0:
        return 0.0
    low = high / 2
    while log_capital(total, size, low) < goal and low > 1e-12 * high:
        high, low = low, low / 2
    if low <= 1e-12 * high:
        return 0.0
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if log_capital(total, size, middle) >= goal else (low, middle)
    return low
