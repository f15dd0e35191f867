"""Sections 14 and 15, goal D5: SOFA and SIRS at every limit, and who is left out."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etips.cohorts.sepsis3.rules import CLEAN, PAPER
from etips.cohorts.sepsis3.scores import (
    add_ratios,
    add_scores,
    bilirubin_part,
    care_withdrawn,
    circulation_part,
    coma_part,
    exclude,
    platelet_part,
    recent_sum,
    renal_part,
    respiratory_part,
    sirs,
)
from etips.cohorts.sepsis3.variables import DELAY

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
    assert capped.max() == np.quantile([0.5, 1.0, 1.5], 0.999, method="hazen")


ROW = {
    "output_4hourly": 100.0, "Total_bili": 1.0, "input_4hourly": 100.0, "mortality_90d": 0.0,
    "max_dose_vaso": 0.0, "SOFA": 5.0, "died_within_48h_of_out_time": 0.0, DELAY: 100.0,
}  # fmt: skip


def stay(*rows, stay=1, blocs=None):
    """Rows of a stay; each argument changes the columns of one row."""
    blocs = blocs or range(1, len(rows) + 1)
    return pl.DataFrame(
        [{"icustayid": stay, "bloc": b, **ROW, **r} for b, r in zip(blocs, rows, strict=True)]
    )


def kept(rows, config=PAPER):
    return exclude(rows, config)[0]["icustayid"].n_unique() == 1


@pytest.mark.parametrize(
    ("name", "allowed", "excess"),
    [
        ("output_4hourly", 12_000.0, 12_001.0),
        ("Total_bili", 10_000.0, 10_001.0),
        ("input_4hourly", 10_000.0, 10_001.0),
    ],
)
def test_one_absurd_step_drops_the_stay(name, allowed, excess):
    assert kept(stay({}, {name: allowed}))
    assert not kept(stay({}, {name: excess}))


@pytest.mark.parametrize(("sofa", "stays"), [(2.0, True), (1.0, False)])
def test_the_highest_sofa_must_reach_two(sofa, stays):
    assert kept(stay({"SOFA": 0.0}, {"SOFA": sofa})) is stays


def withdrawal(last=None, first=None, blocs=None, n=2):
    first = {"mortality_90d": 1.0, "max_dose_vaso": 0.4, "SOFA": 10.0, **(first or {})}
    last = {"mortality_90d": 1.0, "max_dose_vaso": 0.0, "SOFA": 5.0, **(last or {})}
    return stay(*[first] * (n - 1), last, blocs=blocs)


def withdrawn(rows, config=PAPER):
    return rows.filter(care_withdrawn(config)).height > 0


def test_stopping_vasopressors_in_a_dying_patient_is_withdrawal():
    assert withdrawn(withdrawal())


@pytest.mark.parametrize(
    "other",
    [
        withdrawal({"mortality_90d": 0.0}, {"mortality_90d": 0.0}),
        withdrawal({"max_dose_vaso": 0.1}),
        withdrawal(first={"max_dose_vaso": 0.3}),
        withdrawal({"SOFA": 4.0}),
        withdrawal(n=20),
    ],
    ids=["survived", "still treated", "low dose before", "recovering", "full record"],
)
def test_anything_less_is_not_withdrawal(other):
    assert not withdrawn(other)


def test_a_gap_lets_a_stay_escape_in_the_scripts_but_not_in_clean():
    gapped = withdrawal(blocs=[1, 3])
    assert not withdrawn(gapped)
    assert withdrawn(gapped, CLEAN)


def test_death_during_collection_drops_a_stay_in_clean_only():
    dying = stay({"died_within_48h_of_out_time": 1.0, DELAY: 23.9}, {})
    assert kept(dying)
    assert not kept(dying, CLEAN)
    assert kept(stay({"died_within_48h_of_out_time": 1.0, DELAY: 24.0}), CLEAN)


DIED = {"died_within_48h_of_out_time": 1.0, DELAY: 23.0}


def three_stays(second):
    """Six rows, two a stay; `second` changes those of the second stay."""
    return pl.concat([stay({}, {}, stay=1), stay(second, second, stay=2), stay({}, {}, stay=3)])


def test_the_scripts_lose_the_row_whose_number_is_that_of_a_dying_stay():
    """The second stay died, so the second row goes: one of the first stay."""
    rows, dropped = exclude(three_stays(DIED), PAPER)
    assert rows.select("icustayid", "bloc").rows() == [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2)]
    assert sum(dropped.values()) == 0


HOURLY = replace(PAPER, step_hours=1)


def rows(stay, bloc, x, name="x"):
    return pl.DataFrame({"icustayid": stay, "bloc": bloc, name: x})


def test_hours_of_another_stay_or_beyond_a_gap_do_not_count():
    frame = rows([1] * 6 + [2], [1, 2, 3, 4, 5, 9, 1], [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
    assert recent_sum(frame, "x", HOURLY).to_list() == [1, 3, 7, 15, 30, 32, 64]
    assert recent_sum(frame, "x", PAPER).to_list() == frame["x"].to_list()


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


def test_urine_of_an_hour_is_held_against_an_hour_s_share_of_the_limit():
    creatinine, urine = np.array([0.5, 0.5, 0.5]), np.array([20.0, 22.0, 8.0])
    assert renal_part(creatinine, urine, share=0.25).tolist() == [3, 0, 4]
    assert renal_part(creatinine, urine).tolist() == [4, 4, 4]


@pytest.mark.parametrize(
    ("name", "limit"), [("output_4hourly", 12_000.0), ("input_4hourly", 10_000.0)]
)
def test_a_stay_is_left_out_for_what_four_hours_hold(name, limit):
    part = [{name: 0.3 * limit}] * 4
    assert not kept(stay(*part), HOURLY)
    assert kept(stay(*part, blocs=[1, 2, 7, 8]), HOURLY)
