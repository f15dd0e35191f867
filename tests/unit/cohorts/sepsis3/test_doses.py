"""Sections 4.2 and 12: fluids, urine and vasopressors of each step."""

from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import polars as pl
import pytest
from happenings import T, events
from hypothesis import given
from hypothesis import strategies as st

from etips.cohorts.sepsis3.doses import (
    fluid_columns,
    infused_volume,
    norepinephrine_equivalent,
    rounded,
    running_doses,
    urine_columns,
    vasopressor_columns,
)
from etips.cohorts.sepsis3.grid import Steps
from etips.cohorts.sepsis3.rules import CLEAN, PAPER, steps_of_hours
from etips.cohorts.sepsis3.variables import HOUR

HALF_OPEN = replace(PAPER, half_open_steps=True)


def steps(numbers=(0, 1, 2), config=PAPER):
    """Steps of stay 1, beginning at T."""
    n = len(numbers)
    return Steps(
        stays=np.array([1]),
        beg=np.array([T]),
        last=np.array([T + 80 * HOUR]),
        owner=np.zeros(n, int),
        number=np.array(numbers),
        means=np.full((65, n), np.nan),
        rules=config,
    )


def fluids(happened, rules=PAPER, numbers=(0, 1, 2)):
    return fluid_columns(happened, steps(numbers, rules))


def per_step(start, end, rules=PAPER):
    return fluids(events(infusions=[(start, end, 100.0)]), rules)["input_4hourly"].tolist()


@pytest.mark.parametrize(
    ("start", "end", "paper", "half_open"),
    [
        (1, 3, [200, 0, 0], [200, 0, 0]),
        (0, 3, [600, 0, 0], [300, 0, 0]),  # starts on t0: counted twice
        (1, 4, [600, 0, 0], [300, 0, 0]),  # ends on t1: counted twice
        (0, 4, [1600, 0, 0], [400, 0, 0]),  # both: four times
        (1, 9, [300, 400, 100], [300, 400, 100]),  # spans three steps
        (4, 6, [0, 400, 0], [0, 200, 0]),
    ],
)
def test_infusion_volume_by_step(start, end, paper, half_open):
    assert per_step(start, end) == paper
    assert per_step(start, end, HALF_OPEN) == half_open


def test_shorter_steps_hold_the_same_volumes_and_doses_finer():
    happened = events(
        boluses=[(1.5, 300.0)],
        infusions=[(0.5, 6.0, 100.0)],
        urine=[(0.0, 40.0), (3.0, 60.0)],
        drugs=[("norepinephrine", 2.0, 3.0, 0.2)],
    )
    hourly = replace(PAPER, **steps_of_hours(1))
    every = steps(range(8), hourly)
    fluid = fluid_columns(happened, every)["input_4hourly"]
    assert fluid.tolist() == pytest.approx([50, 400, 100, 100, 100, 100, 0, 0])
    four = fluids(happened, HALF_OPEN, (0, 1))["input_4hourly"]
    assert fluid.reshape(2, 4).sum(axis=1).tolist() == pytest.approx(four.tolist())
    assert urine_columns(happened, every)["output_4hourly"].tolist() == [
        40, 0, 0, 60, 0, 0, 0, 0,
    ]  # fmt: skip
    running = vasopressor_columns(happened, every)["max_dose_vaso"]
    assert np.flatnonzero(~np.isnan(running)).tolist() == [2]


hours = st.integers(0, 12 * 4).map(lambda quarter: quarter / 4)


@given(hours, hours)
def test_half_open_steps_share_an_infusion_without_loss(one, other):
    start, end = min(one, other), max(one, other)
    assert sum(per_step(start, end, HALF_OPEN)) == pytest.approx(100 * (end - start))


