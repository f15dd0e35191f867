"""`etips.explain`: a stay, the whole, the rules; as lines, as a page, as a drawing."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from small_worlds import small, training, ward

import etips
from etips.data.schema import Schema
from etips.errors import DataError, FileError, SettingError
from etips.explanation.attribution import ColumnStrength, GlobalAttribution, attribute_overall
from etips.explanation.explanation_file import Explanation, finite, heat_map, time_line
from etips.explanation.measure_next import Measurement
from etips.explanation.similar import Done, Neighbourhood, SimilarDecisions
from etips.explanation.stay_explanation import (
    explain_stay,
    find_stay,
    measure_words,
    similar_words,
)
from etips.learn import PredictiveModel
from etips.models.encoders.last_step import LastStep
from etips.policies.policy import FittedPolicy
from etips.policies.policy_files import save_policy
from etips.policies.rule_tree import RuleTree
from etips.results.evaluation_log import Models


@pytest.fixture(scope="module")
def with_rules(policy, log):
    models = Models(encoder=LastStep(4), training=training(epochs=2), models=("network",))
    return etips.explain(policy, log, tree=True, depth=1, models=models)


def test_a_stay_is_explained_from_a_folder_too(policy, log, longest, tmp_path):
    save_policy(policy, tmp_path / "policy")
    name = longest.stay[0]
    found = etips.explain(tmp_path / "policy", log, stay=name)
    again = etips.explain(policy, log, stay=name)
    assert found.to_json() == again.to_json()
    assert found.overall is None
    assert repr(found).startswith(f"stay {name}\n  step 1: ")


def test_rules_are_judged_on_stays_they_were_not_learned_from(with_rules, log):
    tree = with_rules.tree
    seen = tree.tree.policy_.seen
    assert 0 < seen.overlap(log).n_stays < log.n_stays
    assert [own.name for own in tree.methods] == ["the rules", "the policy"]
    assert tree.methods[0].in_sample is False
    assert tree.methods[1].in_sample is True
    assert "the policy as rules" in repr(with_rules)


def test_json_holds_what_was_asked_for(with_rules):
    document = with_rules.to_json()
    assert document["stay"] is None
    json.dumps(document["tree"]["rules"])
    assert Explanation().to_json() == dict.fromkeys(("stay", "overall", "seeds", "tree", "rules"))


def test_it_is_written_as_a_page_as_figures_and_as_a_drawing(policy, log, longest, tmp_path):
    stay = etips.explain(policy, log, stay=longest.stay[0])
    whole = Explanation(overall=attribute_overall(policy, log, most=20))
    for found in (stay, whole):
        for kind, start in (("html", b"<!doctype html>"), ("json", b"{"), ("png", b"\x89PNG")):
            content = found.report(tmp_path / f"why.{kind}").read_bytes()
            assert content.startswith(start)
            assert content == found.report(tmp_path / f"again.{kind}").read_bytes()
            assert b"http://" not in content.replace(b"http://www.w3.org", b"")
    page = stay.report(tmp_path / "why.html").read_text()
    assert "The stay, decision by decision" in page
    assert page.count("<details") == longest.n_decisions


def test_what_cannot_be_written_or_drawn_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"must end in \.html, \.json or \.png"):
        Explanation().report(tmp_path / "why")
    with pytest.raises(SettingError, match="drawing"):
        Explanation().report(tmp_path / "why.png")
    assert not list(tmp_path.iterdir())


def test_names_are_text_whatever_they_hold_and_numbers_that_json_lacks_are_null(
    policy, longest, tmp_path
):
    stay = replace(explain_stay(policy, longest), stay="<script>alert(1)</script>")
    page = Explanation(stay).report(tmp_path / "why.html").read_text()
    assert "<script" not in page
    assert "<script" not in heat_map(np.ones((1, 1)), ["<script>"], ["<b>"], "a map")
    assert finite({"a": [math.inf, 1.0, (math.nan,)]}) == {"a": [None, 1.0, [None]]}


def test_the_strongest_columns_come_first_and_values_are_those_of_the_decisions(policy, longest):
    stay = explain_stay(policy, longest)
    columns, labels, values = time_line(stay, most=3)
    assert values.shape == (longest.n_decisions, 3)
    sizes = np.abs(values).sum(axis=0)
    assert list(sizes) == sorted(sizes, reverse=True)
    assert values[0, 0] == stay.decisions[0].attribution.by_column()[columns[0]]
    assert labels[0].startswith("1: ")


def test_who_answers_alike_for_everybody_is_refused_and_so_is_who_is_not_ours(policy, log):
    constant = FittedPolicy("constant", policy.schema, constant=1)
    with pytest.raises(SettingError, match="the same answer"):
        etips.explain(constant, log)
    with pytest.raises(SettingError, match="must be one that etips fitted"):
        etips.explain(lambda row: 0, log)


def test_a_policy_that_is_rules_is_told_as_its_rules(policy, log, tmp_path):
    rules = replace(policy, kind="tree", tree=RuleTree.always(1), networks=None)
    found = etips.explain(rules, log)
    assert repr(found).splitlines()[0] == "the policy is rules, which explain themselves"
    assert repr(found).splitlines()[1].startswith("  Always: ")
    assert found.to_json()["rules"] == rules.tree.rules(policy.schema)
    assert "Always: " in found.report(tmp_path / "why.html").read_text()


def test_rules_are_neither_learned_from_nor_judged_on_fewer_than_eleven_people(policy, log):
    with pytest.raises(DataError, match="data: must be of 11 people or more to learn rules from"):
        etips.explain(policy, log.subset(slice(0, 20)), tree=True)


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


def test_a_stay_is_found_by_its_name():
    assert find_stay(ward(), "stay 003").stay[0] == "stay 003"
    with pytest.raises(DataError, match="is not in the data"):
        find_stay(ward(), "nobody")


def test_what_is_explained_is_named_since_a_policy_that_abstains_has_no_it(policy, log, longest):
    silent = replace(policy, support=0.999)
    said = repr(Explanation(stay=explain_stay(silent, longest)))
    assert "abstains" in said
    assert " it, over " not in said
    names = [policy.schema.action_name(k) for k in range(policy.schema.n_actions)]
    assert any(f"for {name}, over " in said or f"against {name}, over " in said for name in names)


def test_parts_in_a_sentence():
    schema = Schema(sequence=("x",), n_actions=3, actions=("wait", "fluid", "drug"))
    own = SimilarDecisions(31, (Done(1, 0.7, 0.25, 0.2, 0.3), Done(2, None)), 0.3)
    words = "similar decisions: 31 people (effective); fluid 70%, mean loss 0.25"
    assert similar_words(own, schema) == words
    assert "under 11 people" in similar_words(SimilarDecisions(None), schema)
    assert measure_words(Measurement("lactate", None, 0.4, 0.2, 0.9)) == (
        "lactate (never measured) would change the answer for 40% of likely values"
    )
    columns = (ColumnStrength("hr", 0.0, 0.0, 0.0, 0.0),)
    still = GlobalAttribution(columns, {}, "log-odds", "networks", None, 0.0)
    assert "no column moves it" in repr(Explanation(overall=still))
    assert repr(Explanation()) == ""


def test_left_out_the_policy_or_what_a_learner_learned_is_explained_as_a_whole(policy, log):
    found = etips.explain(policy, log, also=[policy])
    assert found.stay is None
    assert found.seeds.first_in_common == 1
    assert "what the policy goes by" in repr(found)
    assert etips.explain(PredictiveModel(**small()).fit(log), log).overall is not None
