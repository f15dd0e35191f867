"""Names, numbers, yes and no: which action a rule means."""

import numpy as np
import pytest

from etips.data.schema import Schema
from etips.data.tables.arrays import from_arrays
from etips.errors import DataError
from etips.policies.rule_answers import near_names, read_answer, read_answers, what_it_does


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
