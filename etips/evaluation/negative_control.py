"""A policy's "gain" in something that no action can have changed: what is found there is bias.

A value measured before the action is treated as the loss. If the weights are right and nothing is
hidden, patients weighted for the policy have the same mean of it as all patients.
"""

from dataclasses import dataclass

import numpy as np

from etips.errors import DataError
from etips.evaluation.inference.checks import Floats
from etips.evaluation.inference.contrast import difference
from etips.evaluation.inference.intervals import Wald
from etips.evaluation.log import Log, View
from etips.evaluation.risk import logged_risk, snips

LEVEL = 0.99
"""One false alarm in a hundred: it makes a verdict doubtful."""


@dataclass(frozen=True)
class NegativeControl:
    """The "gain" in a negative control.

    Args:
        difference: Weighted for the policy, minus as it was.
        std_error: Clustered standard error of it.
        low: Lower limit of a 99 % interval.
        high: Upper limit.
        spread: Standard deviation of the control.
    """

    difference: float
    std_error: float
    low: float
    high: float
    spread: float

    @property
    def warning(self) -> bool:
        """Whether zero, which it should be, is outside the interval."""
        return bool(self.low > 0 or self.high < 0)


def control_gain(log: Log, policy: View, control: Floats) -> NegativeControl:
    """Treat `control` as the loss; decisions where it is not known take no part.

    Args:
        log: The decisions.
        policy: The policy, seen through them.
        control: Something measured before each action, NaN where not known, shape (n,).
    """
    values = np.asarray(control, dtype=np.float64)
    if values.shape != (log.n_decisions,):
        raise DataError("negative_control", "must have one entry a decision")
    known = np.isfinite(values)
    if np.unique(log.clusters.code[known]).size < 2:
        fix = "Does the column hold numbers at the steps of decisions?"
        raise DataError("negative_control", "must be known in two clusters at least", fix=fix)
    cluster, weight, own = log.cluster[known], policy.weight[known], values[known]
    interval = Wald(LEVEL)
    weighted = snips(own, weight, cluster, interval=interval)
    gain = difference(weighted, logged_risk(own, cluster, interval=interval), interval=interval)
    spread = float(own.std())
    return NegativeControl(gain.difference, gain.std_error, gain.low, gain.high, spread)
