"""What an estimate has not seen."""

import numpy as np
import pytest

from etips.evaluation import difference, logged_risk, snips
from etips.evaluation.inference.exposure import (
    FEW,
    deviations,
    effective_number,
    expose,
    scarcity_of,
)


def test_the_effective_number_counts_clusters_of_equal_effect():
    assert effective_number(np.array([0.0, 2.0, -2.0, 2.0, 0.0])) == pytest.approx(3)
    assert effective_number(np.zeros(5)) == 0
    assert effective_number(np.array([1e-200, 1e-200])) == pytest.approx(2)
    assert 1 < effective_number(np.array([10.0, 1.0, 1.0])) < 3


def test_scarcity_falls_from_one_to_zero():
    assert scarcity_of(np.zeros(9)) == 1
    assert scarcity_of(np.ones(int(FEW))) == pytest.approx(0.5)
    assert scarcity_of(np.ones(1000)) < 1e-4


def test_equal_losses_have_no_deviations_in_spite_of_rounding():
    weight = np.random.default_rng(0).random(50)
    assert not deviations(0.1 * weight, weight).any()


def test_exposure_by_hand():
    loss, size = np.array([2.0, 0.0, 0.0, 1.0]), np.array([2.0, 1.0, 2.0, 1.0])
    weight = np.array([1.0, 3.0, 0.0, 0.0])
    found = expose(loss, size, np.array([1.0, 0, 0, 0]), weight, (0.0, 1.0))
    assert found.share == pytest.approx([0.25, 0.75, 0, 0])
    assert found.rate == pytest.approx(0.0625 + 0.5625)
    assert (found.above, found.below) == pytest.approx((0.75, 0.25))
    assert (found.second, found.third) == pytest.approx((0.25, 0))
    assert expose(loss, size, 0 * weight, 0 * weight, None) is None


def test_losses_without_bounds_reach_as_far_as_the_logged_ones_on_their_longer_side():
    loss, one = np.array([0.0] * 99 + [10.0]), np.ones(100)
    found = expose(loss, one, loss, one, None)
    assert found.above == pytest.approx(9.9, rel=0.01)
    assert found.below == 0
    mirrored = expose(-loss, one, -loss, one, None)
    assert (mirrored.above, mirrored.below) == (0, found.above)


def test_a_policy_that_does_as_was_done_is_exposed_to_nothing():
    loss = (np.arange(30) % 7 == 0).astype(float)
    same = difference(snips(loss, np.ones(30), np.arange(30)), logged_risk(loss, np.arange(30)))
    assert not same.evidence.exposure.share.any()
    assert same.low == same.high == same.difference == 0
