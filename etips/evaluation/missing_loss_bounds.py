"""What risk and gain could be if who lacks a loss depends on the loss itself.

Nothing in a log can tell. Two answers: the odds of a missing loss differ by at most gamma between
those who look alike, were treated alike and differ in their loss; or nothing at all is assumed and
each missing loss of 0 to 1 is whatever harms the claim most (Manski 1990): gamma is infinite.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from etips.errors import SettingError
from etips.evaluation.censoring import LossModel
from etips.evaluation.inference.checks import Floats
from etips.evaluation.inference.estimate import difference
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
        gammas: How much the odds of a missing loss may depend on the loss.
    """
    if not gammas or not all(gamma >= 1 for gamma in gammas):
        raise SettingError("gammas", "must be one or more numbers of at least 1")
    seen, weight = model.loss[model.observed], policy.weight
    unit = bool(seen.min() >= 0 and seen.max() <= 1)  # so that a missing loss lies there too
    mean, everywhere = float(weight.mean()), np.ones(weight.size)
    # A decision that the policy weighs less than the clinicians counts against the gain.
    lever = weight / mean - 1 if mean > 0 else -everywhere

    def ways(gamma: float, lever: Floats, sign: float) -> Iterator[Floats]:
        """Losses that push `lever @ loss` up, or down: within the unit, and within gamma."""
        if unit:
            yield np.where(model.observed, model.loss, sign * lever > 0)
        if math.isfinite(gamma):
            pushes = sign * lever * (model.loss - model.predicted) > 0
            odds = (1 / model.chance - 1) * np.where(pushes, gamma, 1 / gamma)
            yield model.corrected(1 + odds)

    def risk(gamma: float, sign: float) -> Bound:
        estimates = (
            snips(loss, weight, log.clusters, interval=interval)
            for loss in ways(gamma, everywhere, sign)
        )
        return _narrowest([Bound(own.risk, own.low, own.high) for own in estimates], sign)

    def gain(gamma: float, sign: float) -> Bound:
        bounds = []
        for loss in ways(gamma, lever, sign):
            own = snips(loss, weight, log.clusters, interval=interval)
            apart = difference(own, logged_risk(loss, log.clusters), interval=interval)
            bounds.append(Bound(apart.difference, apart.low, apart.high))
        return _narrowest(bounds, sign)

    return Sensitivity(
        bounds=tuple(
            SensitivityBounds(
                gamma, risk(gamma, -1), risk(gamma, 1), gain(gamma, -1), gain(gamma, 1)
            )
            for gamma in sorted(gammas)
            if unit or math.isfinite(gamma)
        ),
        gamma_point=find_crossing(lambda gamma: gain(gamma, 1).value),
        gamma_interval=find_crossing(lambda gamma: gain(gamma, 1).high),
    )


def _narrowest(ways: list[Bound], sign: float) -> Bound:
    """Each is a bound with its limits, so what is nearest to the estimate is one too."""
    nearest = min if sign > 0 else max
    return Bound(
        nearest(bound.value for bound in ways),
        nearest(bound.low for bound in ways),
        nearest(bound.high for bound in ways),
    )
