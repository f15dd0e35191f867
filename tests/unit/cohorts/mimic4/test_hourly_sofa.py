"""SOFA by the hour as mimic-code defines it, worked by hand."""

import polars as pl
import pytest

from etips.cohorts.mimic4 import hourly_rows as rows
from etips.cohorts.mimic4.hourly_sofa import (
    PARTS,
    coma_scores,
    daily_urine,
    hourly_sofa,
    oxygen_ratios,
    stay_hours,
)

HOUR = 3600
CHART = {"stay": pl.Int64, "itemid": pl.Int32, "t": pl.Int64, "number": pl.Float64,
         "text": pl.String}  # fmt: skip
LABS = {"stay": pl.Int64, "itemid": pl.Int32, "t": pl.Int64, "number": pl.Float64,
        "specimen": pl.Int64, "arterial": pl.Boolean, "own": pl.Boolean}  # fmt: skip
GIVEN = {"stay": pl.Int64, "itemid": pl.Int32, "start": pl.Int64, "end": pl.Int64,
         "rate": pl.Float64}  # fmt: skip
URINE = {"stay": pl.Int64, "t": pl.Int64, "volume": pl.Float64}


def frame(lines, schema):
    return pl.DataFrame([(1, *line) for line in lines], schema=schema, orient="row")


def chart(*lines):
    """(item, hour, number, text)."""
    full = [(item, round(h * HOUR), *rest, *(None, None)[len(rest) :]) for item, h, *rest in lines]
    return frame(full, CHART)


def labs(*lines):
    """(item, hour, number, specimen, arterial, own)."""
    return frame([(item, round(h * HOUR), *rest) for item, h, *rest in lines], LABS)


def scores(charted=(), measured=(), given=(), urine=()):
    """Parts of the score by hour, of a stay whose heart rates are at 0.5 h and 30 h."""
    beats = [(rows.HEART_RATE, 0.5, 80.0), (rows.HEART_RATE, 30, 80.0)]
    frames = dict(
        zip(rows.NAMES, (chart(*beats, *charted), labs(*measured), frame(given, GIVEN),
                         frame(urine, URINE)), strict=True)
    )  # fmt: skip
    return hourly_sofa(frames)


def test_hours_end_on_the_clock_from_a_day_before_to_the_last_heart_rate():
    hours = stay_hours(chart((rows.HEART_RATE, 0.5, 80.0), (rows.HEART_RATE, 2.2, 80.0)))
    assert hours["hr"].to_list() == list(range(-24, 3))
    assert hours.filter(pl.col("hr") == 0)["end"].item() == HOUR


def test_a_part_is_the_worst_of_24_hours_and_0_where_nothing_was_measured():
    found = scores(measured=[(rows.PLATELETS, 3, 45.0, 1, False, True)])
    assert found.filter(pl.col("coagulation") > 0)["hr"].to_list() == list(range(2, 26))
    assert found.filter(pl.col("hr") == 2).select(PARTS).row(0) == (0, 3, 0, 0, 0, 0)


def test_what_happens_at_the_end_of_an_hour_belongs_to_it_and_other_admissions_do_not_count():
    late = scores(measured=[(rows.CREATININE, 3 + 1 / HOUR, 2.5, 1, False, True)])
    assert late.filter(pl.col("renal") == 2)["hr"].min() == 3
    assert scores(measured=[(rows.CREATININE, 3, 2.5, 1, False, False)])["renal"].max() == 0


@pytest.mark.parametrize(
    ("item", "rate", "score"),
    [(rows.NOREPINEPHRINE, 0.11, 4), (rows.NOREPINEPHRINE, 0.1, 3), (rows.EPINEPHRINE, 0.2, 4),
     (rows.DOPAMINE, 16.0, 4), (rows.DOPAMINE, 6.0, 3), (rows.DOPAMINE, 5.0, 2),
     (rows.DOBUTAMINE, 2.0, 2)],
)  # fmt: skip
def test_a_drug_counts_in_the_hours_at_whose_end_it_runs(item, rate, score):
    given = [(item, 2 * HOUR, 3 * HOUR, rate)]
    found = scores(given=given)
    assert found.filter(pl.col("cardiovascular") == score)["hr"].min() == 2
    assert scores(given=[(item, 2 * HOUR, 3 * HOUR - 1, rate)])["cardiovascular"].max() == 0


