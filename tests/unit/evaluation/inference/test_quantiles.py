"""Student's t, beta and gamma agree with SciPy's, which only the tests need."""

import math

import numpy as np
import pytest
from scipy import special, stats

from etips.evaluation.inference import quantiles
from etips.evaluation.inference.quantiles import (
    LARGE_SHAPE,
    beta_quantile,
    fisher_tail,
    gamma_beyond,
    gamma_quantile,
    gamma_tail,
    normal_beyond,
    normal_tail,
    student_cdf,
    student_quantile,
)

FREEDOMS = (1, 2, 3, 4, 7.5, 10, 29, 30, 120, 999, 20_943, 1e6)


# values of R's qt, which agree with SciPy
@pytest.mark.parametrize(
    ("probability", "freedom", "expected"),
    [
        (0.975, 1, 12.706204736174694),
        (0.975, 9, 2.262157162798205),
        (0.95, 3.5, 2.2224334936496004),
        (0.995, 199, 2.600760216058516),
        (0.975, 999, 1.9623414611334493),
        (0.5, 4, 0.0),
    ],
)
def test_quantiles_of_student(probability, freedom, expected):
    assert student_quantile(probability, freedom) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert student_quantile(1 - probability, freedom) == pytest.approx(
        -expected, rel=1e-9, abs=1e-12
    )
    assert student_cdf(expected, freedom) == pytest.approx(probability, abs=1e-10)


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_the_distribution_function_is_scipys(freedom):
    for power in np.arange(-6, 4.1, 0.25):
        # Close to zero the share that goes into the beta function is 1 to many digits.
        tolerance = {"abs": 1e-5} if power < -2 else {"rel": 1e-8, "abs": 1e-15}
        for value in (10.0**power, -(10.0**power)):
            expected = special.stdtr(freedom, value)
            assert student_cdf(value, freedom) == pytest.approx(expected, **tolerance)
    assert student_cdf(0.0, freedom) == 0.5
    assert (student_cdf(math.inf, freedom), student_cdf(-math.inf, freedom)) == (1, 0)


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_the_quantiles_are_scipys_and_symmetric(freedom):
    for probability in (0.5, 0.6, 0.75, 0.9, 0.95, 0.975, 0.995, 0.9995):
        expected = special.stdtrit(freedom, probability)
        assert student_quantile(probability, freedom) == pytest.approx(expected, rel=1e-8, abs=1e-9)
        assert student_quantile(1 - probability, freedom) == pytest.approx(
            -expected, rel=1e-8, abs=1e-9
        )


SHARES = (1e-9, 1e-4, 0.01, 0.03125, 0.1, 0.25, 0.5, 0.75, 0.9, 0.96875, 0.99, 1 - 1e-6)
SIZES = (0.5, 1, 1.5, 2, 5, 17.3, 61.00000000000002, 250, 4_000, 20_000.5)


def test_the_incomplete_beta_function_is_scipys_over_a_wide_grid():
    for a in SIZES:
        for b in SIZES:
            edge = (a + 1) / (a + b + 2)  # the sides that the fraction is evaluated from meet here
            near = [np.nextafter(edge, side) for side in (0, 1)]
            for x in (*SHARES, edge, *near, 1 - edge):
                assert quantiles._incomplete_beta(x, a, b) == pytest.approx(
                    special.betainc(a, b, x), rel=1e-8, abs=1e-14
                ), (x, a, b)


def test_rounding_at_the_edge_of_both_sides_does_not_send_it_round_in_circles():
    """1/32 lies beyond the edge of (1, b) and 31/32 beyond that of (b, 1), by rounding alone."""
    x, a, b = 0.03125, 1.0, 61.00000000000002
    assert x > (a + 1) / (a + b + 2)
    assert 1 - x > (b + 1) / (a + b + 2)
    assert quantiles._incomplete_beta(x, a, b) == pytest.approx(special.betainc(a, b, x), rel=1e-12)


TAILS = (1e-12, 1e-4, 0.005, 0.025, 0.2, 0.5, 0.9)


@pytest.mark.parametrize("tail", TAILS)
def test_quantiles_of_beta_are_scipys(tail):
    for a in (0.25, 1, 1.7, 33.3, 5000):
        for b in (0.3, 1, 4.4, 3000, 1e6):
            expected = stats.beta.ppf(tail, a, b)
            assert beta_quantile(tail, a, b) == pytest.approx(expected, rel=1e-6), (a, b)


@pytest.mark.parametrize("tail", TAILS)
def test_quantiles_of_gamma_are_scipys(tail):
    for shape in (0.25, 0.75, 1, 7, 50, 999, 9_999, 2e4, 1e6):
        exact = shape <= LARGE_SHAPE
        tolerance = {"rel": 1e-8} if exact else {"abs": 1e-3 * shape**0.5}
        assert gamma_beyond(tail, shape) == pytest.approx(stats.gamma.isf(tail, shape), **tolerance)
        assert gamma_quantile(tail, shape) == pytest.approx(
            stats.gamma.ppf(tail, shape), **tolerance
        )
        assert gamma_tail(gamma_beyond(tail, shape), shape) == pytest.approx(tail, rel=1e-6)


def test_tails_of_the_normal_far_out():
    assert normal_tail(12.7) == pytest.approx(stats.norm.sf(12.7), rel=1e-9)
    assert normal_beyond(1e-37) == pytest.approx(stats.norm.isf(1e-37))
    assert (normal_beyond(0.0), normal_beyond(1.0)) == (math.inf, -math.inf)
    assert gamma_tail(-1.0, 2.0) == 1


def test_fishers_tail_is_students_squared_and_a_chi_square_in_the_limit():
    assert fisher_tail(2.5**2, 1, 12) == pytest.approx(2 * student_cdf(-2.5, 12))
    assert fisher_tail(3.0, 4, 1e7) == pytest.approx(gamma_tail(6.0, 2.0), rel=1e-4)
    assert fisher_tail(0.0, 3, 5) == 1.0
