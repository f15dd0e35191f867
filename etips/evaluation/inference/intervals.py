"""Intervals that treat the cluster (stay or patient) as the unit of evidence."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from etips.errors import SettingError
from etips.evaluation.inference.bootstrap import replicate_studentised, replicate_values
from etips.evaluation.inference.checks import Floats, check_share
from etips.evaluation.inference.effective_count import EffectiveCount
from etips.evaluation.inference.evidence import Evidence
from etips.evaluation.inference.quantiles import student_cdf, student_quantile

Range = tuple[float, float]


class Interval(Protocol):
    """Anything that turns evidence into a lower and an upper limit."""

    def __call__(self, evidence: Evidence, /) -> Range:
        """Lower and upper limit of the quantity."""
        ...


@runtime_checkable
class Testing(Protocol):
    """An interval that also knows the level at which it would just hold zero."""

    def p_value(self, evidence: Evidence, /) -> float:
        """Two-sided, of a quantity of zero: under 1 - level just where the limits omit it."""
        ...


@dataclass(frozen=True)
class Wald:
    """Value plus and minus t standard errors, k-1 degrees of freedom for k clusters."""

    level: float = 0.95

    def __post_init__(self) -> None:
        check_share("level", self.level)

    def __call__(self, evidence: Evidence) -> Range:
        """Symmetric limits."""
        reach = _reach(evidence, self.level)
        return evidence.value - reach, evidence.value + reach

    def p_value(self, evidence: Evidence) -> float:
        """Two-sided, of Student's t."""
        return _student_p(evidence)


@dataclass(frozen=True)
class Logit:
    """Wald on the logit scale, for quantities with known bounds; plain Wald for all others.

    Near a bound the error of a risk is lopsided, and the symmetric interval covers 86 to 90 % where
    this one covers 96 (200 stays, risk 0.05 or 0.95). At the bound itself it has no width.
    """

    level: float = 0.95

    def __post_init__(self) -> None:
        check_share("level", self.level)

    def __call__(self, evidence: Evidence) -> Range:
        """Limits inside the bounds."""
        if evidence.bounds is None:
            return Wald(self.level)(evidence)
        low, high = evidence.bounds
        if math.isinf(evidence.std_error):
            return low, high
        share = (evidence.value - low) / (high - low)
        if not 0 < share < 1 or evidence.std_error == 0:
            return Wald(self.level)(evidence)
        reach = _reach(evidence, self.level) / (high - low) / (share * (1 - share))
        middle = math.log(share / (1 - share))
        return (
            low + (high - low) * _expit(middle - reach),
            low + (high - low) * _expit(middle + reach),
        )

    def p_value(self, evidence: Evidence) -> float:
        """Two-sided, of Student's t: a quantity that may be zero has no bounds there."""
        return _student_p(evidence)


@dataclass(frozen=True)
class Bootstrap(ABC):
    """An interval that resamples clusters.

    Args:
        level: Share of such intervals that hold the truth.
        replicates: How often the clusters are drawn again, at least 100 times.
        seed: Of the draws.
    """

    level: float = 0.95
    replicates: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        check_share("level", self.level)
        if self.replicates < 100:
            raise SettingError("replicates", "must be at least 100")

    def __call__(self, evidence: Evidence) -> Range:
        """Limits from the replicates in which the quantity is defined."""
        return _tails(self._candidates(evidence), self.level)

    def p_value(self, evidence: Evidence) -> float:
        """Two-sided: one minus the greatest level at which the limits omit zero."""
        candidates = self._candidates(evidence)

        def omits(level: float) -> bool:
            low, high = _tails(candidates, level)
            return low > 0 or high < 0

        inside, outside = (0.0, self.level) if not omits(self.level) else (self.level, 1.0)
        while outside - inside > 1e-6:
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if omits(middle) else (inside, middle)
        return 1 - inside

    @abstractmethod
    def _candidates(self, evidence: Evidence) -> Floats:
        """Values whose quantiles are the limits, shape (replicates,)."""


@dataclass(frozen=True)
class Percentile(Bootstrap):
    """Quantiles of the cluster bootstrap."""

    def _candidates(self, evidence: Evidence) -> Floats:
        return replicate_values(evidence, replicates=self.replicates, seed=self.seed)


@dataclass(frozen=True)
class Studentised(Bootstrap):
    """Cluster bootstrap of the t statistic: each replicate carries its own standard error."""

    def _candidates(self, evidence: Evidence) -> Floats:
        value, error = replicate_studentised(evidence, replicates=self.replicates, seed=self.seed)
        own = math.sqrt(
            evidence.n_clusters / (evidence.n_clusters - 1) * float((evidence.influence**2).sum())
        )
        usable = error > 1e-6 * own  # a replicate of one cluster only has none but rounding
        if not usable.any():
            return np.full(1, evidence.value)
        return evidence.value - own * (value[usable] - evidence.value) / error[usable]


DEFAULT = EffectiveCount()


def p_of_zero(interval: Interval, evidence: Evidence) -> float:
    """Two-sided p-value of a quantity of zero that never contradicts the limits of `interval`.

    A function that gives limits alone has no other levels: Student's t, moved to their side of 5 %.
    """
    if isinstance(interval, Testing):
        return interval.p_value(evidence)
    low, high = interval(evidence)
    p_value = _student_p(evidence)
    return min(p_value, 0.05) if low > 0 or high < 0 else max(p_value, math.nextafter(0.05, 1))


def _student_p(evidence: Evidence) -> float:
    if math.isnan(evidence.value) or math.isinf(evidence.std_error):
        return 1.0
    if evidence.std_error == 0:
        return float(evidence.value == 0)
    return 2 * student_cdf(-abs(evidence.value) / evidence.std_error, evidence.n_clusters - 1)


def _reach(evidence: Evidence, level: float) -> float:
    return evidence.std_error * student_quantile((1 + level) / 2, evidence.n_clusters - 1)


def _tails(values: Floats, level: float) -> Range:
    defined = values[np.isfinite(values)]
    if defined.size == 0:
        return math.nan, math.nan
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _expit(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value > -700 else 0.0
