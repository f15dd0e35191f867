"""The decisions of a stay in order, and what each adds to its outcome."""

import numpy as np
import pytest

from etips.errors import DataError, SettingError
from etips.evaluation.whole_stay_course import Course

STAY, LOSS = [7, 7, 7, 2, 5, 5], [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]


def test_a_sum_charges_every_decision_and_the_rest_of_the_stay_is_to_go():
    course = Course.of(STAY, LOSS, "sum")
    assert course.n_stays == 3
    assert course.number.tolist() == [0, 1, 2, 0, 0, 1]
    assert course.lengths.tolist() == [3, 1, 2]
    assert course.ends.tolist() == [False, False, True, True, False, True]
    assert course.to_go.tolist() == [7, 6, 4, 8, 48, 32]
    assert course.outcomes.tolist() == [7, 8, 48]


def test_the_last_loss_is_charged_to_the_last_decision_alone():
    course = Course.of(STAY, LOSS, "last")
    assert course.charge.tolist() == [0, 0, 4, 8, 0, 32]
    assert course.to_go.tolist() == [4, 4, 4, 8, 32, 32]
    assert course.outcomes.tolist() == [4, 8, 32]


@pytest.mark.parametrize(
    ("loss", "outcome", "share"),
    [
        ([0, 1, 1], "last", True),
        ([0, 1, 1], "sum", False),
        ([0, 0, 1], "sum", True),
        ([0, 0.4, 0.6], "sum", True),
        ([-0.1, 0, 0.5], "sum", False),
    ],
)
def test_outcomes_within_zero_and_one_are_shares(loss, outcome, share):
    assert Course.of([0, 0, 0], loss, outcome).is_share is share


def test_a_stay_in_two_pieces_is_refused_without_its_name():
    with pytest.raises(DataError, match="one after the other; 1 of 3") as told:
        Course.of([901, 902, 901], np.zeros(3), "sum")
    assert "901" not in str(told.value)


def test_an_unknown_outcome_is_refused():
    with pytest.raises(SettingError, match="outcome: must be sum or last"):
        Course.of([0], [1.0], "mean")
