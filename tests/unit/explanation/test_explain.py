"""`etips.explain`: a stay, the whole, the rules; from a policy, a learner or a folder."""

import json
from dataclasses import replace

import numpy as np
import pytest
from small_worlds import small, training

import etips
from etips.errors import DataError, SettingError
from etips.explanation.explanation_parts import ExplanationParts
from etips.explanation.explanation_text import describe
from etips.explanation.global_attribution import ColumnStrength, GlobalAttribution
from etips.learn import PredictiveModel
from etips.models.encoders.last_step import LastStep
from etips.policies.policy import FittedPolicy
from etips.policies.policy_files import save_policy
from etips.policies.rule_tree import RuleTree
from etips.results.evaluation_log import Models


@pytest.fixture(scope="module")
def with_rules(policy, log):
    models = Models(encoder=LastStep(4), training=training(epochs=2), kind="networks")
    return etips.explain(policy, log, tree=True, depth=1, models=models)


def test_a_stay_is_explained_from_a_folder_too(policy, log, longest, tmp_path):
    save_policy(policy, tmp_path / "policy")
    name = longest.stay[0]
    found = etips.explain(tmp_path / "policy", log, stay=name)
    again = etips.explain(policy, log, stay=name)
    assert found.to_json() == again.to_json()
    assert found.overall is None
    assert repr(found).startswith(f"stay {name}\n  step 1: ")


def test_left_out_the_policy_is_explained_as_a_whole(policy, log):
    found = etips.explain(policy, log, also=[policy])
    assert found.stay is None
    assert found.seeds.first_in_common == 1
    assert "what the policy goes by" in repr(found)


def test_a_learner_is_explained_by_what_it_learned(log):
    learner = PredictiveModel(**small()).fit(log)
    assert etips.explain(learner, log).overall is not None


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
    assert isinstance(with_rules, ExplanationParts)


@pytest.mark.parametrize("kind", ["html", "json", "png"])
def test_it_is_written_as_a_page_as_figures_and_as_a_drawing(policy, log, longest, tmp_path, kind):
    place = tmp_path / f"why.{kind}"
    etips.explain(policy, log, stay=longest.stay[0]).report(place)
    content = place.read_bytes()
    start = {"html": b"<!doctype html>", "json": b"{", "png": b"\x89PNG"}[kind]
    assert content.startswith(start)
    assert len(content) > 1000


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


def test_where_no_column_moves_the_policy_a_line_says_so(log):
    columns = (ColumnStrength("hr", 0.0, 0.0, 0.0, 0.0),)
    still = GlobalAttribution(columns, {}, "log-odds", "networks", None, 0.0)
    assert "no column moves it" in describe(ExplanationParts(overall=still))


def test_rules_are_neither_learned_from_nor_judged_on_fewer_than_eleven_people(policy, log):
    with pytest.raises(DataError, match="data: must be of 11 people or more to learn rules from"):
        etips.explain(policy, log.subset(slice(0, 20)), tree=True)


def test_nothing_shown_counts_few_people(with_rules, log):
    """Shares of the leaves, times the judged decisions, are counts: none, or eleven and more."""
    for leaf in with_rules.tree.leaves:
        for share in (leaf.share, leaf.followed, leaf.agreement):
            assert share is None or np.isfinite(share)
