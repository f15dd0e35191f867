"""What held-out decisions say of a policy, as by hand."""

import numpy as np
import pytest

from etips.learn.fitting.candidates import (
    FACTOR_RANGE,
    LEAST_SIZE,
    Candidate,
    estimate_candidate,
)


def test_a_candidate_is_estimated_as_by_hand():
    chosen, propensity = np.array([0.5, 0.0, 1.0, 0.5]), np.array([0.5, 0.5, 0.5, 0.25])
    loss, stay = np.array([1.0, 1.0, 0.0, 1.0]), np.array([0, 0, 1, 2])
    found = estimate_candidate(chosen, propensity, loss, stay)  # weights 1, 0, 2, 2
    assert found.risk == pytest.approx(3 / 5)
    assert found.matching_factor == pytest.approx(5 / 4)
    assert found.effective_size == pytest.approx(25 / 9)
    assert not found.chosen


def test_a_candidate_that_matches_no_decision_is_worst_of_all():
    found = estimate_candidate(np.zeros(3), np.full(3, 0.5), np.ones(3), np.arange(3))
    assert found.risk == np.inf
    assert found.effective_size == 0
    assert not found.sound


def test_vanishing_weights_keep_their_effective_size():
    loss, stay = np.array([0.0, 1.0, 1.0]), np.arange(3)
    found = estimate_candidate(np.full(3, 1e-200), np.full(3, 0.5), loss, stay)
    assert found.effective_size == pytest.approx(3)
    assert found.risk == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("factor", "size", "sound"),
    [
        (1.0, LEAST_SIZE, True),
        (FACTOR_RANGE[0], 100.0, True),
        (FACTOR_RANGE[1], 100.0, True),
        (FACTOR_RANGE[0] - 0.01, 100.0, False),
        (FACTOR_RANGE[1] + 0.01, 100.0, False),
        (1.0, LEAST_SIZE - 1, False),
        (np.nan, 100.0, False),
    ],
)
def test_a_candidate_is_sound_where_weights_average_one_and_rest_on_enough(factor, size, sound):
    assert Candidate(0.5, 0.4, 0.1, factor, size).sound is sound
