"""Sections 17 to 19: dose classes, actions, losses, samples, and who is held out."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etips.cohorts.dataset.dose_actions import action_of, add_samples, classify, training_stays
from etips.cohorts.sepsis3.rules import PAPER


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
    for value, found in zip(dose, classify(dose)[0], strict=True):
        if value == 0:
            assert found == 1
            continue
        rank = (given_ < value).sum() + ((given_ == value).sum() + 1) / 2
        assert found == 1 + np.floor(4 * (rank / given_.size + 0.25 - 1e-10))


@pytest.mark.parametrize(
    ("dose", "classes"),
    [
        ([0, 4, 1, 3, 2, 0], [1, 5, 2, 4, 3, 1]),  # none is a class of its own, then quartiles
        ([1, 2, 2, 3], [2, 4, 4, 5]),  # ties share the class of their middle rank
        (range(1, 9), [2, 2, 3, 3, 4, 4, 5, 5]),  # a quartile itself belongs to the lower class
        ([0.5] * 7, [4] * 7),  # mid-rank (n + 1) / 2 over n is just above one half
    ],
)
def test_doses_are_classed_by_the_quarter_of_their_mid_rank(dose, classes):
    assert classify(np.array(dose, float))[0].tolist() == classes


def samples(*stays):
    """Counts of A, B and C for stays given by their block numbers."""
    rows = pl.DataFrame(
        [{"icustayid": i, "bloc": b, "SOFA": 3.0} for i, blocs in enumerate(stays) for b in blocs]
    )
    found = add_samples(rows)
    return [int(found[f"sample_{name}"].sum()) for name in "ABC"]


@pytest.mark.parametrize(
    ("blocs", "expected"),
    [
        (range(1, 21), [18, 18, 18]),
        ([1, 2, 3], [1, 1, 1]),
        ([1, 2], [0, 0, 0]),
        ([1], [0, 0, 0]),
        ([1, 2, 3, 4, 5, 7, 8, 9], [5, 4, 6]),  # the gap costs exactly one sample of A
    ],
)
def test_samples_of_a_stay(blocs, expected):
    assert samples(list(blocs)) == expected
    assert samples(list(blocs), list(blocs)) == [2 * n for n in expected]


def test_the_first_row_is_never_a_sample_and_the_last_has_no_loss():
    rows = pl.DataFrame({"icustayid": [1] * 3, "bloc": [1, 2, 3], "SOFA": [3.0, 4.0, 2.0]})
    found = add_samples(rows)
    assert found["sample_A"].to_list() == [False, True, False]
    assert found["loss_next_bloc"].to_list() == [1.0, 0.0, None]
    assert found["rows_before"].to_list() == [0, 1, 2]


@given(st.integers(3, 12), st.data())
def test_what_a_sample_sees_and_does_does_not_depend_on_later_rows(n, data):
    """D2 at this level: a history is the rows before; changing row t or later leaves it alone."""
    scores = data.draw(st.lists(st.integers(0, 24).map(float), min_size=n, max_size=n))
    at = data.draw(st.integers(1, n - 2))
    rows = pl.DataFrame({"icustayid": [1] * n, "bloc": range(1, n + 1), "SOFA": scores})
    changed = rows.with_columns(
        SOFA=pl.when(pl.col("bloc") > at).then(pl.col("SOFA") + 1).otherwise(pl.col("SOFA"))
    )
    one, other = (add_samples(r).head(at) for r in (rows, changed))
    assert one["rows_before"].equals(other["rows_before"])
    assert one["SOFA"].equals(other["SOFA"])


STAYS = pl.DataFrame({"stay": range(40), "patient": [number // 2 for number in range(40)]})


def test_a_share_of_the_patients_is_held_out_with_all_their_stays():
    held_out = set(range(40)) - training_stays(STAYS, replace(PAPER, test_share=0.25))
    assert len(held_out) == 10
    assert {stay ^ 1 for stay in held_out} == held_out


def test_the_seed_chooses_and_the_order_of_the_rows_does_not():
    assert training_stays(STAYS, PAPER) == training_stays(STAYS[::-1], PAPER)
    assert training_stays(STAYS, PAPER) != training_stays(STAYS, replace(PAPER, split_seed=1))