STEP = 4 * HOUR
seconds = st.integers(-3, 12).map(lambda quarter: quarter * STEP // 4)


@given(seconds, seconds)
def test_closed_steps_add_every_term_that_applies(start, end):
    t0, t1 = 0, STEP
    expected = 0.0
    if start >= t0 and end <= t1:
        expected += end - start
    if start <= t0 <= end <= t1:
        expected += end - t0
    if t0 <= start <= t1 <= end:
        expected += t1 - start
    if start <= t0 and end >= t1:
        expected += t1 - t0
    one = [np.array([x]) for x in (start, end, t0, t1, 3600.0)]
    assert infused_volume(*one, half_open=False)[0] == expected


def test_boluses_count_where_they_are_given_and_on_an_edge_twice():
    both = events(boluses=[(1, 500.0), (4, 250.0)])
    assert fluids(both)["input_4hourly"].tolist() == [750, 250, 0]
    assert fluids(both, HALF_OPEN)["input_4hourly"].tolist() == [500, 250, 0]


def test_the_total_starts_from_everything_before_and_skips_missing_steps():
    happened = events(boluses=[(-5, 100.0), (5, 70.0), (9, 30.0)], fluid=[1000.0])
    given = fluids(happened, numbers=(0, 2))
    assert given["input_4hourly"].tolist() == [0, 30]
    assert given["input_total"].tolist() == [1100, 1130]


def urine(happened, rules=PAPER):
    return urine_columns(happened, steps(config=rules))


def test_urine_is_summed_and_zero_without_a_record():
    passed = urine(events(urine=[(-1, 50.0), (1, 80.0), (4, 20.0)]))
    assert passed["output_4hourly"].tolist() == [100, 20, 0]
    assert passed["output_total"].tolist() == [150, 170, 170]
    assert passed["n_urine_records"].tolist() == [2, 1, 0]


def test_urine_before_the_stay_counts_in_clean_only():
    happened = events(urine=[(1, 80.0)], urine_before=[300.0])
    assert urine(happened)["output_total"][0] == 80
    assert urine(happened, CLEAN)["output_total"][0] == 380


def test_more_irrigant_than_urine_is_no_urine_in_clean():
    """It would have no logarithm; the record still says that urine was measured."""
    passed = urine(events(urine=[(-9, -40.0), (1, 80.0), (1, -300.0), (5, 60.0)]), CLEAN)
    assert passed["output_4hourly"].tolist() == [0, 60, 0]
    assert passed["output_total"].tolist() == [0, 60, 60]
    assert passed["n_urine_records"].tolist() == [2, 1, 0]


def pressors(*drugs, rules=PAPER):
    columns = vasopressor_columns(events(drugs=drugs), steps(config=rules))
    return columns["max_dose_vaso"].tolist(), columns["median_dose_vaso"].tolist()


def test_vasopressor_is_the_maximum_of_single_drugs_and_their_sum_in_clean():
    drugs = ("norepinephrine", 1, 3, 0.1), ("epinephrine", 2, 5, 0.3)
    highest, median = pressors(*drugs)
    np.testing.assert_allclose(highest, [0.3, 0.3, np.nan])
    np.testing.assert_allclose(median, [0.2, 0.3, np.nan])
    np.testing.assert_allclose(pressors(*drugs, rules=CLEAN)[0], [0.4, 0.3, np.nan])


def test_a_rate_that_only_touches_a_step_counts_there_if_steps_are_closed():
    drug = ("norepinephrine", 4, 5, 0.1)
    np.testing.assert_allclose(pressors(drug)[0], [0.1, 0.1, np.nan])
    np.testing.assert_allclose(pressors(drug, rules=CLEAN)[0], [np.nan, 0.1, np.nan])


def test_rates_without_an_end_count_at_their_time_only_and_are_held_in_clean():
    drugs = ("norepinephrine", 3, None, 0.1), ("norepinephrine", 10, None, 0.2)
    np.testing.assert_allclose(pressors(*drugs)[0], [0.1, np.nan, 0.2])
    np.testing.assert_allclose(pressors(*drugs, rules=CLEAN)[0], [0.1, 0.1, 0.2])


def dose(drug, rate, unit, rules=PAPER):
    rows = pl.DataFrame({"drug": [drug], "rate": [rate], "unit": [unit]})
    return rows.select(dose=norepinephrine_equivalent(rules))["dose"][0]


@pytest.mark.parametrize(
    ("drug", "rate", "unit", "expected"),
    [
        ("norepinephrine", 0.1234, "mcg/kg/min", 0.123),
        ("norepinephrine", 8.0, "mcg/min", 0.1),
        ("epinephrine", 0.1, "mcg/kg/min", 0.1),
        ("phenylephrine", 1.0, "mcg/kg/min", 0.45),
        ("phenylephrine", 180.0, "mcg/min", 1.013),  # 180 x 0.45 / 80 = 1.0125
        ("dopamine", 10.0, "mcg/kg/min", 0.1),
        ("dopamine", 800.0, "mcg/min", 0.1),
        ("vasopressin", 0.04, "units/min", 0.2),
        ("vasopressin", 2.4, "units/hour", 0.2),
        ("vasopressin", 0.3, "units/min", 0.025),  # above 0.2: read as per hour
        ("vasopressin", 0.2, "units/min", 1.0),
        ("vasopressin", 0.12, "units/hour", 0.01),
        ("vasopressin", 0.1, None, None),
        ("vasopressin", 2.4, None, 0.2),  # above 0.2 whatever the unit
        ("norepinephrine", 1.0, None, None),
    ],
)
def test_norepinephrine_equivalent(drug, rate, unit, expected):
    assert dose(drug, rate, unit) == expected


def test_clean_reads_vasopressin_as_charted():
    assert dose("vasopressin", 0.3, "units/min", CLEAN) == 1.5
    assert dose("vasopressin", 0.3, None, CLEAN) is None


def held(hours, *rates):
    """(start, end) in hours of rates of norepinephrine charted at (hour, rate, unit)."""
    rows = pl.DataFrame(
        [(1, hour * HOUR, None, "norepinephrine", rate, unit) for hour, rate, unit in rates],
        schema={
            "stay": pl.Int64, "start": pl.Int64, "end": pl.Int64, "drug": pl.String,
            "rate": pl.Float64, "unit": pl.String,
        },
        orient="row",
    )  # fmt: skip
    doses = running_doses(rows, replace(PAPER, rate_hold_hours=hours))
    return [(start // HOUR, end // HOUR) for start, end in doses.select("start", "end").rows()]


def test_a_rate_without_an_end_counts_at_its_time_or_is_held_until_the_next():
    rates = [(3, 0.1, "mcg/kg/min"), (5, 0.2, "mcg/kg/min"), (20, 0.3, "mcg/kg/min")]
    assert held(0, *rates) == [(3, 3), (5, 5), (20, 20)]
    assert held(4, *rates) == [(3, 5), (5, 9), (20, 24)]


@given(st.integers(-10_000_000, 10_000_000))
def test_rounding_is_decimal_and_half_goes_away_from_zero(ten_thousandths):
    value = ten_thousandths / 10_000  # halves of the third decimal among them
    expected = Decimal(ten_thousandths).scaleb(-4).quantize(Decimal("0.001"), ROUND_HALF_UP)
    assert pl.select(rounded(pl.lit(value))).item() == pytest.approx(float(expected), abs=1e-9)


def test_a_product_that_misses_its_half_by_a_hair_still_rounds_up():
    assert pl.select(rounded(pl.lit(0.0335 * 0.25 * 4 * 10))).item() == 0.335
    assert pl.select(rounded(pl.lit(1.0005))).item() == 1.001
