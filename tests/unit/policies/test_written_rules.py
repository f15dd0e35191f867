"""Rules in Python."""

import numpy as np
import pyarrow as pa
import pytest

import etips
from etips.errors import DataError, SettingError

SECRET = 4242.5


@pytest.fixture
def data():
    log = pa.table(
        {
            "stay": [1, 1, 1, 2, 2],
            "t": [0, 1, 2, 0, 1],
            "dose": [0, 1, 0, 1, 0],
            "loss": [0.0, 1.0, 0.0, 1.0, 0.0],
            "map": [None, 60.0, 70.0, SECRET, 64.0],
            "ward": ["icu", "er", "er", None, "icu"],
        }
    )
    roles = {"stay": "stay", "step": "t", "action": "dose", "loss": "loss", "missing": "carry"}
    names = ("none", "vasopressor")
    return etips.read_table(log, **roles, categorical=["ward"], actions=names, lag=0)


def low(row):
    return "vasopressor" if row["map"] < 65 else "none"


def test_a_function_of_a_row_is_a_policy_and_what_is_not_known_compares_to_nothing(data):
    rule = etips.Rule(low)
    assert rule.name == "low"
    assert rule.predict(data).tolist() == [0, 1, 0, 0, 1]
    assert not rule.abstains(data).any()
    assert rule.predict_proba(data).shape == (5, 2)


def test_all_rows_at_once_give_the_same(data):
    rule = etips.Rule(
        lambda s: np.where(s["map"] < 65, "vasopressor", "none"), name="low", vectorised=True
    )
    assert (rule.predict(data) == etips.Rule(low).predict(data)).all()
    always = etips.Rule(lambda s: "vasopressor", name="always", vectorised=True)
    assert (always.predict(data) == 1).all()


def test_none_leaves_it_to_the_clinicians(data):
    rule = etips.Rule(lambda s: "none" if s["ward"] == "icu" else None)
    assert rule.abstains(data).tolist() == [False, True, True, True, False]


def test_a_wrong_column_is_refused_with_the_near_ones(data):
    with pytest.raises(DataError, match=r"rule rule, column mapp: .* There is map\.$"):
        etips.Rule(lambda s: s["mapp"]).deployed(data)


@pytest.mark.parametrize("vectorised", [True, False])
def test_a_rule_that_fails_is_refused_with_how_many_and_no_cell(data, vectorised):
    def broken(row):
        raise ValueError(f"{row['map']}")

    with pytest.raises(DataError) as refused:
        etips.Rule(broken, vectorised=vectorised).deployed(data)
    assert "must not fail (ValueError); 5 of 5 rows fail" in str(refused.value)
    assert str(SECRET) not in str(refused.value)


def test_too_few_answers_are_refused(data):
    with pytest.raises(DataError, match="one answer for each decision"):
        etips.Rule(lambda s: ["none"] * 2, vectorised=True).deployed(data)


def test_what_is_no_function_is_refused():
    with pytest.raises(SettingError, match="must be a function"):
        etips.Rule("map < 65")


def test_arrays_will_do_as_they_do_for_learners():
    rule = etips.Rule(lambda s: int(s["x0"] > 0))
    assert rule.predict(np.array([[1.0], [-1.0]]), action=[0, 1], loss=[0, 1]).tolist() == [1, 0]
