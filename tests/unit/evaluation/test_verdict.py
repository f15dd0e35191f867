from dataclasses import replace

import numpy as np
import pytest
from evaluation_logs import make_log, softmax

from etips.evaluation import RULES, Log, diagnose, judge, matching_factor, view
from etips.evaluation.verdict import measures


@pytest.fixture
def good():
    log, table, _ = make_log(n_stays=1000)
    return diagnose(log, view(log, softmax(0.2 * np.log(table))))


def factor(mean, *, n=400):
    """A matching factor of `mean` with a standard error of about 0.03."""
    weight = mean + 0.6 * np.random.default_rng(0).standard_normal(n)
    return matching_factor(np.maximum(weight - weight.mean() + mean, 0), np.arange(n))


def test_a_good_log_is_reliable_without_reasons_but_with_the_caveat(good):
    verdict = judge(good)
    assert verdict.label == "reliable"
    assert verdict.reasons == ()
    assert "sensitivity" in verdict.caveat


def test_every_rule_names_a_measure_and_its_source(good):
    assert {rule.measure for rule in RULES} == set(measures(good))
    for rule in RULES:
        assert rule.because
        assert "{value" in rule.reason


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.measure)
def test_each_rule_alone_makes_a_good_log_doubtful_then_unusable(good, rule):
    step = 1e-9 if rule.bad == "high" else -1e-9
    for label, value in (("doubtful", rule.doubtful), ("unusable", rule.unusable)):
        assert rule.label(value - step) != label
        assert rule.label(value + step) == label
        assert rule.label(float("nan")) == "unusable"
    if rule.measure in vars(good):
        found = judge(replace(good, **{rule.measure: rule.doubtful + 10 * step}))
        assert found.label == "doubtful"
        assert len(found.reasons) == 1
        assert judge(replace(good, **{rule.measure: rule.unusable + 10 * step})).label == "unusable"


@pytest.mark.parametrize("name", ["matching_factor", "uniform_factor"])
def test_a_factor_away_from_one_beyond_chance_is_noticed(good, name):
    assert judge(replace(good, **{name: factor(1.0)})).label == "reliable"
    assert judge(replace(good, **{name: factor(1.2)})).label == "doubtful"
    assert judge(replace(good, **{name: factor(0.8)})).label == "doubtful"
    assert judge(replace(good, **{name: factor(0.3)})).label == "unusable"
    assert judge(replace(good, **{name: factor(1.2, n=6)})).label == "reliable"  # chance


def test_the_worst_rule_decides_and_all_reasons_are_given(good):
    bad = replace(good, effective_share=0.005, clipped_share=0.1, unsupported=0.1)
    verdict = judge(bad)
    assert verdict.label == "unusable"
    assert len(verdict.reasons) == 3
    assert verdict.reasons[0] == "Only 0.5% of the decisions speak about this policy."


def test_missing_measures_are_left_out(good):
    bare = replace(good, expected_share=None, unsupported=None, calibration_gap=None)
    assert judge(bare).label == "reliable"


def test_own_thresholds_can_be_given(good):
    strict = tuple(
        replace(rule, doubtful=2.0) for rule in RULES if rule.measure == "effective_share"
    )
    assert judge(good, rules=strict).label == "doubtful"


def test_a_policy_that_never_matches_is_unusable():
    log = Log(
        loss=np.tile([0.0, 1.0], 50),
        action=np.zeros(100, dtype=int),
        propensity=np.full(100, 0.5),
        cluster=np.arange(100),
        n_actions=2,
    )
    assert judge(diagnose(log, view(log, np.tile([0.0, 1.0], (100, 1))))).label == "unusable"


def test_a_loss_that_never_varies_is_not_reliable():
    log, table, _ = make_log(n_stays=1000)
    fields = {name: getattr(log, name) for name in ("action", "propensity", "cluster")}
    constant = Log(loss=np.ones(log.n_decisions), n_actions=4, **fields)
    verdict = judge(diagnose(constant, view(constant, table)))
    assert verdict.label == "unusable"
    assert any("rarer outcome" in reason for reason in verdict.reasons)


@pytest.mark.parametrize("measure", ["effective_clusters", "effective_events"])
def test_p2_a_reason_never_counts_a_few_people(good, measure):
    """P2: with equal weights an effective number is a count."""
    for value in (0.0, 3.0, 10.4, float("nan")):
        (reason,) = judge(replace(good, **{measure: value})).reasons
        assert "fewer than 11 stays" in reason
        assert not set("0123456789") & set(reason.replace("11", ""))
    (reason,) = judge(replace(good, **{measure: 12.0})).reasons
    assert "12 stays" in reason
