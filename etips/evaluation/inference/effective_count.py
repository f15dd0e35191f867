"""Limits of a count, at the effective number of events: the default interval.

A mean of many losses errs like a normal variable; a mean of few, or of weights that fell on few,
errs like a count. Three numbers say which count: the variance, the third moment and what the
estimate has not seen (`exposure`). The limits are then those that have been used for counts for
ninety years: Clopper's and Pearson's of a binomial count where the quantity has a least and a
greatest value (at an effective size, as Korn and Graubard do for surveys), Garwood's of a Poisson
count elsewhere (as Fay and Feuer do for weighted sums).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from etips.evaluation.inference.checks import check_share
from etips.evaluation.inference.evidence import Bounds, Evidence, scarcity_of

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
    own = error**2 / (share * (1 - share))
    return 1 / (own + scarcity_of(evidence.influence) * max(0.0, rate - own))


def _within(evidence: Evidence, bounds: Bounds) -> bool:
    """Whether every cluster's own ratio lies within the bounds: losses with weights, no more."""
    if evidence.sign.size > 1 or evidence.sign[0] != 1:
        return False
    above, below = evidence.numerator[:, 0], evidence.denominator[:, 0]
    slack = ROUNDING * np.abs(below)
    return bool(((above >= bounds[0] * below - slack) & (above <= bounds[1] * below + slack)).all())
