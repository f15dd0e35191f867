"""Section 12: timestamps to four-hour steps."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from etips.cohorts.sepsis3.grid import INDEX, Grid, first_of_run
from etips.cohorts.sepsis3.rules import CLEAN, PAPER
from etips.cohorts.sepsis3.steps import make_steps, steps_of
from etips.cohorts.sepsis3.variables import GRID, HOUR, STEP_SECONDS

T = 5_000_000_000


def heart_rates(hours, values, stays=None, config=PAPER, **options):
    """Steps of stays whose heart rate is charted at given hours."""
    t = T + np.round(np.array(hours) * HOUR).astype(int)
    stay = np.ones(t.size, int) if stays is None else np.array(stays)
    grid = np.full((len(GRID), t.size), np.nan)
    grid[INDEX["HR"]] = values
    return make_steps(Grid(stay, t, first_of_run(stay), grid), config, **options)


def test_a_timestamp_on_an_edge_counts_in_both_steps_and_in_one_if_half_open():
    both = heart_rates([0, 4, 5], [60, 80, 100])
    np.testing.assert_array_equal(both.means[INDEX["HR"]], [70, 90])
    one = heart_rates([0, 4, 5], [60, 80, 100], config=CLEAN)
    np.testing.assert_array_equal(one.means[INDEX["HR"]], [60, 90])


def test_there_are_twenty_steps_at_most():
    steps = heart_rates(np.arange(0, 100, 2), 80)
    assert steps.number.tolist() == list(range(20))


def test_the_right_edge_of_the_last_step_belongs_to_it():
    steps = heart_rates([0, 80], [60, 100])
    assert steps.number.tolist() == [0, 19]


def test_a_nine_hour_hole_leaves_a_gap_in_the_block_numbers():
    assert heart_rates([0, 1, 3.5, 12.5, 13], 80).number.tolist() == [0, 3]


def test_missing_values_are_ignored_by_the_mean_and_an_empty_step_stays_missing():
    steps = heart_rates([0, 1, 2, 5], [60, np.nan, 90, np.nan])
    np.testing.assert_array_equal(steps.means[INDEX["HR"]], [75, np.nan])


def test_stays_do_not_mix_and_each_begins_at_its_own_first_record():
    steps = heart_rates([0, 1, 2, 3], [60, 62, 90, 92], stays=[1, 1, 2, 2])
    np.testing.assert_array_equal(steps.means[INDEX["HR"]], [61, 91])
    assert (steps.beg - T).tolist() == [0, 2 * HOUR]
    assert (steps.last - T).tolist() == [HOUR, 3 * HOUR]


def test_steps_may_be_anchored_elsewhere_and_opened_by_some_rows_only():
    anchor = np.full(3, T - 4 * HOUR)
    opening = np.array([False, True, True])
    steps = heart_rates([-3, 1, 2], [60, 80, 90], config=CLEAN, anchor=anchor, opening=opening)
    assert steps.number.tolist() == [1]
    assert steps.t0.tolist() == [T]
    np.testing.assert_array_equal(steps.means[INDEX["HR"]], [85])


def test_a_stay_without_an_opened_step_vanishes():
    steps = heart_rates([0, 1], [60, 80], stays=[1, 2], opening=np.array([False, True]))
    assert steps.stays.tolist() == [2]
    assert steps.owner.tolist() == [0]


@given(st.lists(st.integers(-STEP_SECONDS, 25 * STEP_SECONDS), max_size=30), st.booleans())
def test_steps_of_agrees_with_the_definition(offsets, half_open):
    expected = [
        (index, j)
        for index, offset in enumerate(offsets)
        for j in range(20)
        if j * STEP_SECONDS <= offset < (j + 1) * STEP_SECONDS + (not half_open)
    ]
    index, number = steps_of(np.array(offsets, int), n_steps=20, half_open=half_open)
    assert sorted(zip(index.tolist(), number.tolist(), strict=True)) == expected
