"""What risk and gain could be if who lacks a loss depends on the loss itself.

Nothing in a log can tell. Two answers: the odds of a missing loss differ by at most gamma between
those who look alike, were treated alike and differ in their loss; or nothing at all is assumed and
each missing loss of 0 to 1 is whatever harms the claim most (Manski 1990): gamma is infinite.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from etips.errors import SettingError
from etips.evaluation.censoring import LossModel
from etips.evaluation.inference.checks import Floats
from etips.evaluation.inference.contrast import difference
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, View
from etips.evaluation.risk import logged_risk, snips
from etips.evaluation.sensitivity import Bound, Sensitivity, SensitivityBounds, find_crossing

GAMMAS = (1.0, 1.5, 2.0, 3.0, math.inf)


def bound_missing(
    model: LossModel,
    log: Log,
    policy: View,
    *,
    gammas: Sequence[float] = GAMMAS,
    interval: Interval = DEFAULT,
) -> Sensitivity:
    """Bounds on risk and gain by gamma; infinity assumes nothing and needs losses of 0 to 1.

    The sampling error takes the models and the extreme losses as given.

    Args:
        model: What is known and estimated of the losses.
        log: The decisions, with the stand-ins of `model` as losses.
        policy: The policy, seen through them.
        gammas: How much the odds of a missing loss may depend on the loss.
        interval: How the limits of each bound are made.
    """
    if not gammas or not all(gamma >= 1 for gamma in gammas):
        raise SettingError("gammas", "must be one or more numbers of at least 1")
    case = _Case(model, log, policy, interval)
    usable = [gamma for gamma in sorted(gammas) if case.unit or math.isfinite(gamma)]
    return Sensitivity(
        bounds=tuple(case.at(gamma) for gamma in usable),
        gamma_point=find_crossing(lambda gamma: case.gain(gamma, most=True).value),
        gamma_interval=find_crossing(lambda gamma: case.gain(gamma, most=True).high),
    )


@dataclass(frozen=True)
class _Case:
    model: LossModel
    log: Log
    policy: View
    interval: Interval

    @property
    def unit(self) -> bool:
        """Whether losses lie in 0..1, so that a missing one does too."""
        seen = self.model.loss[self.model.observed]
        return bool(seen.min() >= 0 and seen.max() <= 1)

    def at(self, gamma: float) -> SensitivityBounds:
        return SensitivityBounds(
            gamma,
            self.risk(gamma, most=False),
            self.risk(gamma, most=True),
            self.gain(gamma, most=False),
            self.gain(gamma, most=True),
        )

    def risk(self, gamma: float, *, most: bool) -> Bound:
        """The policy weighs no decision negatively, so large losses make a large risk."""
        ways = [
            self._risk(loss) for loss in self._losses(gamma, np.ones(self.log.n_decisions), most)
        ]
        return _narrowest(ways, most=most)

    def gain(self, gamma: float, *, most: bool) -> Bound:
        """A decision that the policy weighs less than the clinicians counts against the gain."""
        weight = self.policy.weight
        mean = float(weight.mean())
        lever = weight / mean - 1 if mean > 0 else -np.ones(weight.size)
        ways = [self._gain(loss) for loss in self._losses(gamma, lever, most)]
        return _narrowest(ways, most=most)

    def _losses(self, gamma: float, lever: Floats, most: bool) -> list[Floats]:
        """Losses that push `lever @ loss` up, or down: within the unit, and within gamma."""
        model, sign = self.model, 1.0 if most else -1.0
        ways = []
        if self.unit:
            ways.append(np.where(model.observed, model.loss, sign * lever > 0))
        if math.isfinite(gamma):
            odds = 1 / model.chance - 1
            pushes = sign * lever * (model.loss - model.predicted) > 0
            ways.append(model.corrected(1 + odds * np.where(pushes, gamma, 1 / gamma)))
        return ways

    def _risk(self, loss: Floats) -> Bound:
        estimate = snips(loss, self.policy.weight, self.log.clusters, interval=self.interval)
        return Bound(estimate.risk, estimate.low, estimate.high)

    def _gain(self, loss: Floats) -> Bound:
        risk = snips(loss, self.policy.weight, self.log.clusters, interval=self.interval)
        clinicians = logged_risk(loss, self.log.clusters)
        gain = difference(risk, clinicians, interval=self.interval)
        return Bound(gain.difference, gain.low, gain.high)


def _narrowest(ways: list[Bound], *, most: bool) -> Bound:
    """Each is a bound with its limits, so what is nearest to the estimate is one too."""
    nearest = min if most else max
    return Bound(
        nearest(bound.value for bound in ways),
        nearest(bound.low for bound in ways),
        nearest(bound.high for bound in ways),
    )
