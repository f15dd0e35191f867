"""What an estimate has not seen."""

import numpy as np
import pytest

from etips.evaluation import difference, logged_risk, snips
from etips.evaluation.inference.checks import code_clusters
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
    clusters = code_clusters([0, 0, 1, 2, 2, 3], n=6)
    loss = np.array([1.0, 1, 0, 0, 0, 1])
    found = expose(loss, np.array([0.5, 0.5, 3, 0, 0, 0]), None, clusters, (0.0, 1.0))
    assert found.clusters.share == pytest.approx([0.25, 0.75, 0, 0])
    assert found.rate == found.clusters.squares == pytest.approx(0.0625 + 0.5625)
    assert (found.above, found.below) == pytest.approx((0.75, 0.25))
    assert (found.clusters.second, found.clusters.third) == pytest.approx((0.25, 0))
    assert expose(loss, 0 * loss, None, clusters, None) is None


def test_a_decision_that_counts_twice_is_two_decisions():
    clusters = code_clusters([0, 0, 1, 2], n=4)
    loss, weight = np.array([1.0, 1, 0, 3]), np.array([2.0, 2, 1, 4])
    twice = expose(loss, weight, None, clusters, None)
    counted = expose(
        loss[1:], weight[1:], np.array([2.0, 1, 1]), code_clusters([0, 1, 2], n=3), None
    )
    assert counted.clusters.share == pytest.approx(twice.clusters.share)
    assert counted.scarcity == pytest.approx(twice.scarcity)
    assert counted.above == pytest.approx(twice.above)


def test_losses_without_bounds_reach_as_far_as_the_logged_ones_on_their_longer_side():
    loss, clusters = np.array([0.0] * 99 + [10.0]), code_clusters(np.arange(100), n=100)
    found = expose(loss, np.ones(100), None, clusters, None)
    assert found.above == pytest.approx(9.9, rel=0.01)
    assert found.below == 0
    mirrored = expose(-loss, np.ones(100), None, clusters, None)
    assert (mirrored.above, mirrored.below) == (0, found.above)


def test_a_policy_that_does_as_was_done_is_exposed_to_nothing():
    loss = (np.arange(30) % 7 == 0).astype(float)
    same = difference(snips(loss, np.ones(30), np.arange(30)), logged_risk(loss, np.arange(30)))
    assert not same.evidence.exposure.clusters.share.any()
    assert same.low == same.high == same.difference == 0


def test_a_policy_far_better_than_the_clinicians_is_not_given_their_spread():
    matched = np.arange(4000) % 4 == 0
    loss = np.where(matched, 0.0, (np.arange(4000) % 3 == 0).astype(float))
    clusters = code_clusters(np.arange(4000), n=4000)
    found = expose(loss, 4.0 * matched, None, clusters, (0.0, 1.0))
    assert found.clusters.second == pytest.approx(0.004, rel=0.01)  # none of 1000: at most 4
    assert found.clusters.third == pytest.approx(0.004, rel=0.02)
    assert expose(loss, np.ones(4000), None, clusters, (0.0, 1.0)).clusters.second > 0.15
    worse = expose(1 - loss, 4.0 * matched, None, clusters, (0.0, 1.0)).clusters
    assert (worse.second, worse.third) == pytest.approx(
        (found.clusters.second, -found.clusters.third)
    )
