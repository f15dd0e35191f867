"""The verdict on a policy that decides throughout."""

from dataclasses import replace

import pytest

from etips.evaluation.whole_stay_verdict import STAY_RULES, StayDiagnosis, judge_stays

SOUND = StayDiagnosis(
    n_stays=5000,
    effective_stays=800,
    effective_events=200,
    heaviest_stay=0.01,
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


def test_few_stays_are_not_counted():
    (reason,) = judge_stays(replace(SOUND, effective_stays=7.0)).reasons
    assert "fewer than 11" in reason
