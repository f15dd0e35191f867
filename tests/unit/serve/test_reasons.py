import sys
from dataclasses import replace

import numpy as np
import pytest
from served_runs import desk, fitted

from etips.learn import RandomPolicy
from etips.policies.rule_tree import RuleTree
from etips.serve.advice import Advisor
from etips.serve.reasons import explain, find_measurements, find_neighbours, find_similar
from etips.serve.stay_view import StayView


def view(at=0):
    own = desk()
    return StayView.of(own.advisor, own.form, own.stays, own.stays.rows[0].code, at)


def test_what_speaks_for_the_advice_is_told_by_column():
    pytest.importorskip("captum")
    why = explain(view().changed({"MeanBP": 35.0}, {}))
    assert why.missing == ""
    assert {name for name, _ in why.bars} <= {"MeanBP", "Lactate", "shift", "age"}
    assert why.bars[0][0] == "MeanBP"
    assert why.against in desk().advisor.names


def test_where_the_policy_abstains_there_is_nothing_to_explain():
    own = view()
    silent = replace(own.advice, abstained=np.ones(own.n_decisions, bool))
    assert "abstains" in explain(replace(own, advice=silent)).missing


def test_where_captum_is_missing_the_page_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    why = explain(view())
    assert why.said is None
    assert "captum" in why.missing
    assert "pip install" in why.missing
    assert "captum" in find_neighbours(fitted(), desk().stays.data)


def test_similar_decisions_and_measurements_are_found_or_nothing_is_said():
    pytest.importorskip("captum")
    near = find_neighbours(fitted(), desk().stays.data)
    similar = find_similar(near, view())
    assert similar.people is None or similar.people >= 11
    assert all(0 < own.changes <= 1 for own in find_measurements(near, view()))


def test_a_policy_that_reads_nothing_has_nothing_to_explain():
    own, policy = view(), RandomPolicy(seed=0).fit(desk().stays.data).policy_
    blind = StayView(Advisor(policy), own.form, own.code, own.stay, own.advice, 0)
    assert "nothing to attribute" in explain(blind).missing
    assert isinstance(find_neighbours(policy, desk().stays.data), str)


def test_a_policy_that_is_rules_shows_the_rule_that_is_met():
    own, policy = view(), replace(fitted(), kind="tree", tree=RuleTree.always(1), networks=None)
    ruled = StayView(Advisor(policy), own.form, own.code, own.stay, own.advice, 0)
    assert explain(ruled).missing.startswith("Always: ")
    assert "explain themselves" in find_neighbours(policy, desk().stays.data)
