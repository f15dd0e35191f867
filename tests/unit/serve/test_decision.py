"""What a page shows of one decision: the advice part by part, and its reasons."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from served_runs import desk, fitted

from etips.learn import RandomPolicy
from etips.policies.rule_tree import RuleTree
from etips.serve.advice import Advisor
from etips.serve.decision import (
    WAIT,
    explain,
    find_measurements,
    find_neighbours,
    find_similar,
    make_decision,
    make_tracks,
    put_together,
)
from etips.serve.state import StayView


def view(at=0, **advice):
    own = desk()
    made = StayView.of(own.advisor, own.stays, own.stays.rows[0].code, at)
    return replace(made, advice=replace(made.advice, **advice)) if advice else made


def test_the_card_tells_advice_support_and_each_part_on_its_own():
    own = view()
    card = make_decision(own)
    assert card.heading == own.advisor.names[own.advised]
    assert "Clinicians do this with such patients" in card.sentences[0]
    assert [part.name for part in card.parts] == ["fluid", "vasopressor"]
    for part in card.parts:
        assert sum(row.advised for row in part.levels) == sum(row.given for row in part.levels) == 1
        assert abs(sum(row.policy for row in part.levels) - 1) < 1e-6
    assert " thin" in card.picture or own.advice.supported[0].all()
    assert "ring-c0" in card.picture


def test_where_the_policy_abstains_the_answer_is_to_wait():
    own = view(abstained=np.ones(len(view().steps), bool))
    card = make_decision(own)
    assert card.heading.startswith("Wait")
    assert "abstains" in card.sentences[0]
    assert not any(row.advised for part in card.parts for row in part.levels)
    assert (card.agrees, card.close) == (None, False)
    assert "ring-c0" not in card.picture
    assert all(own is None for _, track in make_tracks(own) for own in track.advised)


def test_a_close_call_names_the_second_choice():
    n = len(view().steps)
    chances = np.tile([0.0, 0.34, 0.33, 0.33, 0.0, 0.0], (n, 1))
    card = make_decision(view(probabilities=chances))
    assert card.close
    assert "fluid 0, vasopressor 2" in card.sentences[-1]


def test_one_part_may_be_followed_and_the_other_not():
    own = view()
    fluid, vasopressor = own.advisor.parts
    at = own.advised
    follow = [str(fluid.of_action[at]), str(vasopressor.of_action[at])]
    assert put_together(own, follow)[0].endswith("as advised.")
    other = str((vasopressor.of_action[at] + 1) % 3)
    said = put_together(own, [follow[0], other])
    assert "the policy would choose it" in said[0]
    assert "supported" in said[1]
    said = put_together(own, [follow[0], WAIT])
    assert said[0] == "You wait with vasopressor."
    assert "Clinicians choose fluid" in said[1]
    for nonsense in ([WAIT, WAIT], ["x", "99"], ["-1", ""]):
        assert put_together(own, nonsense)[0].startswith("You wait")


def test_tracks_tell_what_was_given_and_advised_part_by_part():
    own = view()
    (_, fluid), (_, vasopressor) = make_tracks(own)
    pairs = zip(fluid.logged, vasopressor.logged, strict=True)
    assert [3 * a + b for a, b in pairs] == own.stay.logged_action.tolist()


def test_what_speaks_for_the_advice_is_told_by_column():
    pytest.importorskip("captum")
    pressure = desk().advisor.form.sequence[0]
    why = explain(view().changed({pressure: 35.0}))
    assert why.missing == ""
    assert {name for name, _ in why.bars} <= {"MeanBP", "Lactate", "shift", "age"}
    assert why.bars[0][0] == "MeanBP"
    assert why.against in desk().advisor.names


def test_where_the_policy_abstains_there_is_nothing_to_explain():
    own = view()
    silent = replace(own.advice, abstained=np.ones(len(own.steps), bool))
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
    blind = StayView(Advisor(policy), own.code, own.stay, own.advice, 0)
    assert "nothing to attribute" in explain(blind).missing
    assert isinstance(find_neighbours(policy, desk().stays.data), str)


def test_a_policy_that_is_rules_shows_the_rule_that_is_met():
    own, policy = view(), replace(fitted(), kind="tree", tree=RuleTree.always(1), networks=None)
    ruled = StayView(Advisor(policy), own.code, own.stay, own.advice, 0)
    assert explain(ruled).missing.startswith("Always: ")
    assert "explain themselves" in find_neighbours(policy, desk().stays.data)
