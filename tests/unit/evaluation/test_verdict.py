"""Reliable, doubtful or unusable: each rule alone, and logs that must not pass."""

import math
from dataclasses import replace

import numpy as np
import pytest
from evaluation_logs import make_log, softmax

from etips.evaluation import RULES, Log, assess, diagnose, judge, matching_factor, view
from etips.evaluation.diagnostics import PrognosisBalance, PrognosisBalances
from etips.evaluation.verdict import measures

FACTS = ("unchecked", "own_step_hidden", "model_alone")
"""Yes or no, so without a number to tell."""


@pytest.fixture(scope="module")
def good():
    log, table, feature = make_log(n_stays=1000)
    log = replace(log, features=feature[:, None])
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
        assert ("{value" in rule.reason) == (rule.measure not in FACTS)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.measure)
def test_each_rule_alone_makes_a_good_log_doubtful_then_unusable(good, rule):
    step = 1e-9 if rule.bad == "high" else -1e-9
    assert rule.label(rule.doubtful - step) == "reliable"
    assert rule.label(rule.doubtful + step) == "doubtful"
    assert rule.label(float("nan")) == "unusable"
    if math.isfinite(rule.unusable):
        assert rule.label(rule.unusable - step) == "doubtful"
        assert rule.label(rule.unusable + step) == "unusable"
    if rule.measure in vars(good):
        found = judge(replace(good, **{rule.measure: rule.doubtful + 10 * step}))
        assert found.label == "doubtful"
        assert len(found.reasons) == 1
        far = 1e6 if rule.bad == "high" else 0.0  # as bad as can be, where nothing is unusable
        worst = rule.unusable + 10 * step if math.isfinite(rule.unusable) else far
        label = "unusable" if math.isfinite(rule.unusable) else "doubtful"
        assert judge(replace(good, **{rule.measure: worst})).label == label


@pytest.mark.parametrize("name", ["matching_factor", "uniform_factor"])
def test_a_factor_away_from_one_beyond_chance_is_noticed(good, name):
    bare = replace(good, expected=None, even_error=None)
    assert judge(replace(bare, **{name: factor(1.0)})).label == "reliable"
    assert judge(replace(bare, **{name: factor(1.2)})).label == "doubtful"
    assert judge(replace(bare, **{name: factor(0.8)})).label == "doubtful"
    assert judge(replace(bare, **{name: factor(0.3)})).label == "unusable"
    assert judge(replace(bare, **{name: factor(1.2, n=6)})).label == "reliable"  # chance


def test_chance_is_what_the_propensities_of_all_actions_lead_to_expect(good):
    wide = replace(good, expected=replace(good.expected, std_error=0.1), even_error=0.1)
    for name in ("matching_factor", "uniform_factor"):
        assert judge(replace(wide, **{name: factor(1.2)})).label == "reliable"
        assert judge(replace(wide, **{name: factor(1.3)})).label == "doubtful"


def test_a_log_that_cannot_be_checked_is_at_best_doubtful(good):
    verdict = judge(replace(good, visible=False, prognosis=None))
    assert verdict.label == "doubtful"
    assert "features" in verdict.reasons[0]
    assert "known" in verdict.reasons[0]
    assert judge(replace(good, visible=False, prognosis=None, known=True)).label == "reliable"


def test_hidden_own_steps_are_doubtful_unless_propensities_are_by_design(good):
    verdict = judge(replace(good, lag=1))
    assert verdict.label == "doubtful"
    assert "lag 1" in verdict.reasons[0]
    assert judge(replace(good, lag=1, known=True)).label == "reliable"


def test_the_word_of_a_model_is_never_reliable(good):
    verdict = judge(replace(good, headline="dm", known=True))
    assert verdict.label == "doubtful"
    assert "model" in verdict.reasons[0]


def balanced(share=0.0, z=0.0):
    return PrognosisBalance(difference=0.01, std_error=0.01, z=z, half_width_share=share)


