"""One stay, decision by decision."""

import json

import pytest
from small_worlds import ward

from etips.errors import DataError
from etips.explanation.similar import Neighbourhood
from etips.explanation.stay_explanation import explain_stay, find_stay
from etips.policies.policy import FittedPolicy
from etips.policies.rule_tree import RuleTree


def test_every_decision_is_explained_against_what_was_done(policy, log, longest):
    found = explain_stay(policy, longest, Neighbourhood.of(policy, log))
    assert len(found.decisions) == longest.n_decisions
    for own, logged in zip(found.decisions, longest.logged_action, strict=True):
        assert own.attribution.action == own.recommended
        if logged != own.recommended:
            assert own.attribution.against == logged
        assert own.similar is not None
    document = json.dumps(found.to_json())
    assert "action 0" in document


def test_questions_have_neither_log_nor_neighbours(policy, longest):
    found = explain_stay(policy, longest.without_log())
    assert [own.label for own in found.decisions] == ["1", "2", "3", "4", "5", "6"]
    assert all(own.logged is None and own.similar is None for own in found.decisions)


def test_a_policy_of_rules_names_the_rule(log, longest):
    policy = FittedPolicy("tree", log.schema, tree=RuleTree.always(2))
    found = explain_stay(policy, longest)
    assert {own.rule for own in found.decisions} == {"Always: action 2."}
    assert found.decisions[0].attribution is None


def test_a_stay_is_found_by_its_name_and_numbers_may_be_text():
    log = ward()
    assert find_stay(log, "stay 003").stay[0] == "stay 003"
    with pytest.raises(DataError, match="is not in the data"):
        find_stay(log, "nobody")
