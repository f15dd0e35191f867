"""The outcome of stays under a policy that decides throughout."""

import numpy as np
import pytest

from etips.evaluation.inference.evidence import Evidence
from etips.evaluation.whole_stay import (
    Cautious,
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
from etips.evaluation.whole_stay_course import Course


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
    assert not assessment.gain.better


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
    assert better.gain.better == (better.gain.high < 0)
    assert better.gain.better
    assert not_better.gain.better == (not_better.gain.high < 0)


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
