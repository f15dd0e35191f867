"""How far balancing moved a risk: what had to be corrected by much may not be corrected in full."""

import numpy as np

from etips.evaluation.inference.checks import Floats
from etips.evaluation.inference.estimate import Estimate
from etips.evaluation.log import Log, View

WITHOUT_MODEL = ("snips", "ips", "clipped_ips")


def moved_by_balancing(
    log: Log, policy: View, headline: Estimate, half_width: float
) -> float | None:
    """Weighted mean with balanced less that with fitted propensities, over the half-width.

    Of the losses, or of what the predicted losses leave where the headline uses those. None where
    the log's propensities were not balanced.

    Args:
        log: The decisions.
        policy: The policy, seen through them.
        headline: The estimate that is judged.
        half_width: Of the interval that a bias matters against.
    """
    before = weights_before(log, policy)
    if before is None or not half_width > 0 or not policy.weight.any() or not before.any():
        return None
    rest = log.loss
    if policy.predicted is not None and headline.estimator not in WITHOUT_MODEL:
        rest = log.loss - policy.predicted
    return abs(_mean(rest, policy.weight) - _mean(rest, before)) / half_width


def weights_before(log: Log, policy: View) -> Floats | None:
    """Weights by the propensities as fitted, shape (n,); None where they were not balanced."""
    if log.unbalanced is None:
        return None
    weight = policy.probabilities[log.rows, log.action] / log.unbalanced
    return weight if policy.abstains is None else np.where(policy.abstains, 1.0, weight)


def _mean(values: Floats, weight: Floats) -> float:
    return float(weight @ values / weight.sum())
