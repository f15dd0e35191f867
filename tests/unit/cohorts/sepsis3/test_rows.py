"""Sections 7 to 12 put together: events of a stay to four-hour rows."""

from dataclasses import replace

import numpy as np
import pytest
from happenings import HOUR, T, events, stay

from etips.cohorts.sepsis3.rows import step_rows
from etips.cohorts.sepsis3.rules import CLEAN, PAPER
from etips.cohorts.sepsis3.variables import DELAY, PASS_1_COLUMNS


def hearts(*hours):
    return events(measured=[("HR", hour, 80.0 + hour) for hour in hours])


def test_rows_begin_at_the_first_measurement_of_the_window_or_at_its_edge_in_clean():
    rows = step_rows(hearts(-60, -50, -45), stay(), PAPER, second_pass=False)
    assert tuple(rows.columns[:-1]) == PASS_1_COLUMNS
    assert rows["charttime"].to_list() == [T - 50 * HOUR, T - 46 * HOUR]
    clean = step_rows(hearts(-25, -23, 1), stay(), CLEAN, second_pass=False)
    assert clean["charttime"].to_list() == [T - 24 * HOUR, T]
    assert clean["bloc"].to_list() == [1, 7]


def test_the_second_pass_looks_later():
    one, two = (
        step_rows(hearts(-50, 50), stay(), PAPER, second_pass=second) for second in (False, True)
    )
    assert one["HR"].to_list() == [30.0]
    assert two["HR"].to_list() == [130.0]


def test_only_measurements_in_the_icu_open_a_step_in_clean():
    icu = stay(icu_in=T)
    rules = replace(PAPER, open_steps_in_icu_only=True)
    assert step_rows(hearts(-5, 1), icu, PAPER, second_pass=False).height == 2
    assert step_rows(hearts(-5, 1), icu, rules, second_pass=False)["bloc"].to_list() == [2]


def test_volumes_doses_and_the_delay_stand_beside_the_means():
    happened = events(
        measured=[("HR", 0, 80.0), ("HR", 1, 90.0)],
        boluses=[(1, 500.0)],
        urine=[(2, 80.0)],
        drugs=[("norepinephrine", 1, 2, 0.2)],
    )
    (row,) = step_rows(happened, stay(), PAPER, second_pass=False).iter_rows(named=True)
    assert (row["HR"], row["input_total"], row["output_total"]) == (85, 500, 80)
    assert (row["cumulated_balance"], row["max_dose_vaso"]) == (420, 0.2)
    assert row[DELAY] == pytest.approx(199)
    assert np.isnan(row["Sodium"])
