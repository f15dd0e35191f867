"""A tree of questions: who gets what, in words, and back from a file."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import reseal, ward

from etips.data.schema import Schema
from etips.errors import FileError
from etips.policies.policy import FittedPolicy
from etips.policies.policy_files import load_policy, save_policy
from etips.policies.rule_tree import NONE, RuleTree

SCHEMA = Schema(
    sequence=("map", "ward=icu", "lactate", "lactate_missing"),
    n_actions=3,
    static=("age",),
    actions=("wait", "fluid", "drug"),
    categories={"ward": ("icu",)},
    indicators=("lactate",),
)


def tree(action=(NONE, NONE, 0, 1, 2, NONE, NONE)):
    """Is lactate at most 2? If so, is the MAP at most 65?"""
    column = np.array([2, 0, NONE, NONE, NONE, NONE, NONE])
    cut = np.array([2.0, 65.0, 0, 0, 0, 0, 0])
    missing = np.array([True, False, False, False, False, False, False])
    return RuleTree(column, cut, missing, np.array(action))


def rows(*values):
    return np.array([[m, 0, lactate, 0, 50] for m, lactate in values], np.float32)


def test_every_row_finds_its_leaf():
    own = tree()
    found = own.actions(rows((60, 1), (70, 1), (60, 3), (60, np.nan), (65, 2)))
    assert found.tolist() == [1, 2, 0, 1, 1]
    assert own.leaves == (3, 4, 2)
    assert own.depth == 2


def test_rules_are_sentences():
    assert tree().rules(SCHEMA) == [
        "If lactate ≤ 2 (or is not known) and map ≤ 65: fluid.",
        "If lactate ≤ 2 (or is not known) and map > 65: drug.",
        "If lactate > 2: wait.",
    ]
    assert RuleTree.always(1).rules(SCHEMA) == ["Always: fluid."]


def test_two_limits_of_a_column_are_one_condition_and_levels_are_named():
    own = RuleTree(
        np.array([0, 0, 1, NONE, NONE, NONE, NONE]),
        np.array([65.0, 50, 0.5, 0, 0, 0, 0]),
        np.zeros(7, bool),
        np.array([NONE, NONE, NONE, 0, 1, 2, 0]),
    )
    assert own.rules(SCHEMA)[1:] == [
        "If 50 < map ≤ 65: fluid.",
        "If map > 65 and ward is not icu: drug.",
        "If map > 65 and ward is icu: wait.",
    ]
    asks = replace(own, column=np.array([3, NONE, NONE, NONE, NONE, NONE, NONE]))
    asks = replace(asks, action=np.array([NONE, 0, 1, NONE, NONE, NONE, NONE]))
    assert asks.rules(SCHEMA)[0].startswith("If lactate was measured:")


def test_json_brings_it_back():
    document = tree().to_json()
    back = RuleTree.from_json(document, n_columns=5, n_actions=3)
    assert back.to_json() == document


@pytest.mark.parametrize(
    "change",
    [
        {"column": [9, 0, -1, -1, -1, -1, -1]},
        {"column": [2, 0, -1, 1, -1, -1, -1]},
        {"cut": [1.0]},
        {"cut": [float("nan")] * 7},
        {"action": [-1, -1, 0, 1, 5, -1, -1]},
        {"action": [-1, -1, 0, 1, True, -1, -1]},
        {"column": [2, 0], "cut": [0, 0], "missing_low": [True, True], "action": [0, 0]},
    ],
)
def test_a_tree_that_does_not_fit_is_refused(change):
    with pytest.raises((ValueError, TypeError)):
        RuleTree.from_json({**tree().to_json(), **change}, n_columns=5, n_actions=3)


def test_a_policy_of_rules_is_saved_loaded_and_answers_alike(tmp_path):
    log = ward()
    own = RuleTree(
        np.array([1, NONE, NONE]), np.zeros(3), np.zeros(3, bool), np.array([NONE, 2, 0])
    )
    policy = FittedPolicy("tree", log.schema, tree=own).having_seen(log)
    save_policy(policy, tmp_path / "policy")
    back = load_policy(tmp_path / "policy")
    np.testing.assert_array_equal(back.predict_proba(log), policy.predict_proba(log))
    assert set(back.predict(log)) == {0, 2}
    assert back.seen.overlap(log).n_stays == log.n_stays
    reseal(tmp_path / "policy", lambda document: document["tree"].update(action=[-1, 9, 0]))
    with pytest.raises(FileError, match="does not hold what its manifest says"):
        load_policy(tmp_path / "policy")
