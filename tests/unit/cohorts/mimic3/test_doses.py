"""Section 12: fluids, urine and vasopressors of each step."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etips.cohorts.mimic3 import concepts
from etips.cohorts.mimic3.columns import HOUR, STEP_SECONDS
from etips.cohorts.mimic3.config import CLEAN, PAPER
from etips.cohorts.mimic3.doses import (
    fluid_columns,
    infused_volume,
    urine_columns,
    vasopressor_columns,
)
from etips.cohorts.mimic3.extract import NO_PROCEDURES, Block
from etips.cohorts.mimic3.steps import Steps

T = 5_000_000_000
SALINE, NOREPINEPHRINE, VASOPRESSIN_CV, FOLEY = 225158, 221906, 30051, 226559
ITEMS = {config: concepts.select(config) for config in (PAPER, CLEAN)}
HALF_OPEN = replace(PAPER, half_open_steps=True)
ITEMS[HALF_OPEN] = concepts.select(HALF_OPEN)


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
        n_steps=config.n_steps,
        half_open=config.half_open_steps,
    )


def block(mv=(), cv=(), urine=()):
    """Raw rows of stay 1; hours after T.

    Args:
        mv: (item, start, end, amount, rate, unit, status).
        cv: (item, hour, amount, rate, unit).
        urine: (item, hour, amount).
    """
    times = ["start", "end", "t"]
    kinds = {"itemid": pl.Int32, "amount": pl.Float64, "rate": pl.Float64}
    texts = {"rateuom": pl.String, "statusdescription": pl.String}

    def frame(rows, names):
        schema = {name: {**kinds, **texts}.get(name, pl.Float64) for name in names}
        made = pl.DataFrame(list(rows), schema=schema, orient="row")
        moments = [name for name in names if name in times]
        return made.with_columns(
            (pl.col(moments) * HOUR + T).cast(pl.Int64), icustay_id=pl.lit(1, pl.Int64)
        )

    mv_names = ("itemid", "start", "end", "amount", "rate", "rateuom", "statusdescription")
    return Block(
        chart=pl.DataFrame(),
        labs=pl.DataFrame(),
        infusions_mv=frame(mv, mv_names),
        infusions_cv=frame(cv, ("itemid", "t", "amount", "rate", "rateuom")),
        urine=frame(urine, ("itemid", "t", "amount")),
        procedures=NO_PROCEDURES,
    )


def infusion(start, end, rate=100.0, item=SALINE, status="FinishedRunning"):
    return (item, start, end, rate * (end - start), rate, "mL/hour", status)


def fluids(rows, config=PAPER, numbers=(0, 1, 2)):
    return fluid_columns(rows, steps(numbers, config), ITEMS[config], config)


def per_step(start, end, config=PAPER):
    return fluids(block([infusion(start, end)]), config)["input_4hourly"].tolist()


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


hours = st.integers(0, 12 * 4).map(lambda quarter: quarter / 4)


@given(hours, hours)
def test_half_open_steps_share_an_infusion_without_loss(one, other):
    start, end = min(one, other), max(one, other)
    assert sum(per_step(start, end, HALF_OPEN)) == pytest.approx(100 * (end - start))


seconds = st.integers(-3, 12).map(lambda quarter: quarter * STEP_SECONDS / 4)


@given(seconds, seconds)
def test_closed_steps_add_every_term_that_applies(start, end):
    t0, t1 = 0.0, float(STEP_SECONDS)
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
    bolus = (SALINE, 1, 1.1, 500.0, None, None, "FinishedRunning")
    edge = (30018, 4, 250.0, None, None)
    both = block([bolus], [edge])
    assert fluids(both)["input_4hourly"].tolist() == [750, 250, 0]
    assert fluids(both, HALF_OPEN)["input_4hourly"].tolist() == [500, 250, 0]


def test_what_is_given_as_the_first_step_begins_counts_before_it_and_in_it_if_closed():
    rows = block(cv=[(30018, 0, 100.0, None, None)], urine=[(FOLEY, 0, 50.0)])
    assert fluids(rows)["input_total"][0] == 200
    assert fluids(rows, HALF_OPEN)["input_total"][0] == 100
    assert urine(rows)["output_total"][0] == 100
    assert urine(rows, HALF_OPEN)["output_total"][0] == 50


def test_the_total_starts_from_everything_before_and_skips_missing_steps():
    before = (30018, -5, 100.0, None, None)
    preadmission = (30054, -9, 1000.0, None, None)
    in_gap = (30018, 5, 70.0, None, None)
    later = (30018, 9, 30.0, None, None)
    found = fluids(block(cv=[before, preadmission, in_gap, later]), numbers=(0, 2))
    assert found["input_4hourly"].tolist() == [0, 30]
    assert found["input_total"].tolist() == [1100, 1130]


def test_preadmission_fluid_of_metavision_wins_over_carevue():
    rows = block(
        [(226361, -9, -8, 400.0, None, None, "FinishedRunning")],
        [(30054, -9, 1000.0, None, None)],
    )
    assert fluids(rows)["input_total"].tolist() == [400, 400, 400]


def test_tonic_fluids_count_by_their_factor():
    rows = block(cv=[(30009, 1, 100.0, None, None), (30020, 1, 100.0, None, None)])
    assert fluids(rows)["input_4hourly"][0] == 550


def test_rewritten_fluids_are_dropped_in_clean_only():
    rows = block([infusion(1, 3, status="Rewritten")])
    assert fluids(rows)["input_4hourly"][0] == 200
    assert fluids(rows, CLEAN)["input_4hourly"][0] == 0


def test_lost_fluid_items_count_in_clean_only():
    rows = block(cv=[(30006, 1, 100.0, None, None)])
    assert fluids(rows)["input_4hourly"][0] == 0
    assert fluids(rows, CLEAN)["input_4hourly"][0] == 100


def test_an_infusion_of_no_amount_has_no_volume():
    rows = block([(SALINE, 1, 3, 0.0, 100.0, "mL/hour", "FinishedRunning")])
    assert fluids(rows)["input_4hourly"][0] == 0


def urine(rows, config=PAPER):
    return urine_columns(rows, steps(config=config), ITEMS[config], config)


def test_urine_is_summed_and_zero_without_a_record():
    found = urine(block(urine=[(FOLEY, -1, 50.0), (FOLEY, 1, 80.0), (FOLEY, 4, 20.0)]))
    assert found["output_4hourly"].tolist() == [100, 20, 0]
    assert found["output_total"].tolist() == [150, 170, 170]
    assert found["n_urine_records"].tolist() == [2, 1, 0]


def test_preadmission_urine_irrigant_and_feed_residual_differ_in_clean():
    rows = block(urine=[(40060, -9, 300.0), (FOLEY, 1, 80.0), (227488, 1, 30.0), (227510, 1, 7.0)])
    assert urine(rows)["output_total"][0] == 87
    assert urine(rows, CLEAN)["output_total"][0] == 350


def test_more_irrigant_than_urine_is_no_urine_in_clean():
    """It would have no logarithm; the record still says that urine was measured."""
    rows = block(urine=[(227488, -9, 40.0), (FOLEY, 1, 80.0), (227488, 1, 300.0), (FOLEY, 5, 60.0)])
    found = urine(rows, CLEAN)
    assert found["output_4hourly"].tolist() == [0, 60, 0]
    assert found["output_total"].tolist() == [0, 60, 60]
    assert found["n_urine_records"].tolist() == [2, 1, 0]


def pressors(rows, config=PAPER):
    found = vasopressor_columns(rows, steps(config=config), ITEMS[config], config)
    return found["max_dose_vaso"].tolist(), found["median_dose_vaso"].tolist()


def norepinephrine(start, end, rate, status="FinishedRunning"):
    return (NOREPINEPHRINE, start, end, 1.0, rate, "mcg/kg/min", status)


def test_vasopressor_is_the_maximum_of_single_drugs_and_their_sum_in_clean():
    rows = block(
        [
            norepinephrine(1, 3, 0.1),
            (221289, 2, 5, 1.0, 0.3, "mcg/kg/min", "FinishedRunning"),
        ]
    )
    highest, median = pressors(rows)
    np.testing.assert_allclose(highest, [0.3, 0.3, np.nan])
    np.testing.assert_allclose(median, [0.2, 0.3, np.nan])
    np.testing.assert_allclose(pressors(rows, CLEAN)[0], [0.4, 0.3, np.nan])


def test_a_rate_that_only_touches_a_step_counts_there_if_steps_are_closed():
    rows = block([norepinephrine(4, 5, 0.1)])
    np.testing.assert_allclose(pressors(rows)[0], [0.1, 0.1, np.nan])
    np.testing.assert_allclose(pressors(rows, CLEAN)[0], [np.nan, 0.1, np.nan])


def test_rewritten_vasopressors_are_dropped():
    assert np.isnan(pressors(block([norepinephrine(1, 2, 0.1, "Rewritten")]))[0]).all()


def test_carevue_rates_count_at_their_time_only_and_are_held_in_clean():
    rows = block(cv=[(30120, 3, None, 0.1, "mcgkgmin"), (30120, 10, None, 0.2, "mcgkgmin")])
    np.testing.assert_allclose(pressors(rows)[0], [0.1, np.nan, 0.2])
    np.testing.assert_allclose(pressors(rows, CLEAN)[0], [0.1, 0.1, 0.2])
