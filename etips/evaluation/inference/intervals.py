"""Intervals that treat the cluster (stay or patient) as the unit of evidence.

The bootstrap resamples whole clusters, many replicates at a time, as a product of two matrices.

The default is `EffectiveCount`: a mean of many losses errs like a normal variable; a mean of few,
or of weights that fell on few, errs like a count. Three numbers say which count: the variance, the
third moment and what the estimate has not seen (`exposure`). The limits are then those that have
been used for counts for ninety years: Clopper's and Pearson's of a binomial count where the
quantity has a least and a greatest value (at an effective size, as Korn and Graubard do for
surveys), Garwood's of a Poisson count elsewhere (as Fay and Feuer do for weighted sums).
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from scipy import special

from etips.errors import SettingError
from etips.evaluation.inference.checks import Floats, check_share
from etips.evaluation.inference.evidence import Bounds, Evidence, divide, scarcity_of

CELLS = 250_000  # counts held at once: 2 MB of them stay in cache; more is slower, not faster


def replicate_sums(columns: Floats, *, replicates: int, seed: int) -> Floats:
    """Totals of `columns` (k, m) over k clusters drawn with replacement, shape (replicates, m)."""
    k = columns.shape[0]
    generator = np.random.default_rng(seed)
    rows = max(1, CELLS // k)
    sums = np.zeros((replicates, columns.shape[1]))
    for start in range(0, replicates, rows):
        part = sums[start : start + rows]
        drawn = generator.integers(0, k, size=(len(part), k))
        drawn += np.arange(len(part))[:, None] * k
        counts = np.bincount(drawn.ravel(), minlength=len(part) * k).reshape(len(part), k)
        part += counts.astype(np.float64) @ columns
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


class Interval(Protocol):
    """Anything that turns evidence into a lower and an upper limit."""

    def __call__(self, evidence: Evidence, /) -> Bounds:
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

    def __call__(self, evidence: Evidence) -> Bounds:
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

    def __call__(self, evidence: Evidence) -> Bounds:
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

    def __call__(self, evidence: Evidence) -> Bounds:
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
        plain_error = math.sqrt(
            evidence.n_clusters / (evidence.n_clusters - 1) * float((evidence.influence**2).sum())
        )
        usable = error > 1e-6 * plain_error  # a replicate of one cluster only has none but rounding
        if not usable.any():
            return np.full(1, evidence.value)
        return evidence.value - plain_error * (value[usable] - evidence.value) / error[usable]


UNSEEN = 0.5
"""Events that none of the weighted losses show and that are counted all the same, where few do."""

STEP = 0.75
"""How much of the step from one count to the next the limits allow for: 1 is exact and covers more
than it says, 0.5 covers what it says on average. No event at all is given the whole step."""

LEAST_SKEWNESS = 1e-4  # a hundred million events: normal to every digit that is shown
ROUNDING = 1e-12
TINY = 1e-290  # losses so small that their cubes are rounded away


@dataclass(frozen=True)
class EffectiveCount:
    """Binomial or Poisson limits at the effective number of events; never of width zero by luck.

    For a ratio whose value lies between known bounds, a binomial count, and limits no nearer than
    those of a Poisson count of events as uneven as the weights; for all else, differences and
    doubly robust risks among them, a Poisson count. Both turn into value plus and minus t
    standard errors, k-1 degrees of freedom for k clusters, as the events become many.
    """

    level: float = 0.95

    def __post_init__(self) -> None:
        check_share("level", self.level)

    def __call__(self, evidence: Evidence) -> Bounds:
        """Lower and upper limit."""
        if math.isnan(evidence.value):
            return math.nan, math.nan
        tail = self._tail(evidence)
        if evidence.bounds is None:
            return _poisson_limits(evidence, tail)
        if math.isinf(evidence.std_error):
            return evidence.bounds
        if _within(evidence, evidence.bounds):
            return _binomial_limits(evidence, evidence.bounds, tail)
        return _clipped_limits(evidence, evidence.bounds, tail)

    def p_value(self, evidence: Evidence) -> float:
        """Two-sided, of a difference of zero: under `1 - level` just where the limits omit it."""
        if math.isnan(evidence.value) or math.isinf(evidence.std_error):
            return 1.0
        error, value = _error_of(evidence), _exact_value(evidence)
        if value == 0 or error.variance == 0:
            return float(value == 0)
        tail = error.tail_up(-value) if value < 0 else error.mirrored.tail_up(value)
        return min(1.0, 2 * float(special.stdtr(evidence.n_clusters - 1, special.ndtri(tail))))

    def _tail(self, evidence: Evidence) -> float:
        """Tail of a normal where Student's t has its share: fewer clusters, farther out."""
        beyond = special.stdtrit(evidence.n_clusters - 1, (1 + self.level) / 2)
        return float(special.ndtr(-beyond))


