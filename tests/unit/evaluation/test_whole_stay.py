"""Policies that decide throughout."""

from dataclasses import replace

import numpy as np
import pytest
from evaluation_logs import make_log, softmax

from etips.errors import DataError, SettingError
from etips.evaluation import diagnose, judge, matching_factor, view
from etips.evaluation.inference.checks import code_clusters
from etips.evaluation.inference.evidence import Evidence
from etips.evaluation.verdict import (
    STAY_RULES,
    Verdict,
    inherit,
    judge_by,
)
from etips.evaluation.whole_stay import (
    Cautious,
    StayDiagnosis,
    StayLog,
    allowance,
    assess_stays,
    fqe,
    imbalance,
    logged,
    pdwis,
    ratio_error,
    silent_values,
    usual_error,
    wdr,
    weight_shift,
)
from etips.evaluation.whole_stay_course import CAP, Course, make_ratios


def random_log(n_stays=300, seed=0, outcome="sum", longest=6, spread=0.4):
    rng = np.random.default_rng(seed)
    stay = np.repeat(np.arange(n_stays), rng.integers(1, longest + 1, n_stays))
    n = stay.size
    loss = (rng.random(n) < 0.4).astype(float)
    weight = np.exp(rng.normal(0, spread, n))
    return StayLog(
        Course.of(stay, loss, outcome),
        weight,
        stay,
        value=rng.random(n),
        taken=rng.random(n),
    )


def plainly(log):
    """Thomas and Brunskill's formulas in loops, ended stays padded."""
    course = log.course
    n_stays, longest = course.n_stays, course.lengths.max()
    ratio = np.ones((n_stays, longest + 1))
    charge, value, taken = np.zeros((3, n_stays, longest + 1))
    for place, (stay, number) in enumerate(zip(course.stay, course.number, strict=True)):
        ratio[stay, number + 1 :] = ratio[stay, number] * log.weight[place]
        charge[stay, number] = course.charge[place]
        value[stay, number], taken[stay, number] = log.value[place], log.taken[place]
    shares = ratio / ratio.sum(axis=0)
    weighed = robust = 0.0
    for t in range(longest):
        weighed += shares[:, t + 1] @ charge[:, t]
        robust += shares[:, t + 1] @ (charge[:, t] - taken[:, t]) + shares[:, t] @ value[:, t]
    return weighed, robust


@pytest.mark.parametrize("outcome", ["sum", "last"])
def test_estimates_agree_with_loops(outcome):
    log = random_log(outcome=outcome)
    weighed, robust = plainly(log)
    assert pdwis(log).value == pytest.approx(weighed)
    assert wdr(log).value == pytest.approx(robust)
    assert fqe(log).value == pytest.approx(log.value[log.course.first].mean())
    assert logged(log).value == pytest.approx(log.course.outcomes.mean())


def test_a_policy_that_always_abstains_has_the_clinicians_outcome_and_no_gain():
    log = random_log()
    n = log.course.stay.size
    table = np.random.default_rng(1).random((n, 3))
    value, taken = silent_values(
        table, np.full((n, 3), 1 / 3), np.zeros(n, np.int64), np.ones(n, bool)
    )
    silent = StayLog(log.course, np.ones(n), log.cluster, value, taken)
    assessment = assess_stays(silent)
    assert assessment.estimates[0].risk == pytest.approx(assessment.clinicians.risk)
    assert assessment.gain.difference == pytest.approx(0, abs=1e-12)
    assert assessment.gain.std_error == pytest.approx(0, abs=1e-9)
    assert not assessment.better


def test_the_headline_is_doubly_robust_and_without_a_model_that_of_ratios():
    log = random_log()
    names = [e.estimator for e in assess_stays(log).estimates]
    assert names == ["wdr", "fqe", "pdwis"]
    bare = StayLog(log.course, log.weight, log.cluster)
    assert [e.estimator for e in assess_stays(bare).estimates] == ["pdwis"]


def test_repeating_the_stays_of_a_patient_changes_no_error():
    log = random_log()
    again = np.concatenate([np.arange(log.course.stay.size)] * 2)
    stay = np.concatenate([log.course.stay, log.course.stay + log.course.n_stays])
    twice = StayLog(
        Course(stay, log.course.charge[again]),
        log.weight[again],
        log.cluster[again],
        log.value[again],
        log.taken[again],
    )
    one, two = wdr(log), wdr(twice)
    assert two.value == pytest.approx(one.value)
    assert two.std_error == pytest.approx(one.std_error)


def test_limits_grow_where_the_error_rests_on_few_stays():
    heavy = np.zeros((200, 1))
    heavy[:3, 0] = (1, -1, 1.5)
    even = np.random.default_rng(0).normal(size=(200, 1))
    reach = []
    for numbers in (heavy, even):
        own = Evidence(numbers, np.ones((200, 1)), np.ones(1), np.arange(200))
        low, high = Cautious()(own)
        reach.append((high - low) / own.std_error)
    assert reach[0] > 1.4 * reach[1]


