"""Risk against coverage as a policy is asked to abstain where the log has little support."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from etips.errors import DataError, SettingError
from etips.evaluation.inference.checks import Floats
from etips.evaluation.inference.contrast import Contrast, difference
from etips.evaluation.inference.estimate import Estimate
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, View
from etips.evaluation.risk import logged_risk, snips

SUPPORTS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)


@dataclass(frozen=True)
class AbstentionPoint:
    """The policy that leaves a decision to the clinicians when support is lacking.

    Args:
        support: Least propensity its likeliest action must have for it to speak.
        coverage: Share of decisions at which it speaks.
        n_abstained: Decisions at which it does not.
        risk: Risk of the policy where it speaks and the clinicians elsewhere.
        gain: The same minus the clinicians' risk, paired.
    """

    support: float
    coverage: float
    n_abstained: int
    risk: Estimate
    gain: Contrast


def abstention_curve(
    log: Log, policy: View, *, supports: Sequence[float] = SUPPORTS, interval: Interval = DEFAULT
) -> tuple[AbstentionPoint, ...]:
    """One point for each of `supports`, rising; needs `log.propensities`.

    Do not choose the support by the lowest risk on this curve and report that risk: choose it on
    other stays.

    Args:
        log: The decisions.
        policy: The policy, seen through them.
        supports: Least propensities to try.
        interval: How the limits are made.
    """
    if log.propensities is None:
        raise DataError("propensities", "must be given for every action to say where to abstain")
    if not supports or not all(0 <= support <= 1 for support in supports):
        raise SettingError("supports", "must be one or more numbers from 0 to 1")
    known = log.propensities[log.rows, policy.recommended]
    return tuple(_point(log, policy, known, support, interval) for support in sorted(supports))


def _point(
    log: Log, policy: View, known: Floats, support: float, interval: Interval
) -> AbstentionPoint:
    speaks = known >= support
    if policy.abstains is not None:
        speaks &= ~policy.abstains
    weight = np.where(speaks, policy.weight, 1.0)  # the clinicians' weight under their own policy
    risk = snips(log.loss, weight, log.clusters, interval=interval)
    clinicians = logged_risk(log.loss, log.clusters)
    return AbstentionPoint(
        support=support,
        coverage=float(speaks.mean()),
        n_abstained=int((~speaks).sum()),
        risk=risk,
        gain=difference(risk, clinicians, interval=interval),
    )
