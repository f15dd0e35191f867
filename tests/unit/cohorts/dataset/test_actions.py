"""Section 17: dose classes and actions."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from etips.cohorts.dataset.actions import action_of, classify, edge_classes, rank_classes


def test_zero_is_a_class_of_its_own_and_the_rest_are_quartiles():
    assert rank_classes(np.array([0.0, 4, 1, 3, 2, 0])).tolist() == [1, 5, 2, 4, 3, 1]


def test_ties_share_the_class_of_their_middle_rank():
    # ranks 1, 2.5, 2.5, 4 over 4: the pair sits at 0.625, in the third quarter
    assert rank_classes(np.array([1.0, 2, 2, 3])).tolist() == [2, 4, 4, 5]


def test_a_quartile_itself_belongs_to_the_lower_class():
    assert rank_classes(np.arange(1.0, 9)).tolist() == [2, 2, 3, 3, 4, 4, 5, 5]


def test_equal_doses_all_fall_into_the_middle():
    # mid-rank (n + 1) / 2 over n is just above one half
    assert set(rank_classes(np.full(7, 0.5)).tolist()) == {4}


def test_without_any_dose_everything_is_class_one():
    classes, found = classify(np.zeros(3))
    assert classes.tolist() == [1, 1, 1]
    assert found.counts == (3, 0, 0, 0, 0)
    assert np.isnan(found.edges).all()
    assert np.isnan(found.medians[1:]).all()


def test_edges_fitted_on_some_rows_apply_to_the_rest():
    dose = np.array([1.0, 2, 3, 4, 0, 100, 1.5])
    training = np.array([True, True, True, True, True, False, False])
    classes, found = classify(dose, training=training)
    assert found.edges == (1.5, 2.5, 3.5)
    assert classes.tolist() == [2, 3, 4, 5, 1, 5, 2]


def test_fluid_is_the_slow_index_of_the_action():
    assert action_of(np.array([1, 1, 2, 5]), np.array([1, 2, 1, 5])).tolist() == [0, 1, 5, 24]


@given(st.lists(st.integers(0, 40).map(float), min_size=1, max_size=60))
def test_classes_follow_the_formula_of_the_scripts(doses):
    dose = np.array(doses)
    given_ = dose[dose > 0]
    for value, found in zip(dose, rank_classes(dose), strict=True):
        if value == 0:
            assert found == 1
            continue
        rank = (given_ < value).sum() + ((given_ == value).sum() + 1) / 2
        assert found == 1 + np.floor(4 * (rank / given_.size + 0.25 - 1e-10))


@given(st.lists(st.integers(1, 10**6).map(float), min_size=4, max_size=60, unique=True))
def test_distinct_doses_fall_into_the_same_class_by_rank_and_by_edge(doses):
    dose = np.array(doses)
    classes, found = classify(dose)
    assert np.abs(classes - edge_classes(dose, np.array(found.edges))).max() <= 1
    assert (np.diff(classes[np.argsort(dose)]) >= 0).all()
