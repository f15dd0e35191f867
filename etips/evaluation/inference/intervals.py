"""Intervals that treat the cluster (stay or patient) as the unit of evidence."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from etips.errors import SettingError
from etips.evaluation.inference.bootstrap import replicate_studentised, replicate_values
from etips.evaluation.inference.checks import Floats, check_share
from etips.evaluation.inference.evidence import Evidence
from etips.evaluation.inference.quantiles import student_quantile

Range = tuple[float, float]


class Interval(Protocol):
    """Anything that turns evidence into a lower and an upper limit."""

    def __call__(self, evidence: Evidence, /) -> Range:
        """Lower and upper limit of the quantity."""
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


@dataclass(frozen=True)
class Logit:
    """Wald on the logit scale, for quantities with known bounds; plain Wald for all others.

    The default: near a bound the error of a risk is lopsided, and the symmetric interval covers
    86 to 90 % where this one covers 96 (docs/method/coverage.md: 200 stays, risk 0.05 or 0.95).
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


@dataclass(frozen=True)
class Bootstrap:
    """Settings of an interval that resamples clusters.

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


@dataclass(frozen=True)
class Percentile(Bootstrap):
    """Quantiles of the cluster bootstrap."""

    def __call__(self, evidence: Evidence) -> Range:
        """Limits from the replicates in which the quantity is defined."""
        values = replicate_values(evidence, replicates=self.replicates, seed=self.seed)
        return _tails(values, self.level)


@dataclass(frozen=True)
class Studentised(Bootstrap):
    """Cluster bootstrap of the t statistic: each replicate carries its own standard error."""

    def __call__(self, evidence: Evidence) -> Range:
        """Limits from the replicates with a positive standard error."""
        value, error = replicate_studentised(evidence, replicates=self.replicates, seed=self.seed)
        own = math.sqrt(
            evidence.n_clusters / (evidence.n_clusters - 1) * float((evidence.influence**2).sum())
        )
        usable = error > 1e-6 * own  # a replicate of one cluster only has none but rounding
        if not usable.any():
            return Wald(self.level)(evidence)
        low, high = _tails((value[usable] - evidence.value) / error[usable], self.level)
        return evidence.value - high * own, evidence.value - low * own


DEFAULT = Logit()


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
