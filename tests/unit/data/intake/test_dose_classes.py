"""None, then quantiles of what was given; what a log fixed is applied to other tables."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etips.data.intake.dose_classes import (
    DoseClasses,
    action_of,
    edge_classes,
    is_rate,
    rank_classes,
    require_dose_values,
    require_doses,
    split_unit,
)
from etips.data.recipe import from_document, to_document
from etips.errors import DataError, SettingError

DOSES = st.lists(st.integers(0, 40).map(float), min_size=1, max_size=60).filter(any)


def fitted(dose, bins=5, **more):
    return DoseClasses.fit("fluid_ml", np.array(dose, float), bins=bins, **more)


def test_none_is_class_0_and_the_rest_are_quarters_of_what_was_given():
    classes = fitted([0] * 50 + list(range(1, 101)))
    assert classes.edges == (25.5, 50.5, 75.5)
    assert classes.medians == (0.0, 13.0, 38.0, 63.0, 88.0)
    assert classes.apply("t", np.array([0, 1, 26, 51, 76, 1000.0])).tolist() == [0, 1, 2, 3, 4, 4]


@given(DOSES, st.integers(2, 7))
def test_the_edges_repeat_the_rule_by_rank_but_for_classes_that_ties_leave_empty(doses, bins):
    dose = np.array(doses)
    classes = DoseClasses.fit("d", dose, bins=bins)
    n_given = bins - 1 if (dose == 0).any() else bins
    by_rank = rank_classes(dose, n_given)
    own = classes.apply("d", dose)
    _, packed = np.unique(by_rank, return_inverse=True)
    assert own.tolist() == packed.tolist()
    assert set(own.tolist()) == set(range(classes.n_classes))  # no class is empty


def test_where_everybody_got_some_all_classes_are_quantiles_and_none_is_refused_later():
    classes = fitted(range(1, 101))
    assert not classes.none
    assert classes.n_classes == 5
    assert classes.apply("t", np.array([1.0, 21, 41, 61, 81])).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(DataError, match=r"t: must be above 0: .* 1 of 2 rows fail, first at row 1"):
        classes.apply("t", np.array([4.0, 0.0]))


def test_few_distinct_doses_give_fewer_classes():
    assert fitted([0, 0, 5, 5, 10, 10]).n_classes == 3
    assert fitted([0, 5, 5]).labels == ("none", "some")


def test_classes_are_called_by_their_ranges_with_as_few_digits_as_tell_them_apart():
    classes = fitted([0] * 50 + list(range(10, 1010, 10)))
    assert classes.labels == ("none", "up to 255", "255-505", "505-755", "over 755")
    assert classes.descriptions[2] == "255-505 (median 380 ml)"
    assert classes.descriptions[0] == "none"
    assert fitted([0, 1, 2, 3], bins=4).descriptions[1:] == (
        "up to 1.5 (ml)",
        "1.5-2.5 (ml)",
        "over 2.5 (ml)",
    )
    assert classes.ranges == ((0, 0), (0, 255), (255, 505), (505, 755), (755, None))
    close = DoseClasses("d", (1.00001, 1.00002), (None,) * 4)
    assert close.labels == ("none", "up to 1.00001", "1.00001-1.00002", "over 1.00002")


def test_the_median_of_fewer_than_eleven_people_is_nobodys_business():
    people = np.arange(150) // 15  # ten of them
    assert set(fitted([0] * 50 + list(range(1, 101)), people=people).medians) == {None}


def test_neither_the_smallest_nor_the_largest_dose_is_kept():
    dose = [0.0] * 50 + [0.123] + [float(k) for k in range(1, 100)] + [98765.0]
    assert "0.123" not in json.dumps(to_document(fitted(dose)))
    assert "98765" not in json.dumps(to_document(fitted(dose)))


@given(DOSES)
def test_a_copy_in_json_is_the_same(doses):
    classes = fitted(doses)
    copy = json.loads(json.dumps(to_document(classes)))
    assert from_document(DoseClasses, copy, where="dose") == classes


@pytest.mark.parametrize(
    "change",
    [
        {"edges": [3, 2]},
        {"edges": [-1]},
        {"edges": ["a"]},
        {"edges": [float("nan")]},
        {"medians": [1]},
        {"medians": None},
        {"none": 1},
        {"unit": None},
        {"more": 1},
    ],
)
def test_a_damaged_copy_is_refused(change):
    with pytest.raises(SettingError):
        from_document(DoseClasses, {**to_document(fitted(range(50))), **change}, where="dose")


def test_two_doses_make_one_action_the_first_of_them_the_slow_index():
    both = action_of((np.array([0, 0, 2, -1, 1]), np.array([0, 1, 1, 1, -1])), (3, 2))
    assert both.tolist() == [0, 1, 5, -1, -1]


def test_a_missing_dose_has_no_class():
    assert fitted([0, 1, 2]).apply("t", np.array([np.nan, 0.0])).tolist() == [-1, 0]


@pytest.mark.parametrize(("dose", "row"), [([0.0, -1.0], 1), ([np.inf, 1.0], 0)])
def test_doses_below_zero_or_without_end_are_refused(dose, row):
    with pytest.raises(DataError, match=f"t: must be a dose of 0 or more; .* first at row {row}"):
        require_dose_values("t", np.array(dose))


def test_a_column_in_which_nobody_got_anything_is_refused():
    with pytest.raises(DataError, match="at least one dose above 0"):
        require_dose_values("t", np.array([0.0, np.nan]))


@pytest.mark.parametrize(
    ("dose", "bins", "place"),
    [(["a", "b", "c"], 5, "dose"), (["a", "a"], 5, "dose"), (["a"], 1, "bins"), (["a"], 51, "bins"),
     (["a"], 2.5, "bins"), (["a"], True, "bins")],
)  # fmt: skip
def test_senseless_wishes_are_refused(dose, bins, place):
    with pytest.raises(SettingError, match=f"^{place}: "):
        require_doses(dose, bins)


@pytest.mark.parametrize(
    ("column", "name", "unit"),
    [
        ("fluid", "fluid", ""),
        ("fluid_ml", "fluid", "ml"),
        ("fluid (mL)", "fluid", "mL"),
        ("vaso [mcg/kg/min]", "vaso", "mcg/kg/min"),
        ("vaso_mcg_kg_min", "vaso", "mcg/kg/min"),
        ("vaso_mcg_per_kg_per_min", "vaso", "mcg/kg/min"),
        ("max_dose_vaso", "max_dose_vaso", ""),
        ("input_4hourly", "input_4hourly", ""),
    ],
)
def test_the_unit_is_read_from_the_name(column, name, unit):
    assert split_unit(column) == (name, unit)


def test_a_rate_is_told_from_an_amount_by_its_unit():
    rates = ("vaso [mcg/kg/min]", "insulin_units_h", "fluid (ml/hr)", "oxygen (l per min)")
    assert all(is_rate(column) for column in rates)
    amounts = ("fluid_ml", "vaso", "heparin (iu/kg)", "rate", "chemo_mg_m2")
    assert not any(is_rate(column) for column in amounts)


def test_edges_of_no_dose_leave_one_class():
    assert edge_classes(np.zeros(3), np.full(3, np.nan)).tolist() == [0, 0, 0]