def test_limits_stay_within_bounds_and_have_a_width():
    log = random_log(outcome="last")
    estimate = assess_stays(log).estimates[0]
    assert 0 <= estimate.low < estimate.high <= 1


def uniform_log(n_stays, wrong=0.0, seed=0):
    """Five actions at random, eight decisions; the policy always takes the first."""
    rng = np.random.default_rng(seed)
    stay = np.repeat(np.arange(n_stays), 8)
    follows = rng.integers(0, 5, stay.size) == 0
    loss = rng.normal(1, 0.5, stay.size)
    course = Course.of(stay, loss, "sum")
    to_go = (8.0 - course.number) * (1 + wrong)
    return StayLog(course, np.where(follows, 5.0, 0.0), stay, to_go, to_go)


def test_decisions_that_no_ratio_corrects_widen_the_interval_and_are_told():
    right, wrong = assess_stays(uniform_log(2000)), assess_stays(uniform_log(2000, wrong=0.2))
    assert right.diagnosis.n_corrected == 2
    assert right.diagnosis.uncorrected_share == pytest.approx(0.75)
    assert right.verdict.label == "doubtful"
    assert any("rests on a model alone" in reason for reason in right.verdict.reasons)
    widths = [a.estimates[0].high - a.estimates[0].low for a in (right, wrong)]
    assert widths[1] > widths[0] + 1  # predictions wrong by 0.2 a decision may go on so
    assert wrong.estimates[0].low < 8 < wrong.estimates[0].high


def test_nothing_is_allowed_for_where_all_is_corrected():
    assert allowance(random_log()) == 0
    assert allowance(uniform_log(50)) == np.inf


def test_better_is_said_only_of_an_interval_below_zero():
    log = random_log(n_stays=4000, spread=0.0)
    lower = StayLog(log.course, log.weight, log.cluster, log.value, log.value + 0.2)
    better, not_better = assess_stays(lower), assess_stays(log)
    assert better.better == (better.gain.high < 0)
    assert better.better
    assert not_better.better == (not_better.gain.high < 0)


def test_a_log_that_lacks_heavy_surprises_does_not_trust_its_own_error():
    log = random_log(n_stays=400, spread=1.0)
    surprises = np.zeros((log.course.n_stays, int(log.course.lengths.max())))
    surprises[log.course.stay, log.course.number] = log.surprise
    excess = 1 / log.ratios.effective - 1 / log.course.n_stays
    by_hand = np.sqrt((((surprises**2).mean(axis=0) * excess)[: log.ratios.n_terms]).sum())
    assert usual_error(log) == pytest.approx(by_hand)
    headline = wdr(log)
    own = Cautious()(headline)
    allowed = Cautious(least_error=3 * headline.std_error)(headline)
    assert allowed[0] < own[0]
    assert allowed[1] > own[1]
    shown = assess_stays(log).estimates[0]
    assert shown.high - shown.risk >= 1.95 * usual_error(log)


def test_ratios_that_are_all_alike_cost_nothing():
    log = random_log()
    alike = StayLog(log.course, np.ones(log.weight.size), log.cluster, log.value, log.taken)
    assert usual_error(alike) == 0


def two_kinds(n_stays, *, stated, seed=0):
    """Four visits; a visible kind of patient moves both loss and treatment, two actions.

    The policy draws evenly; `stated` are the propensities of action 1 by kind. Predictions are
    right.
    """
    rng = np.random.default_rng(seed)
    stay = np.repeat(np.arange(n_stays), 4)
    kind = rng.integers(0, 2, n_stays)[stay]
    action = (rng.random(stay.size) < np.array([0.3, 0.7])[kind]).astype(int)
    loss = (rng.random(stay.size) < 0.2 + 0.4 * kind).astype(float)
    course = Course.of(stay, loss, "sum")
    one = np.asarray(stated)[kind]
    weight = 0.5 / np.where(action == 1, one, 1 - one)
    to_go = (0.2 + 0.4 * kind) * (4.0 - course.number)
    return StayLog(course, weight, stay, to_go, to_go)


def test_wrong_propensities_shift_what_they_should_not():
    right, wrong = two_kinds(2000, stated=(0.3, 0.7)), two_kinds(2000, stated=(0.5, 0.55))
    assert abs(imbalance(right).value) < 3 * imbalance(right).std_error
    assert weight_shift(right, 0.1) == 0
    assert assess_stays(right).verdict.label == "reliable"
    assert weight_shift(wrong, 0.001) > 1
    assert weight_shift(wrong, 0.0) > 1
    assert ratio_error(right) == 0


def test_the_headline_is_the_weighed_losses_and_the_imbalance():
    log = random_log(spread=0.1)
    assert wdr(log).value == pytest.approx(pdwis(log).value + imbalance(log).value)


