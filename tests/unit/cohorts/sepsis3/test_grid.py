"""Sections 8 to 11: one row per timestamp, plausible, worked out and held values."""

import itertools

import numpy as np
import polars as pl
import pytest

from etips.cohorts.sepsis3.events import CONCEPT, Events
from etips.cohorts.sepsis3.grid import (
    Grid,
    cross_estimate,
    drop_outliers,
    fio2_from_flow,
    first_of_run,
    gcs_from_rass,
    hold,
    make_grid,
)
from etips.cohorts.sepsis3.rules import CLEAN, PAPER
from etips.cohorts.sepsis3.variables import GRID, HOUR

WINDOW = pl.DataFrame({"stay": [1, 2], "opens": [0, 0], "closes": [100, 100]})
MEASURED = {
    "stay": pl.Int64, "concept": CONCEPT, "t": pl.Int64, "value": pl.Float64, "priority": pl.Int32,
}  # fmt: skip
NOTHING = pl.DataFrame(schema={"stay": pl.Int64, "start": pl.Int64, "end": pl.Int64})


def made_grid(*rows, rules=PAPER, ventilation=NOTHING):
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
    made = made_grid(*((1, "HR", t, 80.0) for t in (-1, 0, 50, 100, 101)))
    assert made.t.tolist() == [0, 50, 100]


def test_of_several_values_the_last_by_priority_then_value_wins():
    made = made_grid((1, "HR", 5, 90.0, 2), (1, "HR", 5, 99.0, 1), (1, "HR", 5, 85.0, 2))
    assert made["HR"].tolist() == [90]


def test_clean_takes_the_median_of_distinct_values():
    rows = [(1, "HR", 5, value) for value in (70.0, 90.0, 90.0, 80.0)]
    assert made_grid(*rows, rules=CLEAN)["HR"].tolist() == [80]


@pytest.mark.parametrize("rules", [PAPER, CLEAN], ids=["paper", "clean"])
def test_any_measurement_that_says_ventilated_makes_the_timestamp_so(rules):
    rows = [(1, "mechvent", 5, 1.0), (1, "mechvent", 5, 0.0), (1, "mechvent", 6, 0.0)]
    assert made_grid(*rows, rules=rules)["mechvent"].tolist() == [1, 0]


def test_a_ventilation_period_marks_the_timestamps_inside_it():
    periods = pl.DataFrame({"stay": [1], "start": [10], "end": [20]})
    rows = [(stay, "HR", t, 80.0) for stay in (1, 2) for t in (9, 10, 15, 20, 21)]
    made = made_grid(*rows, ventilation=periods)
    np.testing.assert_array_equal(made["mechvent"][made.stay == 1], [np.nan, 1, 1, 1, np.nan])
    assert np.isnan(made["mechvent"][made.stay == 2]).all()


BY_SUPPORT = (1, 7, 6, 5, 9, 10, 4, 3, 2, 0, 8)


def test_of_two_devices_at_one_time_the_one_of_higher_support_counts():
    for stronger, weaker in itertools.combinations(BY_SUPPORT, 2):
        for devices in ((stronger, weaker), (weaker, stronger)):
            rows = [(1, "Interface", 5, float(code), item) for item, code in enumerate(devices)]
            made = made_grid(*rows, (1, "Interface", 6, 2.0), rules=CLEAN)
            assert made["Interface"].tolist() == [stronger, 2]


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
    one = made_grid(*rows, rules=rules)
    other = made_grid(*(rows[i] for i in rng.permutation(200)), rules=rules)
    np.testing.assert_array_equal(one.values, other.values)


NAN = np.nan
CANNULA = {1: 24, 2: 28, 3: 32, 4: 36, 5: 40, 6: 44, 8: 50, 10: 55, 12: 62, 15: 70}
MASK = {4: 36, 6: 40, 8: 58, 10: 66, 12: 69, 15: 75}
NON_REBREATHER = {6: 60, 8: 70, 9.9: 80, 10: 90, 14.9: 90, 15: 100, 40: 100}
TABLES = [
    *[(device, CANNULA, 21) for device in (0, 2)],
    *[(device, MASK, NAN) for device in (1, 3, 4, 5, 6, 9, 10)],
    (7, NON_REBREATHER, NAN),
]


def percent(device, flow, *, clean=False):
    return fio2_from_flow(
        np.array([device], float), np.array([flow], float), unknown_is_mask=clean
    )[0]


@pytest.mark.parametrize(("device", "table", "without_flow"), TABLES)
def test_oxygen_by_device_and_flow_exactly_on_each_limit(device, table, without_flow):
    assert [percent(device, flow) for flow in table] == list(table.values())
    assert percent(device, NAN) == pytest.approx(without_flow, nan_ok=True)


@pytest.mark.parametrize("device", [8, NAN])
def test_an_unknown_device_tells_nothing_unless_read_as_a_mask(device):
    assert np.isnan(percent(device, 4))
    assert percent(device, 4, clean=True) == 36


def test_sedation_score_stands_for_coma_score():
    rass = np.array([2, 0, -1, -2, -3, -4, -5, -1.5, NAN])
    expected = [15, 15, 14, 12, 11, 6, 3, NAN, NAN]
    np.testing.assert_array_equal(gcs_from_rass(rass), expected)


