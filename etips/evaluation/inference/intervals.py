"""Intervals that treat the cluster (stay or patient) as the unit of evidence.

The bootstrap resamples whole clusters, many replicates at a time, as a product of two matrices.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from scipy import special

from etips.errors import SettingError
from etips.evaluation.inference.checks import Floats, check_share
from etips.evaluation.inference.effective_count import EffectiveCount
from etips.evaluation.inference.evidence import Evidence, divide

CELLS = 250_000  # counts held at once: 2 MB of them stay in cache; more is slower, not faster
ROWS = 16  # replicates at once, where there are too many clusters to hold all of them
EXACT_UP_TO = 15_000  # clusters; beyond, Poisson counts differ from multinomial ones by 1/k


def replicate_sums(columns: Floats, *, replicates: int, seed: int) -> Floats:
    """Totals of `columns` (k, m) over clusters drawn with replacement, shape (replicates, m).

    Up to `EXACT_UP_TO` clusters the counts are Efron's multinomial. Beyond, each cluster has its
    own Poisson(1) count: k of them are drawn in expectation only, which cancels in a ratio, and the
    draw is several times as fast and can go through the clusters block by block.
    """
    k = columns.shape[0]
    generator = np.random.default_rng(seed)
    exact = k <= EXACT_UP_TO
    rows = max(1 if exact else ROWS, CELLS // k)
    block = k if exact else max(1, CELLS // rows)
    draw = _multinomial if exact else _poisson
    columns = np.asfortranarray(columns)
    sums = np.zeros((replicates, columns.shape[1]))
    for start in range(0, replicates, rows):
        part = sums[start : start + rows]
        for first in range(0, k, block):
            totals = columns[first : first + block]
            part += draw(generator, part.shape[0], totals.shape[0]) @ totals
    return sums


def replicate_values(evidence: Evidence, *, replicates: int, seed: int) -> Floats:
    """The quantity itself, denominators resampled too, in every replicate; NaN where undefined."""
    terms = evidence.sign.size
    columns = np.hstack([evidence.numerator, evidence.denominator])
    sums = replicate_sums(columns, replicates=replicates, seed=seed)
    return evidence.values(sums[:, :terms], sums[:, terms:])


def replicate_studentised(
    evidence: Evidence, *, replicates: int, seed: int
) -> tuple[Floats, Floats]:
    """The quantity and its standard error in every replicate, shape (replicates,) each.

    The squared error is a quadratic form in the totals and the totals of their products, so it
    needs no second pass over the clusters.
    """
    terms = evidence.sign.size
    width = 2 * terms
    ratio = divide(evidence.numerator.sum(axis=0), evidence.denominator.sum(axis=0))
    centred = (
        evidence.numerator - ratio * evidence.denominator
    )  # else small errors drown in rounding
    columns = np.hstack([centred, evidence.denominator])
    first, second = np.triu_indices(width)
    sums = replicate_sums(
        np.hstack([columns, columns[:, first] * columns[:, second]]),
        replicates=replicates,
        seed=seed,
    )
    above, below = sums[:, :terms], sums[:, terms:width]
    gradient = np.hstack([divide(evidence.sign, below), divide(-evidence.sign * above, below**2)])
    pair = gradient[:, first] * gradient[:, second] * np.where(first == second, 1.0, 2.0)
    k = evidence.n_clusters
    squared = k / (k - 1) * np.maximum((pair * sums[:, width:]).sum(axis=1), 0)
    return evidence.value + evidence.values(above, below), np.sqrt(squared)


def _multinomial(generator: np.random.Generator, rows: int, k: int) -> Floats:
    drawn = generator.integers(0, k, size=(rows, k))
    drawn += np.arange(rows)[:, None] * k
    return np.bincount(drawn.ravel(), minlength=rows * k).reshape(rows, k).astype(np.float64)


def _poisson(generator: np.random.Generator, rows: int, k: int) -> Floats:
    """Counts that are close to Poisson(1), one random byte each."""
    drawn = np.frombuffer(generator.bytes(rows * k), dtype=np.uint8).reshape(rows, k)
    return np.take(_COUNTS, drawn)


# Of 256 equally likely bytes, so many stand for 0, 1, .. 5: Poisson(1) rounded to 1/256 so that
# mean and variance are exactly 1; the third moment is 4.98 instead of 5.
_COUNTS = np.repeat(np.arange(6.0), (94, 95, 46, 16, 4, 1))


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
            low + (high - low) * float(special.expit(middle - reach)),
            low + (high - low) * float(special.expit(middle + reach)),
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
    t = -abs(evidence.value) / evidence.std_error
    return 2 * float(special.stdtr(evidence.n_clusters - 1, t))


def _reach(evidence: Evidence, level: float) -> float:
    return evidence.std_error * float(special.stdtrit(evidence.n_clusters - 1, (1 + level) / 2))


def _tails(values: Floats, level: float) -> Range:
    defined = values[np.isfinite(values)]
    if defined.size == 0:
        return math.nan, math.nan
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
