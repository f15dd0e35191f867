"""What a page shows of one decision: the advice part by part, and its reasons."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from served_runs import client, desk, fitted, make_desk

from etips.learn import RandomPolicy
from etips.policies.rule_tree import RuleTree
from etips.serve.decision import WAIT, explain, make_decision, make_tracks, put_together
from etips.serve.pages import Pages
from etips.serve.stays import Advisor


def view(at=0, **advice):
    own = desk()
    made = own.stays.view(own.stays.rows[0].code, at)
    return replace(made, advice=replace(made.advice, **advice)) if advice else made


def test_the_card_shows_advice_support_and_each_part_on_its_own():
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
    fluid, vasopressor = (np.array(track.logged) for track in make_tracks(own))
    np.testing.assert_array_equal(3 * fluid + vasopressor, own.stay.logged_action)


def test_where_the_policy_abstains_the_answer_is_to_wait():
    own = view(abstained=np.ones(len(view().steps), bool))
    card = make_decision(own)
    assert card.heading.startswith("Wait")
    assert "abstains" in card.sentences[0]
    assert not any(row.advised for part in card.parts for row in part.levels)
    assert (card.agrees, card.close) == (None, False)
    assert "ring-c0" not in card.picture
    assert all(level is None for track in make_tracks(own) for level in track.advised)
    assert "abstains" in explain(own).missing


def test_a_close_call_names_the_second_choice():
    chances = np.tile([0.0, 0.34, 0.33, 0.33, 0.0, 0.0], (len(view().steps), 1))
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
    sentences = put_together(own, [follow[0], other])
    assert "the policy would choose it" in sentences[0]
    assert "supported" in sentences[1]
    sentences = put_together(own, [follow[0], WAIT])
    assert sentences[0] == "You wait with vasopressor."
    assert "Clinicians choose fluid" in sentences[1]
    for nonsense in ([WAIT, WAIT], ["x", "99"], ["-1", ""]):
        assert put_together(own, nonsense)[0].startswith("You wait")


def test_what_speaks_for_the_advice_is_shown_by_column():
    pytest.importorskip("captum")
    pressure = desk().advisor.form.sequence[0]
    why = explain(view().changed({pressure: 35.0}))
    assert why.missing == ""
    assert {name for name, _ in why.bars} <= {"MeanBP", "Lactate", "shift", "age"}
    assert why.bars[0][0] == "MeanBP"
    assert why.against in desk().advisor.names


def test_where_captum_is_missing_the_page_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    for missing in (explain(view()).missing, Pages(desk()).neighbours):
        assert "captum" in missing
    assert "pip install" in explain(view()).missing


def test_similar_patients_and_measurements_are_shown_or_that_there_are_none():
    pytest.importorskip("captum")
    page = client().get(f"/stays/{view().code}/why?at=0").text
    assert "people in the data" in page
    assert "fresh value" in page or "No missing or old measurement" in page


def test_a_policy_that_reads_nothing_has_nothing_to_explain_and_rules_show_the_one_that_is_met():
    blind = RandomPolicy(seed=0).fit(desk().stays.data).policy_
    ruled = replace(fitted(), kind="tree", tree=RuleTree.always(1), networks=None)
    for policy, words, near in (
        (blind, "nothing to attribute", ""),
        (ruled, "Always: ", "explain themselves"),
    ):
        own = replace(view(), advisor=Advisor(policy))
        assert words in explain(own).missing
        assert near in Pages(make_desk(policy, desk().stays.data)).neighbours
