"""Sections 10 and 11: values worked out from others, and held values."""

from itertools import pairwise

import numpy as np
import pytest

from etips.cohorts.sepsis3.cross_estimates import (
    cross_estimate,
    fio2_from_flow,
    gcs_from_rass,
    hold,
)
from etips.cohorts.sepsis3.grid import Grid, drop_outliers, first_of_run
from etips.cohorts.sepsis3.rules import CLEAN, PAPER
from etips.cohorts.sepsis3.variables import GRID, HOUR

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


@pytest.mark.parametrize(("device", "table"), [(0, CANNULA), (1, MASK)])
def test_a_hair_above_a_limit_falls_into_the_next_cell(device, table):
    for limit, following in pairwise(table):
        assert percent(device, limit + 0.01) == table[following]


@pytest.mark.parametrize("device", [0, 2, 1, 9])
def test_a_flow_above_15_is_left_missing(device):
    assert np.isnan(percent(device, 15.1))


@pytest.mark.parametrize("device", [8, NAN])
def test_an_unknown_device_tells_nothing_unless_read_as_a_mask(device):
    assert np.isnan(percent(device, 4))
    assert percent(device, 4, clean=True) == 36


def test_sedation_score_stands_for_coma_score():
    rass = np.array([2, 0, -1, -2, -3, -4, -5, -1.5, NAN])
    expected = [15, 15, 14, 12, 11, 6, 3, NAN, NAN]
    np.testing.assert_array_equal(gcs_from_rass(rass), expected)


def test_a_value_is_held_exactly_so_long_and_never_across_stays():
    t = np.array([0, 2 * HOUR, 2 * HOUR + 1, 3 * HOUR, 4 * HOUR])
    stay = np.array([1, 1, 1, 2, 2])
    column = np.array([5.0, NAN, NAN, NAN, 7.0])
    held = hold(column, t, first_of_run(stay), hours=2)
    np.testing.assert_array_equal(held, [5, 5, NAN, NAN, 7])


def test_a_held_value_ages_from_its_observation_not_from_its_last_use():
    t = np.arange(4) * HOUR
    held = hold(np.array([5.0, NAN, NAN, NAN]), t, np.zeros(4, int), hours=2)
    np.testing.assert_array_equal(held, [5, 5, 5, NAN])


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


def test_haemoglobin_and_bilirubin_fill_their_siblings():
    assert estimated(Hb=10.0)["Ht"][0] == pytest.approx(29.836)
    assert estimated(Ht=29.836)["Hb"][0] == pytest.approx(10)
    assert estimated(Total_bili=2.0)["Direct_bili"][0] == pytest.approx(1.2116)
    assert estimated(Direct_bili=1.2116)["Total_bili"][0] == pytest.approx(2)


def test_flow_fills_fio2_only_where_the_held_fio2_is_missing():
    made = estimated(FiO2_100=[40, NAN, NAN], Interface=[2, NAN, NAN], O2flow=[NAN, 2, NAN])
    np.testing.assert_array_equal(made["FiO2_100"], [40, NAN, NAN])
    made = estimated(FiO2_100=[NAN, NAN], Interface=[2, NAN], O2flow=[NAN, 2])
    np.testing.assert_array_equal(made["FiO2_1"], [0.21, 0.28])


def test_coma_components_are_summed_where_there_are_any():
    parts = {"GCS_eye": 4, "GCS_verbal": 5, "GCS_motor": 6}
    assert estimated(**parts)["GCS"][0] == 15
    assert np.isnan(estimated(GCS_eye=4, GCS_verbal=5)["GCS"][0])
    assert np.isnan(estimated(CLEAN, GCS_eye=4, GCS_motor=6)["GCS"][0])


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


def test_a_wild_celsius_value_is_kept_as_fahrenheit():
    made = grid(1, Temp_C=98.6)
    drop_outliers(made, PAPER, second_pass=False)
    assert np.isnan(made["Temp_C"][0])
    assert made["Temp_F"][0] == 98.6
