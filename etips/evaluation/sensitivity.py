"""What hidden confounding of a given strength could do to a risk: the marginal sensitivity model.

Tan (2006): given what the log holds, the odds of an action may differ by a factor of at most
`gamma` between patients of different hidden state. The true inverse propensity then lies between
`1 + (1/p - 1) / gamma` and `1 + (1/p - 1) * gamma`, and the extreme self-normalised risks over all
such weights are found by sorting the losses (Zhao, Small and Bhattacharya 2019). They contain the
risk for any hidden state within the model; they are not always the tightest such bounds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from etips.errors import SettingError
from etips.evaluation.inference.checks import Floats, Ints
from etips.evaluation.inference.contrast import difference
from etips.evaluation.inference.evidence import divide
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, View
from etips.evaluation.risk import logged_risk, snips

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
    """

    bounds: tuple[SensitivityBounds, ...]
    gamma_point: float
    gamma_interval: float


def bound_risk(
    log: Log, policy: View, *, gammas: Sequence[float] = GAMMAS, interval: Interval = DEFAULT
) -> Sensitivity:
    """Bounds on the policy's risk and on its gain over the clinicians.

    The clinicians' own risk is the mean logged loss, which no hidden state can change. The sampling
    error takes the extreme weights as given: moving the loss at which they switch changes the bound
    in second order only.

    Args:
        log: The decisions.
        policy: The policy, seen through them.
        gammas: Strengths of confounding to report.
        interval: How the limits of each bound are made.
    """
    if not gammas or not all(gamma >= 1 for gamma in gammas):
        raise SettingError("gammas", "must be one or more numbers of at least 1")
    order = np.argsort(-log.loss, kind="stable")

    def most(gamma: float) -> tuple[Bound, Bound]:
        return _bound(log, _extreme(log, policy, order, gamma, most=True), interval)

    def at(gamma: float) -> SensitivityBounds:
        risk_least, gain_least = _bound(
            log, _extreme(log, policy, order, gamma, most=False), interval
        )
        risk_most, gain_most = most(gamma)
        return SensitivityBounds(gamma, risk_least, risk_most, gain_least, gain_most)

    return Sensitivity(
        bounds=tuple(at(gamma) for gamma in sorted(gammas)),
        gamma_point=_crossing(lambda gamma: most(gamma)[1].value),
        gamma_interval=_crossing(lambda gamma: most(gamma)[1].high),
    )


def _extreme(log: Log, policy: View, order: Ints, gamma: float, *, most: bool) -> Floats:
    """Weights within `gamma` with the greatest, or the least, self-normalised risk.

    At the optimum all losses above some value have one end of their range and all below it the
    other, so the best of the n+1 splits of the sorted losses is the answer.
    """
    probability = policy.weight * log.propensity
    odds = 1 / log.propensity - 1
    small, large = probability * (1 + odds / gamma), probability * (1 + odds * gamma)
    above, below = (large, small) if most else (small, large)
    total = _split_sums(above[order], below[order])
    losses = log.loss[order]
    ratio = divide(_split_sums(losses * above[order], losses * below[order]), total)
    if np.isnan(ratio).all():
        return policy.weight
    split = int(np.nanargmax(ratio) if most else np.nanargmin(ratio))
    weight = below.copy()
    weight[order[:split]] = above[order[:split]]
    return weight


def _split_sums(above: Floats, below: Floats) -> Floats:
    """Sum of the first j of `above` and the rest of `below`, for j = 0..n, shape (n+1,)."""
    sums = np.empty(above.size + 1)
    sums[0] = below.sum()
    np.cumsum(above - below, out=sums[1:])
    sums[1:] += sums[0]
    return sums


def _bound(log: Log, weight: Floats, interval: Interval) -> tuple[Bound, Bound]:
    risk = snips(log.loss, weight, log.clusters, interval=interval)
    gain = difference(risk, logged_risk(log.loss, log.clusters), interval=interval)
    return (
        Bound(risk.risk, risk.low, risk.high),
        Bound(gain.difference, gain.low, gain.high),
    )


def _crossing(height: Callable[[float], float]) -> float:
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