def test_a_mean_ratio_away_from_one_beyond_chance_is_told():
    log = random_log(n_stays=2000, spread=0.1)
    low = StayLog(log.course, 0.9 * log.weight, log.cluster, log.value, log.taken)
    assert ratio_error(low) > 0.2
    assert any("mean ratio" in reason for reason in assess_stays(low).verdict.reasons)


def test_without_a_model_nothing_is_shifted():
    log = random_log()
    assert weight_shift(StayLog(log.course, log.weight, log.cluster), 1.0) is None
    assert weight_shift(uniform_log(50), 1.0) is None


STAY, LOSS = [7, 7, 7, 2, 5, 5], [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]


def test_a_sum_charges_every_decision_and_the_rest_of_the_stay_is_to_go():
    course = Course.of(STAY, LOSS, "sum")
    assert course.n_stays == 3
    assert course.number.tolist() == [0, 1, 2, 0, 0, 1]
    assert course.lengths.tolist() == [3, 1, 2]
    assert course.ends.tolist() == [False, False, True, True, False, True]
    assert course.to_go.tolist() == [7, 6, 4, 8, 48, 32]
    assert course.outcomes.tolist() == [7, 8, 48]


def test_the_last_loss_is_charged_to_the_last_decision_alone():
    course = Course.of(STAY, LOSS, "last")
    assert course.charge.tolist() == [0, 0, 4, 8, 0, 32]
    assert course.to_go.tolist() == [4, 4, 4, 8, 32, 32]
    assert course.outcomes.tolist() == [4, 8, 32]


@pytest.mark.parametrize(
    ("loss", "outcome", "share"),
    [
        ([0, 1, 1], "last", True),
        ([0, 1, 1], "sum", False),
        ([0, 0, 1], "sum", True),
        ([0, 0.4, 0.6], "sum", True),
        ([-0.1, 0, 0.5], "sum", False),
    ],
)
def test_outcomes_within_zero_and_one_are_shares(loss, outcome, share):
    assert Course.of([0, 0, 0], loss, outcome).is_share is share


def test_a_stay_in_two_pieces_is_refused_without_its_name():
    with pytest.raises(DataError, match="one after the other; 1 of 3") as told:
        Course.of([901, 902, 901], np.zeros(3), "sum")
    assert "901" not in str(told.value)


def test_an_unknown_outcome_is_refused():
    with pytest.raises(SettingError, match="outcome: must be sum or last"):
        Course.of([0], [1.0], "mean")


def ratios(stay, weight, patients=None):
    course = Course.of(stay, np.zeros(len(stay)), "sum")
    patient = np.arange(course.n_stays) if patients is None else patients
    return make_ratios(course, np.asarray(weight, float), code_clusters(patient, n=course.n_stays))


def test_ratios_multiply_within_a_stay_and_ended_stays_keep_theirs():
    made = ratios([0, 0, 0, 1, 2, 2], [2, 0.5, 3, 0.2, 0, 5])
    assert made.each == pytest.approx([2, 1, 3, 0.2, 0, 0])
    assert made.below == pytest.approx(np.array([[2, 1, 3], [0.2, 0.2, 0.2], [0, 0, 0]]))
    assert made.above(np.ones(6)) == pytest.approx(np.array([[2, 1, 3], [0.2, 0, 0], [0, 0, 0]]))


def test_ratios_are_cut_and_never_overflow():
    stay = np.repeat(np.arange(100), 400)
    weight = np.full(stay.size, 10.0)
    made = ratios(stay, weight)
    assert made.each.max() == pytest.approx(CAP * 10)
    assert np.isfinite(made.uncut.below**2).all()


def test_late_decisions_share_terms_that_cover_each_once():
    lengths = np.array([500, 3, 40])
    made = ratios(np.repeat(np.arange(3), lengths), np.ones(lengths.sum()))
    assert made.edges[0] == 0
    assert made.edges[-1] == 500
    assert (np.diff(made.edges) > 0).all()
    assert made.edges.size < 80
    assert made.above(np.ones(lengths.sum())).sum(axis=1) == pytest.approx(lengths)
    assert made.below == pytest.approx(1.0)


def test_what_hardly_a_stay_has_followed_is_left_out():
    rng = np.random.default_rng(0)
    stay = np.repeat(np.arange(2000), 8)
    made = ratios(stay, np.where(rng.integers(0, 5, stay.size) == 0, 5.0, 0.0))
    assert made.effective[:3] == pytest.approx([400, 80, 16], rel=0.5)
    assert made.n_terms == made.trusted == 2


def test_a_policy_that_nobody_follows_has_no_term():
    made = ratios([0, 1, 2], [0, 0, 0])
    assert made.n_terms == 0
    assert made.trusted == 0


SOUND = StayDiagnosis(
    effective_stays=800,
    effective_events=200,
    heaviest_stay=0.01,
    ratio_error=0.0,
    weight_shift=0.0,
    capped_share=0.0,
    uncorrected_share=0.0,
    n_corrected=12,
    longest=12,
)


def judge_stays(diagnosis):
    return judge_by(STAY_RULES, vars(diagnosis))


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