@pytest.mark.parametrize(
    ("share", "z", "label"),
    [
        (0.2, 9.0, "reliable"),  # certain, and too small to matter
        (3.0, 1.5, "reliable"),  # chance
        (0.4, -2.5, "doubtful"),
        (3.0, 4.0, "doubtful"),
        (3.0, 6.0, "unusable"),
        (1.5, 20.0, "doubtful"),
    ],
)
def test_an_imbalance_of_the_prognosis_must_be_certain_and_matter(good, share, z, label):
    odd, even = balanced(share, z), balanced()
    assert judge(replace(good, prognosis=PrognosisBalances(odd, even))).label == label
    assert judge(replace(good, prognosis=PrognosisBalances(even, odd))).label == label
    left = PrognosisBalances(even, even, even, odd)
    assert judge(replace(good, prognosis=left)).label == label


def test_predicted_losses_may_make_up_for_a_small_imbalance_but_not_carry_the_estimate(good):
    even = balanced()
    small, large = (PrognosisBalances(balanced(s, 9.0), even, even, even) for s in (0.8, 1.5))
    assert judge(replace(good, prognosis=small)).label == "reliable"
    verdict = judge(replace(good, prognosis=large))
    assert verdict.label == "doubtful"
    assert "predicted losses" in verdict.reasons[0]


def test_the_worst_rule_decides_and_all_reasons_are_given(good):
    bad = replace(good, effective_clusters=5, clipped_share=0.1, misplaced=0.2)
    verdict = judge(bad)
    assert verdict.label == "unusable"
    assert len(verdict.reasons) == 3
    assert verdict.reasons[0] == "The evidence is worth fewer than 11 stays."


def test_missing_measures_are_left_out(good):
    bare = replace(
        good, expected=None, even_error=None, unsupported=None, calibration=None, misplaced=None
    )
    assert judge(bare).label == "reliable"


