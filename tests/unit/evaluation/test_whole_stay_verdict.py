"""The verdict on a policy that decides throughout."""

from dataclasses import replace

import numpy as np
import pytest
from evaluation_logs import make_log, softmax

from etips.evaluation import diagnose, judge, matching_factor, view
from etips.evaluation.verdict import Verdict
from etips.evaluation.whole_stay_verdict import (
    INHERITED,
    OF_ONE_DECISION,
    STAY_RULES,
    StayDiagnosis,
    inherit,
    judge_stays,
)

SOUND = StayDiagnosis(
    n_stays=5000,
    effective_stays=800,
    effective_events=200,
    heaviest_stay=0.01,
    ratio_error=0.0,
    weight_shift=0.0,
    capped_share=0.0,
    uncorrected_share=0.0,
    n_corrected=12,
    longest=12,
    modelled=True,
)


def test_a_sound_diagnosis_is_reliable():
    assert judge_stays(SOUND).label == "reliable"
    assert judge_stays(SOUND).reasons == ()


@pytest.mark.parametrize("rule", STAY_RULES, ids=lambda rule: rule.measure)
def test_every_rule_speaks_at_its_thresholds(rule):
    for label, at in (("doubtful", rule.doubtful), ("unusable", rule.unusable)):
        verdict = judge_stays(replace(SOUND, **{rule.measure: at}))
        assert verdict.label == label
        assert len(verdict.reasons) == 1


def test_an_amount_has_no_rarer_outcome_to_count():
    assert judge_stays(replace(SOUND, effective_events=None)).label == "reliable"
    assert judge_stays(replace(SOUND, weight_shift=None)).label == "reliable"


def test_few_stays_are_not_counted():
    (reason,) = judge_stays(replace(SOUND, effective_stays=7.0)).reasons
    assert "fewer than 11" in reason


@pytest.fixture(scope="module")
def one_decision():
    log, table, feature = make_log(n_stays=1000)
    log = replace(log, features=feature[:, None])
    return diagnose(log, view(log, softmax(0.2 * np.log(table))))


def test_rare_actions_that_the_policy_does_not_take_leave_whole_stays_alone(one_decision):
    """As in ICU-Sepsis: weights of drawing evenly are off, those of the policy are not."""
    uneven = np.full(400, 0.5) + 0.01 * np.random.default_rng(0).standard_normal(400)
    rare = replace(
        one_decision, uniform_factor=matching_factor(uneven, np.arange(400)), even_error=None
    )
    assert judge(rare).label != "reliable"
    assert inherit(Verdict("reliable", ()), rare).label == "reliable"


def test_what_is_wrong_with_the_weights_of_one_decision_is_wrong_with_their_products(one_decision):
    hidden = replace(one_decision, lag=1, known=False)
    verdict = inherit(Verdict("reliable", ()), hidden)
    assert verdict.label == "doubtful"
    (reason,) = verdict.reasons
    assert reason.startswith("At one decision: Histories end a step before")
    worse = inherit(Verdict("unusable", ("Few stays.",)), hidden)
    assert worse.label == "unusable"
    assert worse.reasons[0] == "Few stays."


def test_no_rule_is_left_out_that_does_not_exist():
    assert len(INHERITED) + len(OF_ONE_DECISION) == len(judge.__kwdefaults__["rules"])
