"""Weights brought to a mean of one, where propensities are too small on the whole."""

import logging

import numpy as np

from etips.data.decisions import Floats, Ints

_LOG = logging.getLogger(__name__)

BEYOND_NOISE = 3.0
"""Standard errors by which the mean weight of the fitted clinicians must be above one."""

BEYOND_CARE = 0.1
"""Its least excess over one that is worth a change: guards leave more room than that."""


def weight_scale(imitated: Floats, propensity: Floats, cluster: Ints, *, clip: float) -> float:
    """What weights must be divided by to have a mean of one; 1 where they are not too heavy.

    If logged propensities are right, the weights of any policy have a mean of one: also those of
    the clinicians as fitted on other stays, however badly these fit. Where theirs have a larger
    one, beyond noise, all weights are off by that factor, and every guard that looks for a mean of
    one would turn away good and bad alike. Propensities times noise of a lognormal spread s have a
    mean weight of exp(s^2 / 2). A smaller mean is left alone: right propensities show it too, where
    the few weights that would make it up have not been drawn, and guards are there to see that.

    Args:
        imitated: Chance of the logged action by the fitted clinicians, out of fold, shape (n,).
        propensity: Of the logged action, shape (n,).
        cluster: Patient (or stay) of each decision, shape (n,).
        clip: Propensities below this are raised to it.
    """
    weight = imitated / np.maximum(propensity, clip)
    mean, error = float(weight.mean()), error_of_mean(weight, cluster)
    if mean - 1 <= max(BEYOND_NOISE * error, BEYOND_CARE):
        return 1.0
    _LOG.warning(
        "Propensities of the logged actions are too small: the weights of the fitted clinicians "
        "have a mean of %.2f and should have 1. Weights are divided by it.",
        mean,
    )
    return mean


def error_of_mean(values: Floats, cluster: Ints) -> float:
    """Standard error of a mean over decisions, by patient."""
    patient = np.unique(cluster, return_inverse=True)[1]
    apart = np.bincount(patient, values - values.mean())
    return float(np.sqrt((apart**2).sum())) / len(values)