def grid(n=1, **columns):
    """One stay, one row an hour."""
    values = np.full((len(GRID), n), NAN)
    result = Grid(np.ones(n, int), np.arange(n) * HOUR, np.zeros(n, int), values)
    for name, column in columns.items():
        result[name][:] = column
    return result


def estimated(config=PAPER, **columns):
    made = grid(max(np.size(column) for column in columns.values()), **columns)
    cross_estimate(made, config)
    return made


def test_one_missing_pressure_of_three_is_worked_out():
    assert estimated(SysBP=120, MeanBP=90)["DiaBP"][0] == 75
    assert estimated(SysBP=120, DiaBP=75)["MeanBP"][0] == 90
    assert estimated(MeanBP=90, DiaBP=75)["SysBP"][0] == 120


def test_temperatures_move_to_the_column_of_their_unit():
    assert estimated(Temp_F=37.0)["Temp_C"][0] == 37
    assert estimated(Temp_C=98.6)["Temp_F"][0] == 98.6
    assert estimated(Temp_F=98.6)["Temp_C"][0] == pytest.approx(37)


def test_absurd_fahrenheit_is_dropped_in_clean_only():
    assert estimated(Temp_F=200.0)["Temp_C"][0] == pytest.approx(93.33, abs=0.01)
    assert np.isnan(estimated(CLEAN, Temp_F=200.0)["Temp_C"][0])


def test_flow_fills_fio2_only_where_the_held_fio2_is_missing():
    made = estimated(FiO2_100=[40, NAN, NAN], Interface=[2, NAN, NAN], O2flow=[NAN, 2, NAN])
    np.testing.assert_array_equal(made["FiO2_100"], [40, NAN, NAN])
    made = estimated(FiO2_100=[NAN, NAN], Interface=[2, NAN], O2flow=[NAN, 2])
    np.testing.assert_array_equal(made["FiO2_1"], [0.21, 0.28])


def without_outliers(name, value, config=PAPER, *, second_pass=False):
    made = grid(1, **{name: value})
    drop_outliers(made, config, second_pass=second_pass)
    return made[name][0]


@pytest.mark.parametrize(
    ("name", "kept", "dropped"),
    [
        ("Weight_kg", 300, 300.1), ("HR", 250, 251), ("SysBP", 300, 301), ("MeanBP", 0, -1),
        ("MeanBP", 200, 201), ("DiaBP", 200, 201), ("RR", 80, 81), ("FiO2_1", 1.5, 1.51),
        ("O2flow", 70, 71), ("Potassium", 1, 0.9), ("Potassium", 15, 15.1), ("Sodium", 95, 94),
        ("Chloride", 150, 151), ("Glucose", 1000, 1001), ("Creatinine", 150, 151),
        ("Magnesium", 10, 11), ("Calcium", 20, 21), ("SGOT", 10000, 10001), ("Hb", 20, 21),
        ("WBC_count", 500, 501), ("Platelets_count", 2000, 2001), ("INR", 20, 21),
        ("Arterial_pH", 6.7, 6.69), ("Arterial_pH", 8, 8.01), ("paO2", 700, 701),
        ("paCO2", 200, 201), ("Arterial_BE", -50, -51), ("Arterial_lactate", 30, 31),
        ("FiO2_100", 20, 19), ("FiO2_100", 100, 101), ("SpO2", 150, 151), ("Temp_C", 90, 91),
    ],
)  # fmt: skip
def test_values_strictly_outside_the_plausible_range_are_removed(name, kept, dropped):
    assert not np.isnan(without_outliers(name, kept))
    assert np.isnan(without_outliers(name, dropped))


def test_two_limits_apply_in_the_second_pass_only():
    assert without_outliers("SpO2", 49) == 49
    assert np.isnan(without_outliers("SpO2", 49, second_pass=True))
    assert without_outliers("Temp_C", 24) == 24
    assert np.isnan(without_outliers("Temp_C", 24, second_pass=True))


def test_saturation_is_cut_at_100_and_fractions_become_percent():
    assert without_outliers("SpO2", 120) == 100
    assert without_outliers("FiO2_100", 0.4) == 40
    assert np.isnan(without_outliers("FiO2_100", 1.0))
    assert without_outliers("FiO2_100", 1.0, CLEAN) == 100
    assert without_outliers("FiO2_1", 0.0) == 0
    assert np.isnan(without_outliers("FiO2_1", 0.0, CLEAN))


def held(hours, values, stays):
    """Heart rates, held for two hours, of stays that are charted at some hours."""
    t, stay = np.array([round(hour * HOUR) for hour in hours]), np.array(stays)
    made = Grid(stay, t, first_of_run(stay), np.full((len(GRID), t.size), NAN))
    made["HR"][:] = values
    return hold(made, "HR", PAPER)


def test_a_value_is_held_exactly_so_long_from_its_observation_and_never_across_stays():
    hours, values = [0, 2, 2 + 1 / HOUR, 3, 4], [5.0, NAN, NAN, NAN, 7.0]
    np.testing.assert_array_equal(held(hours, values, [1, 1, 1, 2, 2]), [5, 5, NAN, NAN, 7])
    np.testing.assert_array_equal(held(range(4), [5.0, NAN, NAN, NAN], [1] * 4), [5, 5, 5, NAN])
