"""How far to cut or shrink heavy weights: chosen by the estimated squared error."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from etips.errors import SettingError
from etips.evaluation.case import Case
from etips.evaluation.inference.checks import Floats
from etips.evaluation.inference.estimate import Estimate, effective_size
from etips.evaluation.inference.evidence import Evidence
from etips.evaluation.inference.intervals import Interval

QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
"""Of the positive weights, tried as limits beside no limit at all."""


@dataclass(frozen=True)
class Tuned:
    """A tuned value, the root of its estimated squared error, and the evidence without tuning."""

    value: float
    error: float
    setting: float
    plain: Evidence


def tune(
    name: str, given: float | None, limits: list[float], build: Callable[[float], Evidence]
) -> Tuned:
    """The given setting, or the one with the smallest estimated squared error.

    That is the squared standard error plus the squared distance from the estimate without tuning.

    Args:
        name: Of the setting, for a refusal.
        given: The caller's own; None to choose.
        limits: Settings to choose from, beside infinity: no tuning.
        build: The evidence at a setting.
    """
    if given is not None and not given >= 0:
        raise SettingError(name, "must be zero or more")
    plain = build(np.inf)

    def at(setting: float) -> Tuned:
        evidence = plain if np.isinf(setting) else build(setting)
        bias = evidence.value - plain.value
        return Tuned(evidence.value, float(np.hypot(evidence.std_error, bias)), setting, plain)

    settings = [np.inf, *limits] if given is None else [float(given)]
    return min((at(setting) for setting in settings), key=lambda tuned: tuned.error)


def weight_limits(weight: Floats) -> list[float]:
    """Candidate limits: quantiles of the positive weights."""
    positive = weight[weight > 0]
    if positive.size == 0:
        return []
    return [float(limit) for limit in np.unique(np.quantile(positive, QUANTILES))]


def tuned_estimate(
    case: Case, estimator: str, tuned: Tuned, interval: Interval, *, weight: Floats
) -> Estimate:
    """The tuned value between the limits of the untuned one, widened to hold it.

    Args:
        case: Of the call.
        estimator: Name of the formula.
        tuned: What tuning gave.
        interval: How the limits are made.
        weight: The weights after tuning, shape (n,).
    """
    plain = case.estimate(estimator, tuned.plain, interval)
    return replace(
        plain,
        risk=tuned.value,
        std_error=tuned.error,
        low=min(plain.low, tuned.value),
        high=max(plain.high, tuned.value),
        effective_n=effective_size(weight, count=case.count),
        tuning=tuned.setting,
    )
