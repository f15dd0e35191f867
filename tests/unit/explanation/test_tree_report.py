"""Rules, judged as a whole and leaf by leaf."""

import numpy as np
import pytest
from small_worlds import training

from etips.errors import DataError
from etips.explanation.explanation_text import leaf_words, tree_lines
from etips.explanation.policy_tree import PolicyTree, TreeGain
from etips.explanation.tree_report import report_tree
from etips.models.encoders.last_step import LastStep
from etips.policies.policy import FittedPolicy
from etips.policies.rule_tree import NONE, RuleTree
from etips.results.evaluation_log import Models

MODELS = Models(encoder=LastStep(4), training=training(epochs=2), models=("network",))


def made(log, cut):
    """Rules that somebody wrote down, as if they had been learned."""
    tree = PolicyTree(depth=1)
    tree.gains_ = ()
    questions = RuleTree(
        np.array([0, NONE, NONE]), np.array([cut, 0, 0]), np.zeros(3, bool), np.array([NONE, 1, 2])
    )
    tree.policy_ = FittedPolicy("tree", log.schema, tree=questions)
    return tree


@pytest.fixture(scope="module")
def judged(log):
    other = FittedPolicy("constant", log.schema, constant=1)

    def judge(cut):
        return report_tree(made(log, cut), other, log, told="a test", models=MODELS)

    return judge


def test_every_leaf_has_its_own_estimate_and_verdict(judged, log):
    own = judged(0.0)
    low, high = own.leaves
    assert low.share + high.share == pytest.approx(1)
    for leaf in own.leaves:
        assert leaf.low <= leaf.risk <= leaf.high
        assert leaf.verdict in ("reliable", "doubtful", "unusable")
    assert low.agreement is None or low.agreement == 1
    names = [method.name for method in own.methods]
    assert names == ["the rules", "the policy"]
    assert own.agreement == pytest.approx(low.share)


def test_a_leaf_of_a_few_people_hides_itself_and_the_other(judged, log):
    values = np.sort(log.sequence[log.seen_rows, 0])
    own = judged(float(values[4]))
    assert [leaf.share for leaf in own.leaves] == [None, None]
    assert own.agreement is None
    assert leaf_words(own.leaves[0]) == "not shown: it would tell of a few people"


def test_rules_are_not_judged_on_whom_they_learned_from(log):
    tree = made(log, 0.0)
    tree.policy_ = tree.policy_.having_seen(log)
    other = FittedPolicy("constant", log.schema, constant=1)
    with pytest.raises(DataError, match="must be unseen"):
        report_tree(tree, other, log, told="a test", models=MODELS)


def test_json_and_text_tell_the_same(judged):
    own = judged(0.0)
    own.tree.gains_ = (TreeGain(1, -0.1, 0.01),)
    document = own.to_json()
    assert len(document["leaves"]) == 2
    assert document["estimates"][0]["name"] == "the rules"
    assert any(own.leaves[0].rule in line for line in tree_lines(own))
