"""Student's t, Fisher's F, beta and gamma: distribution functions and quantiles.

SciPy has them. It is not used, since learning selects by intervals and must run where only torch,
NumPy and safetensors are (tests/unit/test_few_packages.py).
"""

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

LARGE_SHAPE = 1e4  # beyond, the cube of a normal is as good as a gamma: 1e-5 standard deviations


def student_cdf(value: float, freedom: float) -> float:
    """Probability that Student's t with `freedom` degrees of freedom is at most `value`."""
    if math.isinf(value):
        return float(value > 0)
    tail = 0.5 * _incomplete_beta(freedom / (freedom + value * value), freedom / 2, 0.5)
    return 1 - tail if value > 0 else tail


@lru_cache(maxsize=1024)
def student_quantile(probability: float, freedom: float) -> float:
    """The value that Student's t stays below with `probability`."""
    if probability < 0.5:
        return -student_quantile(1 - probability, freedom)
    low, high = 0.0, 1.0
    while student_cdf(high, freedom) < probability:
        high *= 2
    while high - low > 1e-13 * max(1.0, high):
        middle = (low + high) / 2
        if student_cdf(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def fisher_tail(value: float, above: float, below: float) -> float:
    """Probability that Fisher's F with these degrees of freedom exceeds `value`."""
    if not value > 0:
        return 1.0
    return _incomplete_beta(below / (below + above * value), below / 2, above / 2)


def normal_tail(value: float) -> float:
    """Probability that a standard normal exceeds `value`, exact to the last digits far out too."""
    return 0.5 * math.erfc(value / math.sqrt(2))


def normal_beyond(tail: float) -> float:
    """The value that a standard normal exceeds with probability `tail`."""
    if tail <= 0:
        return math.inf
    return -NormalDist().inv_cdf(tail) if tail < 1 else -math.inf


def beta_quantile(tail: float, a: float, b: float) -> float:
    """The value that a beta variable stays below with probability `tail`.

    The upper one is `1 - beta_quantile(tail, b, a)`, without loss of digits.
    """
    start = _beta_start(tail, a, b)
    if min(a, b) > LARGE_SHAPE:
        return start
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)

    def density(x: float) -> float:
        return math.exp(scale + (a - 1) * math.log(x) + (b - 1) * math.log1p(-x))

    return _solve(lambda x: _incomplete_beta(x, a, b), density, tail, start, 1.0)


def gamma_tail(value: float, shape: float) -> float:
    """Probability that a gamma variable of this `shape` (scale 1) exceeds `value`."""
    if value <= 0:
        return 1.0
    if shape > LARGE_SHAPE:  # Wilson and Hilferty: the cube root is nearly normal
        return normal_tail(
            ((value / shape) ** (1 / 3) - 1 + 1 / (9 * shape)) * 3 * math.sqrt(shape)
        )
    return _gamma_above(value, shape) if value > shape + 1 else 1 - _gamma_below(value, shape)


def gamma_beyond(tail: float, shape: float) -> float:
    """The value that a gamma variable of this `shape` exceeds with probability `tail`."""
    start = _cube(normal_beyond(tail), shape)
    if shape > LARGE_SHAPE:
        return start
    top = max(1.0, 2 * start)
    while gamma_tail(top, shape) > tail:
        top *= 2
    return _solve(lambda x: -gamma_tail(x, shape), _gamma_density(shape), -tail, start, top)


def gamma_quantile(tail: float, shape: float) -> float:
    """The value that a gamma variable of this `shape` stays below with probability `tail`."""
    start = _cube(-normal_beyond(tail), shape)
    if shape > LARGE_SHAPE:
        return start

    def below(x: float) -> float:
        return 1 - _gamma_above(x, shape) if x > shape + 1 else _gamma_below(x, shape)

    top = shape + 1
    while below(top) < tail:
        top *= 2
    return _solve(below, _gamma_density(shape), tail, start, top)


def _gamma_density(shape: float) -> Callable[[float], float]:
    scale = math.lgamma(shape)
    return lambda x: math.exp((shape - 1) * math.log(x) - x - scale)


