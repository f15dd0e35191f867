"""Actions that an array gives as text."""

import numpy as np
import pandas as pd
import pytest

import etips
from etips.data.tables.array_actions import number_labels
from etips.errors import DataError, SettingError

X = np.random.default_rng(0).normal(size=(6, 2))
LOSS = [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize(
    "action",
    [
        ["b", "a", "b ", "a", "c", "b"],
        np.array(["b", "a", "b", "a", "c", "b"]),
        pd.Series(["b", "a", "b", "a", "c", "b"]),
        pd.Series(["b", "a", "b", "a", "c", "b"], dtype="category"),
    ],
)
def test_text_is_numbered_by_alphabet_and_names_the_actions(action):
    data = etips.from_arrays(X, action=action, loss=LOSS)
    assert data.logged_action.tolist() == [1, 0, 1, 0, 2, 1]
    assert data.schema.actions == ("a", "b", "c")


def test_missing_text_is_no_action():
    data = etips.from_arrays(X, action=["b", None, "", "a", np.nan, "b"], loss=LOSS)
    assert data.logged_action.tolist() == [1, 0, 1]


def test_steps_have_text_too():
    action = np.array([["a", None], ["b", "a"], ["b", None]], dtype=object)
    data = etips.from_arrays(X.reshape(3, 2, 2), action=action, loss=np.zeros((3, 2)))
    assert data.action.tolist() == [0, -1, 1, 0, 1, -1]


@pytest.mark.parametrize(
    "action", [None, [0, 1], np.array([1.0, np.nan]), ["0", "1"], [True, False]]
)
def test_numbers_are_left_as_they_are(action):
    assert number_labels(action, None) == (action, ()) or isinstance(action, np.ndarray)
    assert number_labels(action, None)[1] == ()


def test_text_among_numbers_and_too_many_labels_are_refused():
    with pytest.raises(DataError, match=r"^action: must be text or numbers, not both; 2 of 3 rows"):
        number_labels(np.array(["a", 1, 2.0], dtype=object), None)
    with pytest.raises(DataError, match=r"^action: must hold at most 200 different labels\."):
        number_labels([f"label {k}" for k in range(201)], None)
    with pytest.raises(SettingError, match=r"^n_actions: must be the number of labels, which is 2"):
        number_labels(["a", "b"], 3)
