"""Section 14 and goal D5: SOFA and SIRS at every limit and one unit beside it."""

import numpy as np
import polars as pl
import pytest

from etips.cohorts.sepsis3.rules import CLEAN, PAPER
from etips.cohorts.sepsis3.scores import (
    add_ratios,
    add_scores,
    bilirubin_part,
    circulation_part,
    coma_part,
    hazen_quantile,
    platelet_part,
    renal_part,
    respiratory_part,
    sirs,
    tidy,
)

NAN = np.nan


def one(value):
    return np.array([value], dtype=float)


HOLE = NAN
SINGLE = [
    *[(respiratory_part, v, s) for v, s in [
        (401, 0), (400, HOLE), (399, 1), (301, 1), (300, 1), (299, 2), (201, 2), (200, 2),
        (199, 3), (101, 3), (100, 3), (99, 4), (0, 4), (NAN, HOLE)]],
    *[(platelet_part, v, s) for v, s in [
        (151, 0), (150, HOLE), (149, 1), (101, 1), (100, 1), (99, 2), (51, 2), (50, 2), (49, 3),
        (21, 3), (20, 3), (19, 4), (NAN, HOLE)]],
    *[(bilirubin_part, v, s) for v, s in [
        (0.3, 0), (1.1, 0), (1.2, 1), (1.3, 1), (1.9, 1), (2, 2), (2.1, 2), (5.9, 2), (6, 3),
        (6.1, 3), (11.9, 3), (12, HOLE), (12.1, 4), (NAN, HOLE)]],
    *[(coma_part, v, s) for v, s in [
        (15, 0), (14.1, 0), (14, 1), (13, 1), (12.1, 1), (12, 2), (10, 2), (9.1, 2), (9, 3),
        (6, 3), (5.1, 3), (5, 4), (3, 4), (NAN, HOLE)]],
]  # fmt: skip


@pytest.mark.parametrize(("part", "value", "score"), SINGLE)
def test_sofa_part_of_one_quantity(part, value, score):
    np.testing.assert_array_equal(part(one(value)), [score])


@pytest.mark.parametrize(
    ("part", "value", "score"),
    [(respiratory_part, 400, 0), (platelet_part, 150, 0), (bilirubin_part, 12, 4)],
)
def test_a_closed_hole_scores(part, value, score):
    assert part(one(value), closed=True)[0] == score


@pytest.mark.parametrize(
    ("pressure", "dose", "paper", "corrected"),
    [
        (71, 0, 0, 0), (70, 0, 0, 0), (69, 0, 1, 1), (66, 0, 1, 1), (65, 0, 1, 1), (64, 0, 2, 1),
        (80, 0.01, 3, 3), (80, 0.1, 3, 3), (80, 0.11, 4, 4), (60, 0.05, 3, 3), (60, 0.2, 4, 4),
        (NAN, 0, HOLE, HOLE), (NAN, 0.05, 3, 3),
    ],
)  # fmt: skip
def test_circulation_part(pressure, dose, paper, corrected):
    np.testing.assert_array_equal(circulation_part(one(pressure), one(dose)), [paper])
    found = circulation_part(one(pressure), one(dose), low_scores_one=True)
    np.testing.assert_array_equal(found, [corrected])


@pytest.mark.parametrize(
    ("creatinine", "urine", "score"),
    [
        (1.1, 100, 0), (1.2, 100, 1), (1.3, 100, 1), (1.9, 100, 1), (2, 100, 2), (2.1, 100, 2),
        (3.4, 100, 2), (3.5, 100, 3), (3.6, 100, 3), (4.9, 100, 3), (5, 100, HOLE), (5.1, 100, 4),
        (1, 85, 0), (1, 84, 0), (1, 83, 3), (1, 35, 3), (1, 34, 3), (1, 33, 4), (1, 0, 4),
        (5, 83, 3), (5, 33, 4), (NAN, 100, HOLE), (NAN, 83, 3),
    ],
)  # fmt: skip
def test_renal_part(creatinine, urine, score):
    np.testing.assert_array_equal(renal_part(one(creatinine), one(urine)), [score])


def test_without_a_urine_record_the_renal_part_rests_on_creatinine_in_clean():
    none = np.array([False])
    assert renal_part(one(1), one(0))[0] == 4
    assert renal_part(one(1), one(0), has_urine=none)[0] == 0
    assert renal_part(one(5), one(0), has_urine=none, closed=True)[0] == 4


