"""What hidden confounding of a given strength could do to a risk: the marginal sensitivity model.

Tan (2006): given what the log holds, the odds of an action may differ by a factor of at most
`gamma` between patients of different hidden state. The true inverse propensity then lies between
`1 + (1/p - 1) / gamma` and `1 + (1/p - 1) * gamma`. The extreme self-normalised risks over all such
weights are found by sorting the losses (Zhao, Small and Bhattacharya 2019). They contain the risk
for any hidden state within the model, but some of those weights no hidden state can make: given
what is visible, true weights have the nominal mean. Where the log tells what loss to expect, only
weights are allowed that keep their total among decisions which expect alike, and the bounds are
those of Dorn and Guo (2023): never wider, and sharp as far as the expectation is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from etips.errors import SettingError
from etips.evaluation.case import UNIT
from etips.evaluation.censoring import LossModel
from etips.evaluation.inference.checks import Floats
from etips.evaluation.inference.contrast import difference
from etips.evaluation.inference.estimate import Estimate
from etips.evaluation.inference.evidence import Bounds, ratio_of
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, View
from etips.evaluation.risk import logged_risk
from etips.evaluation.sensitivity_weights import extremes

GAMMAS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0)
GAMMA_LIMIT = 1000.0


@dataclass(frozen=True)
class Bound:
    """One end of what is possible: its value and its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class SensitivityBounds:
    """Risk and gain under hidden confounding of at most `gamma`.

    The risk lies between `risk_least.low` and `risk_most.high`, hidden confounding and sampling
    error both allowed for; the gain likewise.

    Args:
        gamma: Strength of the confounding as an odds ratio; 1 is none.
        risk_least: Lower bound of the policy's risk.
        risk_most: Upper bound.
        gain_least: Lower bound of the policy's risk minus the clinicians'.
        gain_most: Upper bound; the gain is gone when it reaches zero.
    """

    gamma: float
    risk_least: Bound
    risk_most: Bound
    gain_least: Bound
    gain_most: Bound


@dataclass(frozen=True)
class Sensitivity:
    """Bounds over a range of gamma, and where the gain is gone.

    Args:
        bounds: One entry a gamma, rising.
        gamma_point: Least gamma at which the gain may be zero; infinite beyond 1000.
        gamma_interval: Least gamma at which it may, sampling error included; 1 when the gain is not
            certain even without confounding.
        balanced: Whether weights had to keep their totals among decisions that expect alike.
    """

    bounds: tuple[SensitivityBounds, ...]
    gamma_point: float
    gamma_interval: float
    balanced: bool = False


def bound_risk(
    log: Log,
    policy: View,
    *,
    gammas: Sequence[float] = GAMMAS,
    interval: Interval = DEFAULT,
    balanced: bool | None = None,
    losses: LossModel | None = None,
) -> Sensitivity:
    """Bounds on the policy's risk and on its gain over the clinicians.

    The clinicians' own risk is the mean logged loss, which no hidden state can change; nor can it
    change anything where the policy abstains. The sampling error takes the extreme weights as
    given: moving the loss at which they switch changes the bound in second order only.

    Args:
        log: The decisions.
        policy: The policy, seen through them.
        gammas: Strengths of confounding to report.
        interval: How the limits of each bound are made.
        balanced: True for the bounds of Dorn and Guo, for which the log must hold predicted losses
            or features; False for those of Zhao, Small and Bhattacharya; left out, the first where
            they can be had.
        losses: Where the log's losses are stand-ins for missing ones, the losses themselves: the
            noise of a stand-in is not a hidden state.
    """
    if not gammas or not all(gamma >= 1 for gamma in gammas):
        raise SettingError("gammas", "must be one or more numbers of at least 1")
    expected = None if balanced is False else _expected(log, policy)
    if balanced and expected is None:
        raise SettingError("balanced", "needs a log with predicted losses or features")
    ends = extremes(log, policy, expected=expected, losses=losses)

    bounds = UNIT if ends.loss.min() >= 0 and ends.loss.max() <= 1 else None

    def bound(gamma: float, *, most: bool) -> tuple[Bound, Bound]:
        return _bound(log, *ends.reach(gamma, most=most), bounds, interval)

    def at(gamma: float) -> SensitivityBounds:
        risk_least, gain_least = bound(gamma, most=False)
        risk_most, gain_most = bound(gamma, most=True)
        return SensitivityBounds(gamma, risk_least, risk_most, gain_least, gain_most)

    return Sensitivity(
        bounds=tuple(accumulate((at(gamma) for gamma in sorted(gammas)), _no_narrower)),
        gamma_point=find_crossing(lambda gamma: bound(gamma, most=True)[1].value),
        gamma_interval=find_crossing(lambda gamma: bound(gamma, most=True)[1].high),
        balanced=expected is not None,
    )


def _no_narrower(before: SensitivityBounds, own: SensitivityBounds) -> SensitivityBounds:
    """Limits that leave out nothing that a smaller gamma allows: chance may have them do so."""
    return replace(
        own,
        risk_least=_wider(min, own.risk_least, before.risk_least),
        risk_most=_wider(max, own.risk_most, before.risk_most),
        gain_least=_wider(min, own.gain_least, before.gain_least),
        gain_most=_wider(max, own.gain_most, before.gain_most),
    )


def _wider(outer: Callable[[float, float], float], own: Bound, before: Bound) -> Bound:
    return Bound(own.value, outer(own.low, before.low), outer(own.high, before.high))


def _expected(log: Log, policy: View) -> Floats | None:
    """The loss to expect at each decision, made without it, shape (n,); None if nobody knows."""
    if policy.predicted is not None:
        return policy.predicted
    if log.expected is None:
        return None
    return log.expected.by_action[log.rows, log.action].astype(np.float64)


def _bound(
    log: Log, above: Floats, below: Floats, bounds: Bounds | None, interval: Interval
) -> tuple[Bound, Bound]:
    evidence = ratio_of(log.clusters, [(above, below)], bounds=bounds)
    risk = Estimate.of("snips", evidence, weight=below, count=None, interval=interval)
    gain = difference(risk, logged_risk(log.loss, log.clusters), interval=interval)
    return (
        Bound(risk.risk, risk.low, risk.high),
        Bound(gain.difference, gain.low, gain.high),
    )


def find_crossing(height: Callable[[float], float]) -> float:
    """Least gamma at which a rising `height` reaches zero, to one part in a thousand."""
    if not height(1.0) < 0:
        return 1.0
    if height(GAMMA_LIMIT) < 0:
        return float("inf")
    low, high = 1.0, GAMMA_LIMIT
    while high / low > 1.001:
        middle = float(np.sqrt(low * high))
        if height(middle) < 0:
            low = middle
        else:
            high = middle
    return float(np.sqrt(low * high))
