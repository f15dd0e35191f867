"""Section 8: one row per timestamp, and what happens to several values for one cell."""

import itertools

import numpy as np
import polars as pl
import pytest

from etips.cohorts.sepsis3.events import CONCEPT, Events
from etips.cohorts.sepsis3.grid import drop_outliers, make_grid
from etips.cohorts.sepsis3.rules import CLEAN, PAPER

WINDOW = pl.DataFrame({"stay": [1, 2], "opens": [0, 0], "closes": [100, 100]})


MEASURED = {
    "stay": pl.Int64, "concept": CONCEPT, "t": pl.Int64, "value": pl.Float64, "priority": pl.Int32,
}  # fmt: skip
NOTHING = pl.DataFrame(schema={"stay": pl.Int64, "start": pl.Int64, "end": pl.Int64})


def grid(*rows, rules=PAPER, ventilation=NOTHING):
    """A grid of measurements (stay, concept, t, value) and a priority, 0 if left out."""
    measured = [(*row, 0) if len(row) == 4 else row for row in rows]
    happened = Events(
        measurements=pl.DataFrame(measured, schema=MEASURED, orient="row"),
        ventilation=ventilation,
        **dict.fromkeys(
            ("vasopressors", "boluses", "infusions", "fluid_before", "urine", "urine_before"),
            pl.DataFrame(),
        ),
    )
    return make_grid(happened, WINDOW, rules)


def test_one_row_per_timestamp_within_the_window_both_ends_included():
    made = grid(*((1, "HR", t, 80.0) for t in (-1, 0, 50, 100, 101)))
    assert made.t.tolist() == [0, 50, 100]


def test_stays_outside_the_cohort_are_left_out():
    assert grid((1, "HR", 5, 80.0), (9, "HR", 5, 80.0)).stay.tolist() == [1]


def test_of_several_values_the_last_by_priority_then_value_wins():
    made = grid((1, "HR", 5, 90.0, 2), (1, "HR", 5, 99.0, 1), (1, "HR", 5, 85.0, 2))
    assert made["HR"].tolist() == [90]


def test_clean_takes_the_median_of_distinct_values():
    rows = [(1, "HR", 5, value) for value in (70.0, 90.0, 90.0, 80.0)]
    assert grid(*rows, rules=CLEAN)["HR"].tolist() == [80]


def test_a_missing_value_makes_a_row():
    made = grid((1, "HR", 5, None))
    assert made.t.tolist() == [5]
    assert np.isnan(made["HR"][0])


@pytest.mark.parametrize("rules", [PAPER, CLEAN], ids=["paper", "clean"])
def test_any_measurement_that_says_ventilated_makes_the_timestamp_so(rules):
    rows = [(1, "mechvent", 5, 1.0), (1, "mechvent", 5, 0.0), (1, "mechvent", 6, 0.0)]
    assert grid(*rows, rules=rules)["mechvent"].tolist() == [1, 0]


def test_a_ventilation_period_marks_the_timestamps_inside_it():
    periods = pl.DataFrame({"stay": [1], "start": [10], "end": [20]})
    rows = [(stay, "HR", t, 80.0) for stay in (1, 2) for t in (9, 10, 15, 20, 21)]
    made = grid(*rows, ventilation=periods)
    np.testing.assert_array_equal(made["mechvent"][made.stay == 1], [np.nan, 1, 1, 1, np.nan])
    assert np.isnan(made["mechvent"][made.stay == 2]).all()


BY_SUPPORT = (1, 7, 6, 5, 9, 10, 4, 3, 2, 0, 8)


def test_of_two_devices_at_one_time_the_one_of_higher_support_counts():
    for stronger, weaker in itertools.combinations(BY_SUPPORT, 2):
        for devices in ((stronger, weaker), (weaker, stronger)):
            rows = [(1, "Interface", 5, float(code), item) for item, code in enumerate(devices)]
            made = grid(*rows, (1, "Interface", 6, 2.0), rules=CLEAN)
            assert made["Interface"].tolist() == [stronger, 2]


def test_a_device_goes_before_an_unknown_one_and_other_columns_keep_their_rule():
    rows = [(1, "Interface", 5, None), (1, "Interface", 5, 0.0), (1, "HR", 5, 80.0)]
    rows += [(1, "HR", 5, 90.0), (1, "Interface", 6, None)]
    made = grid(*rows, rules=CLEAN)
    np.testing.assert_array_equal(made["Interface"], [0, np.nan])
    assert made["HR"][0] == 85
    assert grid(*rows, rules=PAPER)["HR"][0] == 90


@pytest.mark.parametrize("rules", [PAPER, CLEAN], ids=["paper", "clean"])
def test_the_order_of_the_rows_does_not_matter(rules):
    rng = np.random.default_rng(0)
    rows = [
        (int(s), "HR", int(t), float(v), int(i))
        for s, i, t, v in zip(
            rng.integers(1, 3, 200), rng.choice([1, 2], 200),
            rng.integers(0, 20, 200), rng.normal(size=200), strict=True,
        )
    ]  # fmt: skip
    one = grid(*rows, rules=rules)
    other = grid(*(rows[i] for i in rng.permutation(200)), rules=rules)
    np.testing.assert_array_equal(one.values, other.values)


@pytest.mark.parametrize(
    ("concept", "value", "kept"),
    [("HR", 250.0, True), ("HR", 250.5, False), ("Sodium", 95.0, True), ("Sodium", 94.0, False)],
)
def test_values_strictly_outside_the_plausible_range_are_removed(concept, value, kept):
    made = grid((1, concept, 5, value))
    drop_outliers(made, PAPER, second_pass=False)
    assert np.isnan(made[concept][0]) != kept