@pytest.mark.parametrize(
    ("changed", "score"),
    [
        ({}, 0),
        ({"temperature": 38}, 1), ({"temperature": 37.9}, 0), ({"temperature": 36}, 1),
        ({"temperature": 36.1}, 0), ({"heart_rate": 90}, 0), ({"heart_rate": 91}, 1),
        ({"breaths": 20}, 1), ({"breaths": 19}, 0), ({"carbon_dioxide": 32}, 1),
        ({"carbon_dioxide": 33}, 0), ({"breaths": 25, "carbon_dioxide": 30}, 1),
        ({"white": 12}, 1), ({"white": 11.9}, 0), ({"white": 4}, 0), ({"white": 3.9}, 1),
        ({"temperature": NAN}, 0),
        ({"temperature": 39, "heart_rate": 120, "breaths": 30, "white": 20}, 4),
    ],
)  # fmt: skip
def test_sirs(changed, score):
    healthy = {
        "temperature": 37, "heart_rate": 80, "breaths": 15, "carbon_dioxide": 40, "white": 8,
    }  # fmt: skip
    assert sirs(**{name: one(value) for name, value in {**healthy, **changed}.items()})[0] == score


WELL = {
    "PaO2_FiO2": 450.0, "Platelets_count": 200.0, "Total_bili": 0.5, "MeanBP": 80.0,
    "max_dose_vaso": 0.0, "GCS": 15.0, "Creatinine": 1.0, "output_4hourly": 200.0,
    "n_urine_records": 1.0, "Temp_C": 37.0, "HR": 80.0, "RR": 15.0, "paCO2": 40.0,
    "WBC_count": 8.0,
}  # fmt: skip


def total(config=PAPER, **changed):
    rows = pl.DataFrame({name: [value] for name, value in {**WELL, **changed}.items()})
    return add_scores(rows, config)["SOFA"][0]


def test_total_is_the_sum_of_the_parts():
    assert total() == 0
    worst = total(
        PaO2_FiO2=50.0, Platelets_count=10.0, Total_bili=15.0, max_dose_vaso=0.5, GCS=3.0,
        Creatinine=6.0,
    )  # fmt: skip
    assert worst == 24


@pytest.mark.parametrize(
    ("hole", "closed"),
    [
        ({"PaO2_FiO2": 400.0}, 4), ({"Platelets_count": 150.0}, 4), ({"Total_bili": 12.0}, 8),
        ({"Creatinine": 5.0}, 8), ({"MeanBP": NAN}, 4),
    ],
)  # fmt: skip
def test_a_hole_makes_the_whole_score_zero_in_the_scripts_and_is_closed_in_clean(hole, closed):
    assert total(GCS=3.0, **hole) == 0
    assert total(CLEAN, GCS=3.0, **hole) == closed


def test_ratios_and_the_cap_of_the_shock_index():
    rows = pl.DataFrame(
        {"paO2": [84.0, 80.0, 80.0], "FiO2_1": [0.21, 0.0, 0.4], "HR": [60.0, 80.0, 90.0],
         "SysBP": [120.0, 0.0, 60.0]}
    )  # fmt: skip
    plain = add_ratios(rows, capped=False)
    np.testing.assert_allclose(plain["PaO2_FiO2"].to_list(), [400, np.inf, 200])
    np.testing.assert_allclose(plain["Shock_Index"].to_list(), [0.5, 1.0, 1.5])
    capped = add_ratios(rows, capped=True)["Shock_Index"].to_numpy()
    assert capped.max() == hazen_quantile(np.array([0.5, 1.0, 1.5]), 0.999)


def test_hazen_quantile_sits_between_the_middles_of_the_ranks():
    values = np.arange(1.0, 11)
    assert hazen_quantile(values, 0.05) == 1
    assert hazen_quantile(values, 0.10) == 1.5
    assert hazen_quantile(values, 0.999) == 10


def test_tidying_sets_flags_and_hides_ages_over_150_years():
    rows = pl.DataFrame(
        {"mechvent": [NAN, 0.0, 0.3], "gender": [1.0, 2.0, 1.0], "age": [7000.0, 300 * 365.25, 9e3],
         "median_dose_vaso": [NAN, 0.1, 0.2], "max_dose_vaso": [NAN, 0.1, 0.2]}
    )  # fmt: skip
    neat = tidy(rows)
    assert neat["mechvent"].to_list() == [0, 0, 1]
    assert neat["gender"].to_list() == [0, 1, 0]
    assert neat["age"].to_list() == [7000, 91.4 * 365.25, 9000]
    assert neat["max_dose_vaso"].to_list() == [0, 0.1, 0.2]
