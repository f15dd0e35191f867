"""What held-out decisions say of a policy, as by hand."""

import numpy as np
import pytest

from etips.learn.fitting.candidates import (
    FACTOR_RANGE,
    LEAST_SIZE,
    Candidate,
    blank,
    estimate_candidate,
    judge,
)
from etips.learn.fitting.risk_totals import Weighing


def test_a_candidate_is_estimated_as_by_hand():
    chosen, propensity = np.array([0.5, 0.0, 1.0, 0.5]), np.array([0.5, 0.5, 0.5, 0.25])
    loss, stay = np.array([1.0, 1.0, 0.0, 1.0]), np.array([0, 0, 1, 2])
    found = estimate_candidate(chosen, propensity, loss, stay, 0.3, None)  # weights 1, 0, 2, 2
    assert found.risk == pytest.approx(3 / 5)
    assert found.matching_factor == pytest.approx(5 / 4)
    assert found.effective_size == pytest.approx(25 / 9)
    assert (found.translation, found.action, found.chosen) == (0.3, None, False)


def test_a_candidate_that_matches_no_decision_is_worst_of_all():
    found = estimate_candidate(np.zeros(3), np.full(3, 0.5), np.ones(3), np.arange(3), 0.0, None)
    assert found.risk == np.inf
    assert found.effective_size == 0
    assert not found.sound


def test_vanishing_weights_keep_their_effective_size():
    loss, stay = np.array([0.0, 1.0, 1.0]), np.arange(3)
    found = estimate_candidate(np.full(3, 1e-200), np.full(3, 0.5), loss, stay, 0.0, None)
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
    assert Candidate(0.5, None, 0.4, 0.1, factor, size).sound is sound


def test_some_that_are_judged_again_stand_as_if_all_were():
    rng = np.random.default_rng(0)
    weighing = Weighing(rng.uniform(0.2, 1, 40), rng.random(40), np.arange(40) // 2)
    old, new = rng.random((4, 40)), rng.random((2, 40))
    names = [blank(place, None) for place in range(4)]
    some = judge([names[3], names[1], names[0]], weighing.totals([*new, old[0]]))
    found = judge(names, weighing.totals(list(old))).with_others([3, 1], some)
    all_again = judge(names, weighing.totals([old[0], new[1], old[2], new[0]]))
    assert found.candidates == all_again.candidates
    for place in range(4):
        one, other = found.totals.evidence(place), all_again.totals.evidence(place)
        assert (one.value, one.std_error) == (other.value, other.std_error)
        assert found.totals.effective_size(place) == all_again.totals.effective_size(place)