@dataclass(frozen=True)
class _Error:
    """The error of a value, as three moments.

    Args:
        variance: Its square.
        above: Third moment that makes the upper limit.
        below: Third moment that makes the lower limit, at most as great.
    """

    variance: float
    above: float
    below: float

    @property
    def mirrored(self) -> "_Error":
        """That of the value with its sign reversed."""
        return _Error(self.variance, -self.below, -self.above)

    def up(self, tail: float) -> float:
        """How far the truth may lie above the value."""
        if self._normal:
            return -math.sqrt(self.variance) * float(special.ndtri(tail))
        events, size = self._count()
        step = _step(events)
        if self.above >= 0:
            return size * (float(special.gammainccinv(events + step, tail)) - events)
        shape = events + 1 - step
        return size * (events - (float(special.gammaincinv(shape, tail)) if shape > 0 else 0.0))

    def tail_up(self, distance: float) -> float:
        """The tail at which `up` is this distance; not of a variance of zero."""
        if self._normal:
            return float(special.ndtr(-distance / math.sqrt(self.variance)))
        events, size = self._count()
        step = _step(events)
        if self.above >= 0:
            return float(special.gammaincc(events + step, max(events + distance / size, 0.0)))
        return float(special.gammainc(events + 1 - step, max(events - distance / size, 0.0)))

    @property
    def _normal(self) -> bool:
        least = LEAST_SKEWNESS * self.variance * math.sqrt(self.variance)
        return self.variance <= TINY or abs(self.above) <= max(least, TINY)

    def _count(self) -> tuple[float, float]:
        """How many events make an error like this, and how much each of them moves the value."""
        size = abs(self.above) / self.variance
        return (math.sqrt(self.variance) / size) ** 2, size


def _step(events: float) -> float:
    return 1 - (1 - STEP) * min(1.0, events)


def _error_of(evidence: Evidence) -> _Error:
    errors, variance = evidence.errors, evidence.std_error**2
    cube = float((errors * errors) @ errors)
    exposure = evidence.exposure
    if exposure is None:
        return _Error(variance, cube, cube)
    # by cluster, not by decision: a decision given twice counts as one
    unseen, squares, cubes = UNSEEN * exposure.rate, exposure.squares, exposure.cubes
    more = unseen * squares * (exposure.above**2 + exposure.below**2)
    more += max(0.0, squares * exposure.second - variance)
    tilt = unseen * cubes * (exposure.above**3 - exposure.below**3)
    tilt = exposure.scarcity * (tilt + cubes * exposure.third - cube)
    return _Error(variance + exposure.scarcity * more, cube + max(0.0, tilt), cube + min(0.0, tilt))


def _poisson_limits(evidence: Evidence, tail: float) -> Bounds:
    if math.isinf(evidence.std_error):
        return -math.inf, math.inf
    error, value = _error_of(evidence), _exact_value(evidence)
    return value - error.mirrored.up(tail), value + error.up(tail)


def _exact_value(evidence: Evidence) -> float:
    """The value, zero where two equal terms differ by rounding alone."""
    above, below = np.abs(evidence.numerator.sum(axis=0)), evidence.denominator.sum(axis=0)
    scale = float((above / below).sum())
    return 0.0 if abs(evidence.value) <= ROUNDING * scale else evidence.value


def _clipped_limits(evidence: Evidence, bounds: Bounds, tail: float) -> Bounds:
    """Those of a value that should lie within the bounds, and of which not every part does."""
    error = _error_of(evidence)
    inside = min(max(evidence.value, bounds[0]), bounds[1])
    low, high = inside - error.mirrored.up(tail), inside + error.up(tail)
    return (
        min(max(low, bounds[0]), evidence.value),
        max(min(high, bounds[1]), evidence.value),
    )


def _binomial_limits(evidence: Evidence, bounds: Bounds, tail: float) -> Bounds:
    low, high = bounds
    share = min(max((evidence.value - low) / (high - low), 0.0), 1.0)
    size = _effective_size(evidence, share, high - low)
    events, others = share * size, (1 - share) * size
    step = 1 - (1 - STEP) * min(1.0, events, others)
    least = most = 0.0
    if events > ROUNDING:
        least = float(special.betaincinv(events + 1 - step, others + step, tail))
    if others > ROUNDING:
        most = float(special.betaincinv(others + 1 - step, events + step, tail))
    error = _uneven_error(evidence, share, size, high - low)
    least = min(least, max(0.0, share - error.mirrored.up(tail)))
    most = min(most, max(0.0, 1 - share - error.up(tail)))
    return low + (high - low) * least, high - (high - low) * most


def _uneven_error(evidence: Evidence, share: float, size: float, width: float) -> _Error:
    """That of zeros and ones of which some weigh more: their events are fewer, and larger.

    As uneven as the weights are, or as the errors themselves if that is more: a policy may err just
    where its weights are heavy.
    """
    weight, errors = evidence.denominator[:, 0], evidence.errors / width
    square = weight * weight
    uneven = float(square @ weight) * float(weight.sum()) / float(square.sum()) ** 2
    grown = 1 + (uneven - 1) * min(1.0, share * size, (1 - share) * size)
    variance = share * (1 - share) / size
    cube = variance * (1 - 2 * share) / size * grown
    seen = float((errors * errors) @ errors)
    return _Error(variance, max(cube, seen), min(cube, seen))


def _effective_size(evidence: Evidence, share: float, width: float) -> float:
    """Independent zeros and ones that would know as much, see `Exposure.scarcity`."""
    weight = evidence.denominator[:, 0]
    rate = float(weight @ weight) / float(weight.sum()) ** 2
    error = evidence.std_error / width
    if error == 0 or not ROUNDING < share < 1 - ROUNDING:
        return 1 / rate
    variance = error**2 / (share * (1 - share))
    return 1 / (variance + scarcity_of(evidence.influence) * max(0.0, rate - variance))


def _within(evidence: Evidence, bounds: Bounds) -> bool:
    """Whether every cluster's own ratio lies within the bounds: losses with weights, no more."""
    if evidence.sign.size > 1 or evidence.sign[0] != 1:
        return False
    above, below = evidence.numerator[:, 0], evidence.denominator[:, 0]
    slack = ROUNDING * np.abs(below)
    return bool(((above >= bounds[0] * below - slack) & (above <= bounds[1] * below + slack)).all())


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


def _tails(values: Floats, level: float) -> Bounds:
    defined = values[np.isfinite(values)]
    if defined.size == 0:
        return math.nan, math.nan
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
