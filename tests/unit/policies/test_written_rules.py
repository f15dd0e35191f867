"""Rules in Python: how they are asked, and what their answers mean."""

import numpy as np
import pyarrow as pa
import pytest

import etips
from etips.data.schema import Schema
from etips.data.tables.arrays import from_arrays
from etips.errors import DataError, SettingError
from etips.policies.written_rules import near_names, read_answer, read_answers, what_it_does

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


def schema(*names, n=None):
    return Schema(sequence=("x",), n_actions=n or len(names), actions=names, lag=0)


def test_an_answer_is_a_name_or_a_number():
    drugs = schema("none", "vasopressor")
    assert read_answers("rule r", ["vasopressor", 0, "none", 1.0], drugs).tolist() == [1, 0, 0, 1]


def test_nothing_abstains_however_it_is_spelt():
    answers = np.array([None, np.nan, 1], object)
    assert read_answers("rule r", answers, schema("a", "b")).tolist() == [-1, -1, 1]
    assert read_answers("rule r", np.array([np.nan, 0.0]), schema("a", "b")).tolist() == [-1, 0]


def test_where_names_are_numbers_a_number_is_a_name():
    assert read_answers("rule r", [200, "0"], schema("0", "100", "200")).tolist() == [2, 0]
    with pytest.raises(DataError, match="must give one of the actions '1', '2'"):
        read_answers("rule r", [0], schema("1", "2"))


def test_true_is_the_second_of_two_actions_unless_the_first_says_yes():
    assert read_answer(True, schema("N", "Y")) == 1
    assert read_answer(True, schema("yes", "no")) == 0
    assert read_answer(False, schema(n=2)) == 0
    with pytest.raises(DataError):
        read_answers("rule r", [True], schema("a", "b", "c"))


def test_a_combination_may_be_written_without_the_space():
    assert read_answer("Y,N", schema("N, N", "Y, N")) == 1


def test_an_unknown_name_is_refused_with_the_right_ones_and_never_repeated():
    with pytest.raises(DataError) as refused:
        read_answers("rule r", ["vasopresor", "none"], schema("none", "vasopressor"))
    line = str(refused.value)
    assert "'none', 'vasopressor'" in line
    assert "1 of 2 rows fail" in line
    assert "Did you mean 'vasopressor'?" in line
    with pytest.raises(DataError) as refused:
        read_answers("rule r", ["Miller", "Smith"], schema("none", "vasopressor"))
    assert "Miller" not in str(refused.value)


def test_a_list_is_no_answer():
    with pytest.raises(DataError, match="1 of 1"):
        read_answers("rule r", np.array([[1], None], object)[:1], schema("a", "b"))


def test_where_it_abstains_it_does_what_is_usual():
    data = from_arrays(np.zeros((4, 1)), action=[0, 0, 0, 1], loss=[0, 1, 0, 1])
    done = what_it_does(np.array([-1, 1, 0, -1]), data)
    assert done.abstained.tolist() == [True, False, False, True]
    assert done.probabilities[:2].tolist() == [[0.75, 0.25], [0.0, 1.0]]


def test_near_names_or_all_of_them_where_none_is_near():
    assert near_names("lactat", ["map", "lactate"]) == "lactate"
    assert near_names("zzz", ["map", "lactate"]) == "map, lactate"
    assert near_names("zzz", [f"feature{i}" for i in range(20)]).endswith("and 8 more")