def _cube(z: float, shape: float) -> float:
    """Wilson and Hilferty's quantile of a gamma variable where a normal has `z`."""
    return shape * max(0.0, 1 - 1 / (9 * shape) + z / (3 * math.sqrt(shape))) ** 3


def _beta_start(tail: float, a: float, b: float) -> float:
    """A good guess; Abramowitz and Stegun 26.5.22 where neither shape is small."""
    z = normal_beyond(tail)
    if min(a, b) <= 1:
        factor = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
        return math.exp((math.log(tail * a) + factor) / a) if tail > 0 else 0.0
    right, left = 1 / (2 * b - 1), 1 / (2 * a - 1)
    middle, bend = 2 / (left + right), (z * z - 3) / 6
    power = z * math.sqrt(middle + bend) / middle if middle + bend > 0 else 0.0
    power -= (right - left) * (bend + 5 / 6 - 2 / (3 * middle))
    return a / (a + b * math.exp(min(2 * power, 700.0)))


def _solve(
    rises: Callable[[float], float],
    slope: Callable[[float], float],
    goal: float,
    start: float,
    top: float,
) -> float:
    """Where a function that rises on 0..`top` reaches `goal`: Newton's steps, or halving."""
    low, high = 0.0, top
    x = start if 0 < start < top else _middle(low, high)
    last = math.inf
    for _ in range(300):
        value = rises(x) - goal
        low, high = (x, high) if value < 0 else (low, x)
        if high < 1e-300:
            break
        steep = slope(x)
        step = value / steep if steep > 0 else math.inf
        if abs(step) <= 1e-13 * x or high - low <= 1e-13 * high:
            break
        slow, last = abs(step) > 0.5 * last, abs(step)
        x = x - step if low < x - step < high and not slow else _middle(low, high)
    return x


def _middle(low: float, high: float) -> float:
    """Halfway, in orders of magnitude where they differ by many."""
    if high > 4 * low:
        return math.sqrt(low) * math.sqrt(high) if low > 0 else high / 1024
    return (low + high) / 2


def _gamma_below(x: float, shape: float) -> float:
    """Regularised lower incomplete gamma function by its series, for x up to shape + 1."""
    if x <= 0:
        return 0.0
    term = total = 1 / shape
    n = shape
    while abs(term) > 1e-16 * abs(total):
        n += 1
        term *= x / n
        total += term
    return total * math.exp(shape * math.log(x) - x - math.lgamma(shape))


def _gamma_above(x: float, shape: float) -> float:
    """Regularised upper incomplete gamma function by its fraction, for x above shape + 1."""
    tiny = 1e-300
    b = x + 1 - shape
    c, d = 1 / tiny, 1 / b
    value = d
    for step in range(1, 10_000):
        term = -step * (step - shape)
        b += 2
        d = 1 / _away_from_zero(term * d + b, tiny)
        c = _away_from_zero(b + term / c, tiny)
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value * math.exp(shape * math.log(x) - x - math.lgamma(shape))


def _away_from_zero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Regularised incomplete beta function."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on one side only
        return 1 - _left_of_mode(1 - x, b, a)
    return _left_of_mode(x, a, b)


def _left_of_mode(x: float, a: float, b: float) -> float:
    """The same where x is at most (a + 1) / (a + b + 2), or beyond by rounding."""
    log_front = a * math.log(x) + b * math.log1p(-x) - math.log(a)
    log_front += math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(log_front) / _beta_fraction(x, a, b)


def _beta_fraction(x: float, a: float, b: float) -> float:
    """Continued fraction of the incomplete beta function, evaluated forwards (Lentz)."""
    tiny = 1e-300
    value, c, d = 1.0, 1.0, 0.0
    for step in range(1, 2000):
        m = step // 2
        if step % 2 == 1:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 + term * d
        d = 1 / (d if abs(d) > tiny else tiny)
        c = 1 + term / c
        c = c if abs(c) > tiny else tiny
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value