def test_pressure_is_the_mean_at_one_time_and_the_lowest_of_an_hour():
    low = [(220052, 3, 60.0), (220181, 3, 79.0), (220052, 3.5, 90.0), (220052, 4.5, 0.0)]
    assert scores(low)["cardiovascular"].max() == 1
    assert scores([(220052, 3, 60.0), (220181, 3, 81.0)])["cardiovascular"].max() == 0


def coma(*lines):
    return coma_scores(chart(*lines)).sort("t")["value"].to_list()


def test_coma_carries_parts_for_six_hours_and_a_tube_counts_as_awake():
    eye, verbal, motor = rows.EYE, rows.VERBAL, rows.MOTOR
    assert coma((eye, 0, 2.0), (verbal, 0, 3.0), (motor, 0, 4.0)) == [9]
    assert coma((eye, 0, 2.0), (motor, 5.9, 4.0)) == [2 + 5 + 6, 4 + 2 + 5]
    assert coma((eye, 0, 2.0), (motor, 6, 4.0)) == [2 + 5 + 6, 4 + 5 + 4]
    tube = (verbal, 0, 1.0, "no response-ett")
    assert coma(tube, (eye, 0, 1.0), (motor, 0, 1.0)) == [15]
    assert coma(tube, (eye, 1, 1.0)) == [15, 15]
    assert coma(tube, (eye, 0, 1.0), (verbal, 1, 2.0)) == [15, 2 + 6 + 4]


def ratio(*gases, charted=()):
    return oxygen_ratios(chart(*charted), labs(*gases)).sort("t")["value"].to_list()


def test_inspired_oxygen_comes_with_the_gas_or_was_charted_up_to_four_hours_before():
    gas = [(rows.OXYGEN_PRESSURE, 10, 80.0, 1, False, True), (52033, 10, None, 1, True, True)]
    assert ratio(*gas) == []
    assert ratio(*gas, charted=[(rows.FIO2, 6, 40.0), (rows.FIO2, 10.1, 100.0)]) == [200]
    assert ratio(*gas, charted=[(rows.FIO2, 5.9, 40.0)]) == []
    assert ratio(*gas, charted=[(rows.FIO2, 9, 0.4), (rows.FIO2, 9.5, 15.0)]) == [200]
    with_gas = (rows.GAS_FIO2, 10, 0.5, 1, False, True)
    assert ratio(*gas, with_gas, charted=[(rows.FIO2, 9, 40.0)]) == [160]
    assert ratio(gas[0], with_gas) == []  # nobody says that it is arterial


def test_a_low_ratio_scores_above_2_only_through_a_tube():
    gas = [(rows.OXYGEN_PRESSURE, 10, 40.0, 1, False, True), (52033, 10, None, 1, True, True),
           (rows.GAS_FIO2, 10, 50.0, 1, False, True)]  # fmt: skip
    tube = [(rows.MODE, hour, None, "cmv/assist") for hour in (9, 11)]
    assert scores(measured=gas)["respiration"].max() == 2
    assert scores(tube, gas)["respiration"].max() == 4


def test_urine_is_judged_where_it_was_collected_for_about_a_day():
    beats = chart((rows.HEART_RATE, 0.0, 80.0))
    volumes = frame([(h * HOUR, 10.0) for h in range(1, 26)], URINE)
    found = daily_urine(volumes, beats).sort("t")
    assert (found["t"] // HOUR).to_list() == [22, 23, 24, 25]
    assert found["value"].to_list() == [240.0] * 4
    assert scores(urine=volumes.drop("stay").rows())["renal"].max() == 3
