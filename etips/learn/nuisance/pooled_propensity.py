"""Propensities that were given, averaged with fitted ones where that tells better what was done."""

import numpy as np

from etips.data.decisions import Floats, Ints
from etips.learn.nuisance.weight_scale import error_of_mean

BEYOND_NOISE = 1.64
"""Standard errors by which the mean of the two must be likelier than what was given. As much is
asked of balancing."""


def pooled_propensity(
    given: Floats, fitted: Floats, cluster: Ints, *, clip: float
) -> Floats | None:
    """The mean of given and fitted propensities; None where it tells the log no better.

    Right propensities have the highest likelihood that there is, on average, whatever they know
    that the fitted ones do not: they are left alone. Noise in them, or a model that is no better
    than the fitted one and errs elsewhere, costs likelihood, which a mean of two gets back. Its
    weights are also the lighter ones: they are at most twice those by the larger of the two.

    Args:
        given: Propensity of each logged action, neither clipped nor scaled: the one that was
            clipped would seem the likelier. Shape (n,).
        fitted: The same by networks or trees that had not seen the stay, shape (n,).
        cluster: Patient (or stay) of each decision, shape (n,).
        clip: What is pooled is raised to this.
    """
    pooled = (given + fitted) / 2
    gain = np.log(pooled) - np.log(given)
    if not gain.mean() > BEYOND_NOISE * error_of_mean(gain, cluster):
        return None
    return np.asarray(np.maximum(pooled, clip))