def test_own_thresholds_can_be_given(good):
    strict = tuple(
        replace(rule, doubtful=1e9) for rule in RULES if rule.measure == "effective_clusters"
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
    for value in (0.0, 3.0, 4.4, float("nan")):
        (reason,) = judge(replace(good, **{measure: value})).reasons
        assert "fewer than 11 stays" in reason
        assert not set("0123456789") & set(reason.replace("11", ""))
    (reason,) = judge(replace(good, effective_clusters=12.0)).reasons
    assert "12 stays" in reason


def confounded(seed=0, n=1500, n_actions=4):
    """A null world: the sick, who do badly whatever is done, get the first action more often."""
    generator = np.random.default_rng([31, seed])
    severity = generator.normal(size=n)
    table = softmax(np.outer(severity, [1.0, 0.0, -0.3, 0.2]))
    action = (generator.random(n)[:, None] > table.cumsum(axis=1)).sum(axis=1).clip(max=3)
    loss = (generator.random(n) < 1 / (1 + np.exp(-1.2 * severity))).astype(float)
    return severity, table, action, loss


def stated(loss, action, table, **more):
    rows = np.arange(loss.size)
    return Log(loss, action, table[rows, action], rows, 4, propensities=table, **more)


def test_calibrated_propensities_that_ignore_a_visible_reason_are_not_reliable():
    severity, table, action, loss = confounded()
    always = np.tile([1.0, 0, 0, 0], (loss.size, 1))
    plain = np.tile(np.bincount(action, minlength=4) / loss.size, (loss.size, 1))
    wrong = assess(stated(loss, action, plain, features=severity[:, None]), always)
    assert wrong.verdict.label != "reliable"
    assert wrong.diagnostics.prognosis.plain.difference > 0.05  # the sick weigh too much
    right = assess(stated(loss, action, table, features=severity[:, None]), always)
    assert right.verdict.label == "reliable"
    assert assess(stated(loss, action, table), always).verdict.label == "doubtful"  # not checked


def test_two_models_that_both_miss_the_reason_are_not_reliable():
    severity, _, action, loss = confounded(seed=1)
    plain = np.tile(np.bincount(action, minlength=4) / loss.size, (loss.size, 1))
    means = np.tile([loss[action == k].mean() for k in range(4)], (loss.size, 1))
    log = stated(loss, action, plain, features=severity[:, None], predicted=means)
    always = np.tile([0, 0, 1.0, 0], (loss.size, 1))
    for headline in ("sndr", "dr", "snips"):
        assert assess(log, always, estimators=(headline,)).verdict.label != "reliable"


def test_a_right_outcome_model_does_not_make_wrong_weights_reliable():
    severity, _, action, loss = confounded(seed=2)
    plain = np.tile(np.bincount(action, minlength=4) / loss.size, (loss.size, 1))
    truth = np.tile(1 / (1 + np.exp(-1.2 * severity))[:, None], (1, 4))
    log = stated(loss, action, plain, features=severity[:, None], predicted=truth)
    verdict = assess(log, np.tile([1.0, 0, 0, 0], (loss.size, 1))).verdict
    assert verdict.label == "doubtful"
    assert any("predicted losses" in reason for reason in verdict.reasons)


def test_a_uniform_table_does_not_pass_where_actions_are_not_uniform():
    generator = np.random.default_rng(5)
    action = generator.choice(25, p=[0.5] + [0.5 / 24] * 24, size=4000)
    loss = (generator.random(4000) < 0.4).astype(float)
    flat = np.full((4000, 25), 0.04)
    log = Log(
        loss, action, flat[:, 0], np.arange(4000), 25, propensities=flat, features=loss[:, None] * 0
    )
    for policy in (flat, np.eye(25)[np.zeros(4000, int)], np.eye(25)[action % 3]):
        verdict = assess(log, policy).verdict
        assert verdict.label != "reliable"
        assert any("more or less often than stated" in reason for reason in verdict.reasons)


def test_a_rare_outcome_in_the_heaviest_weights_is_told_by_a_wide_interval():
    """The policy errs where clinicians seldom do, so its few losses carry the heaviest weights."""
    generator = np.random.default_rng(8)
    label, scores = generator.integers(0, 3, 1000), 2 * generator.normal(size=(1000, 3))
    scores[np.arange(1000), label] += 2
    table = softmax(scores)
    action = (generator.random(1000)[:, None] > table.cumsum(axis=1)).sum(axis=1).clip(max=2)
    log = Log(
        (action != label) * 1.0, action, table[np.arange(1000), action], np.arange(1000), 3,
        propensities=table, known=True,
    )  # fmt: skip
    chosen = np.where(generator.random(1000) < 0.97, label, (label + 1) % 3)
    found = assess(log, np.eye(3)[chosen])
    assert found.diagnostics.weighted_events < 8
    head = found.estimates[0]
    assert head.low <= (chosen != label).mean() <= head.high
    assert head.high > 0.1
    even = np.full((1000, 3), 1 / 3)
    plain = Log(
        (action != label) * 1.0, generator.integers(0, 3, 1000), even[:, 0], np.arange(1000), 3,
        propensities=even, known=True,
    )  # fmt: skip
    small = assess(plain, np.eye(3)[chosen])
    assert small.verdict.label == "reliable"


def few_matched_events(seed):
    """A policy with a risk of 0.02, of which a log of this size shows five events on average."""
    generator = np.random.default_rng([21, seed])
    table = np.tile([0.25, 0.375, 0.375], (1000, 1))
    action = (generator.random(1000)[:, None] > table.cumsum(axis=1)).sum(axis=1)
    loss = (generator.random(1000) < np.where(action == 0, 0.02, 0.3)).astype(float)
    known = {"propensities": table, "known": True}
    return Log(loss, action, table[np.arange(1000), action], np.arange(1000), 3, **known)


def test_no_rule_prefers_the_samples_that_saw_more_of_the_matched_events():
    """Such a rule let pass 8 % of these logs, of which 74 % covered; all of them do in 96 %."""
    first = np.tile([1.0, 0, 0], (1000, 1))
    found = [assess(few_matched_events(seed), first, estimators=("snips",)) for seed in range(60)]
    reliable = [f.estimates[0] for f in found if f.verdict.label == "reliable"]
    assert len(reliable) >= 50
    assert np.mean([e.low <= 0.02 <= e.high for e in reliable]) >= 0.9


def test_a_policy_that_abstains_everywhere_is_the_clinicians_whatever_the_propensities():
    severity, _, action, loss = confounded(seed=3)
    plain = np.tile(np.bincount(action, minlength=4) / loss.size, (loss.size, 1))
    log = stated(loss, action, plain, features=severity[:, None])
    silent = np.ones(loss.size, dtype=bool)
    found = assess(log, np.tile([1.0, 0, 0, 0], (loss.size, 1)), silent)
    assert found.verdict.label == "reliable"
    assert found.estimates[0].risk == pytest.approx(loss.mean())
    assert (found.gain.low, found.gain.high) == pytest.approx((0, 0), abs=1e-12)
