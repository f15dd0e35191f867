"""Rules on volumes look back four hours, whatever the length of a step."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etips.cohorts.sepsis3.exclusions import too_much_fluid, too_much_urine
from etips.cohorts.sepsis3.recent import recent_hours, recent_sum
from etips.cohorts.sepsis3.rules import PAPER
from etips.cohorts.sepsis3.scores import renal_part

HOURLY = replace(PAPER, step_hours=1)


def rows(stay, bloc, x, name="x"):
    return pl.DataFrame({"icustayid": stay, "bloc": bloc, name: x})


def test_at_four_hours_a_step_is_its_own_last_four_hours():
    frame = rows([1, 1, 2], [1, 2, 1], [5.0, 6.0, 7.0])
    assert recent_sum(frame, "x", PAPER).to_list() == [5.0, 6.0, 7.0]
    assert recent_hours(frame, PAPER).to_list() == [1.0, 1.0, 1.0]


def test_hours_of_another_stay_or_beyond_a_gap_do_not_count():
    frame = rows([1] * 6 + [2], [1, 2, 3, 4, 5, 9, 1], [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
    assert recent_sum(frame, "x", HOURLY).to_list() == [1, 3, 7, 15, 30, 32, 64]
    assert recent_hours(frame, HOURLY).to_list() == [0.25, 0.5, 0.75, 1, 1, 0.25, 0.25]


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 12)), min_size=1, unique=True),
    st.sampled_from([1, 2, 4]),
)
def test_it_is_the_sum_that_a_plain_loop_finds(keys, hours):
    rules, keys = replace(PAPER, step_hours=hours), sorted(keys)
    x = np.arange(1.0, len(keys) + 1)
    frame = rows([k[0] for k in keys], [k[1] for k in keys], x)
    wanted = [
        sum(
            value
            for (other, block), value in zip(keys, x, strict=True)
            if other == stay and own - 4 // hours < block <= own
        )
        for stay, own in keys
    ]
    assert recent_sum(frame, "x", rules).to_list() == wanted


@pytest.mark.parametrize(
    ("rule", "name", "limit"),
    [(too_much_urine, "output_4hourly", 12_000), (too_much_fluid, "input_4hourly", 10_000)],
)
def test_a_stay_is_left_out_for_what_four_hours_hold(rule, name, limit):
    hourly = rows([1] * 4 + [2] * 5, [1, 2, 3, 4, 1, 2, 3, 4, 9], [0.3 * limit] * 9, name)
    assert sorted(rule(hourly, HOURLY).to_list()) == [1, 2]
    spread = rows([1] * 4, [1, 2, 7, 8], [0.3 * limit] * 4, name)
    assert rule(spread, HOURLY).to_list() == []
    assert rule(rows([1], [1], [limit + 1.0], name), PAPER).to_list() == [1]


def test_urine_of_an_hour_is_held_against_an_hour_s_share_of_the_limit():
    creatinine, urine = np.array([0.5, 0.5, 0.5]), np.array([20.0, 22.0, 8.0])
    assert renal_part(creatinine, urine, share=0.25).tolist() == [3, 0, 4]
    assert renal_part(creatinine, urine).tolist() == [4, 4, 4]
