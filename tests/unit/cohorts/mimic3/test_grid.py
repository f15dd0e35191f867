"""Section 8: one row per timestamp, and what happens to several values for one cell."""

import numpy as np
import polars as pl
import pytest

from etips.cohorts.mimic3 import concepts
from etips.cohorts.mimic3.config import CLEAN, PAPER
from etips.cohorts.mimic3.extract import NO_PROCEDURES, Block
from etips.cohorts.mimic3.grid import make_grid

HEART, OTHER_HEART = 211, 220045
POTASSIUM_CHART, POTASSIUM_METAVISION, POTASSIUM_LAB = 829, 227442, 50971
CHART = {
    "icustay_id": pl.Int64, "itemid": pl.Int32, "t": pl.Int64, "number": pl.Float64,
    "device": pl.Float64, "has_text": pl.Boolean, "ventilated": pl.Boolean, "extubated": pl.Boolean,
}  # fmt: skip
LABS = {name: CHART[name] for name in ("icustay_id", "itemid", "t", "number")}
WINDOW = pl.DataFrame({"icustay_id": [1, 2], "opens": [0, 0], "closes": [100, 100]})


def grid(chart=(), labs=(), config=PAPER, procedures=NO_PROCEDURES):
    """A grid of rows (stay, item, t, number) and, in the chart, ventilated."""
    rows = [(*row[:4], None, True, row[4] if len(row) > 4 else None, False) for row in chart]
    block = Block(
        chart=pl.DataFrame(rows, schema=CHART, orient="row"),
        labs=pl.DataFrame(list(labs), schema=LABS, orient="row"),
        infusions_mv=pl.DataFrame(),
        infusions_cv=pl.DataFrame(),
        urine=pl.DataFrame(),
        procedures=procedures,
    )
    return make_grid(block, WINDOW, concepts.select(config), config)


def test_one_row_per_timestamp_within_the_window_both_ends_included():
    made = grid([(1, HEART, t, 80.0) for t in (-1, 0, 50, 100, 101)])
    assert made.t.tolist() == [0, 50, 100]


def test_stays_outside_the_cohort_are_left_out():
    assert grid([(1, HEART, 5, 80.0), (9, HEART, 5, 80.0)]).stay.tolist() == [1]


def test_of_several_values_the_last_by_item_then_number_wins():
    made = grid([(1, OTHER_HEART, 5, 90.0), (1, HEART, 5, 99.0), (1, OTHER_HEART, 5, 85.0)])
    assert made["HR"].tolist() == [90]


def test_laboratory_results_win_over_charted_labs():
    for item in (POTASSIUM_CHART, POTASSIUM_METAVISION):  # one number below the lab's, one above
        made = grid([(1, item, 5, 9.0)], [(1, POTASSIUM_LAB, 5, 4.0)])
        assert made["Potassium"].tolist() == [4]


def test_clean_takes_the_median_of_distinct_values():
    rows = [(1, HEART, 5, value) for value in (70.0, 90.0, 90.0, 80.0)]
    assert grid(rows, config=CLEAN)["HR"].tolist() == [80]


def test_a_text_without_a_number_makes_a_row_and_a_missing_value():
    made = grid([(1, HEART, 5, None)])
    assert made.t.tolist() == [5]
    assert np.isnan(made["HR"][0])


def test_any_row_that_says_ventilated_makes_the_timestamp_so():
    made = grid([(1, 720, 5, None, True), (1, 467, 5, 2.0, False), (1, 467, 6, 2.0, False)])
    assert made["mechvent"].tolist() == [1, 0]


def test_a_ventilation_period_marks_the_timestamps_inside_it_in_clean():
    periods = pl.DataFrame(
        {"icustay_id": [1, 1], "start": [10, 30], "end": [20, 30], "itemid": [225792, 227194]},
        schema_overrides={"itemid": pl.Int32},
    )
    chart = [(stay, HEART, t, 80.0) for stay in (1, 2) for t in (9, 10, 15, 20, 21)]
    made = grid(chart, config=CLEAN, procedures=periods)
    np.testing.assert_array_equal(
        made["mechvent"][made.stay == 1], [np.nan, 1, 1, 1, *[np.nan] * 2]
    )
    assert np.isnan(made["mechvent"][made.stay == 2]).all()
    assert made["extubated"][(made.stay == 1) & (made.t == 30)].tolist() == [1]


@pytest.mark.parametrize("config", [PAPER, CLEAN], ids=lambda config: config.name)
def test_the_order_of_the_rows_does_not_matter(config):
    rng = np.random.default_rng(0)
    rows = [
        (int(s), int(i), int(t), float(v))
        for s, i, t, v in zip(
            rng.integers(1, 3, 200), rng.choice([HEART, OTHER_HEART], 200),
            rng.integers(0, 20, 200), rng.normal(size=200), strict=True,
        )
    ]  # fmt: skip
    one = grid(rows, config=config)
    other = grid([rows[i] for i in rng.permutation(200)], config=config)
    np.testing.assert_array_equal(one.values, other.values)
