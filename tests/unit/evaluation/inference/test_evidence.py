"""Evidence, exposure, estimates and their differences."""

import math
from dataclasses import replace

import numpy as np
import pytest
from evaluation_logs import cases, gain_of
from hypothesis import given, settings
from scipy import stats

from etips.errors import DataError, SettingError
from etips.evaluation import (
    Contrast,
    Estimate,
    Evidence,
    Logit,
    Percentile,
    Studentised,
    Wald,
    atenp,
    difference,
    effective_size,
    holm,
    logged_risk,
    require_unseen,
    safe_improvement,
    sndr,
    snips,
)
from etips.evaluation.inference.checks import code_clusters
from etips.evaluation.inference.evidence import (
    divide,
    expose,
    ratio_of,
)
from etips.evaluation.inference.intervals import EffectiveCount, p_of_zero

ONE = np.ones(4)
CLUSTERS = code_clusters([5, 5, 9, 9], n=4)


def test_a_ratio_of_totals_by_hand():
    evidence = ratio_of(CLUSTERS, [(np.array([1.0, 2.0, 3.0, 4.0]), ONE)], bounds=(0, 9))
    assert evidence.numerator.tolist() == [[3.0], [7.0]]
    assert evidence.denominator.tolist() == [[2.0], [2.0]]
    assert (evidence.value, evidence.n_clusters, evidence.bounds) == (2.5, 2, (0, 9))
    assert evidence.influence.tolist() == [-0.5, 0.5]
    assert evidence.jackknife.tolist() == [-1.0, 1.0]  # 2.5 - 3.5 and 2.5 - 1.5
    assert evidence.std_error == 1.0
    counted = ratio_of(CLUSTERS, [(np.array([1.0, 2.0, 3.0, 4.0]), ONE)], count=2 * ONE)
    assert counted.value == 2.5
    signed = ratio_of(CLUSTERS, [(2 * ONE, ONE), (ONE, ONE)], sign=(1.0, -1.0))
    assert (signed.value, signed.std_error) == (1.0, 0.0)


@given(cases())
@settings(max_examples=100, deadline=None)
def test_influences_sum_to_zero_and_the_jackknife_is_leaving_out(case):
    evidence = snips(case.loss, case.weight, case.cluster).evidence
    assert evidence.influence.sum() == pytest.approx(0, abs=1e-9)
    for place in range(evidence.n_clusters):
        kept = np.arange(evidence.n_clusters) != place
        below = evidence.denominator[kept].sum(axis=0)
        if below[0] > 1e-9:
            left = float(evidence.values(evidence.numerator[kept].sum(axis=0), below))
            assert evidence.jackknife[place] == pytest.approx(evidence.value - left, abs=1e-6)


@given(cases())
@settings(max_examples=200, deadline=None)
def test_standard_error_is_the_jackknife_over_clusters(case):
    def left_out(estimator, cluster):
        rows = np.flatnonzero(case.cluster != cluster)
        loss, weight, model = case.loss[rows], case.weight[rows], case.take(rows)
        if estimator is snips:
            return weight @ loss / weight.sum()
        correction = weight @ (loss - model.predicted) / weight.sum()
        return model.predicted_policy.mean() + correction

    for estimator, options in ((snips, {}), (sndr, case.model)):
        found = estimator(case.loss, case.weight, case.cluster, **options).std_error
        risks = np.array([left_out(estimator, c) for c in np.unique(case.cluster)])
        k = risks.size
        expected = math.sqrt((k - 1) / k * ((risks - risks.mean()) ** 2).sum())
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_nothing_below_the_line_is_nan_and_a_single_carrier_has_no_finite_error():
    empty = Evidence(np.ones((2, 1)), np.zeros((2, 1)), np.ones(1), np.arange(2))
    assert math.isnan(empty.value)
    assert math.isnan(empty.std_error)
    alone = Evidence(np.array([[1.0], [0.0]]), np.array([[2.0], [0.0]]), np.ones(1), np.arange(2))
    assert (alone.value, alone.std_error) == (0.5, math.inf)
    assert np.isnan(divide(np.ones(2), np.array([0.0, 2.0]))).tolist() == [True, False]


def test_a_paired_difference_needs_the_same_clusters():
    first = ratio_of(CLUSTERS, [(2 * ONE, ONE)])
    second = ratio_of(CLUSTERS, [(ONE, ONE)])
    assert first.minus(second).value == 1.0
    other = ratio_of(code_clusters([5, 5, 8, 8], n=4), [(ONE, ONE)])
    with pytest.raises(DataError, match=r"^cluster: must be the same in both"):
        first.minus(other)


def test_exposure_by_hand():
    clusters = code_clusters([0, 0, 1, 2, 2, 3], n=6)
    loss = np.array([1.0, 1, 0, 0, 0, 1])
    found = expose(loss, np.array([0.5, 0.5, 3, 0, 0, 0]), None, clusters, (0.0, 1.0))
    assert found.share == pytest.approx([0.25, 0.75, 0, 0])
    assert found.rate == found.squares == pytest.approx(0.0625 + 0.5625)
    assert (found.above, found.below) == pytest.approx((0.75, 0.25))
    assert (found.second, found.third) == pytest.approx((0.25, 0))
    assert expose(loss, 0 * loss, None, clusters, None) is None


def test_a_decision_that_counts_twice_is_two_decisions():
    clusters = code_clusters([0, 0, 1, 2], n=4)
    loss, weight = np.array([1.0, 1, 0, 3]), np.array([2.0, 2, 1, 4])
    twice = expose(loss, weight, None, clusters, None)
    counted = expose(
        loss[1:], weight[1:], np.array([2.0, 1, 1]), code_clusters([0, 1, 2], n=3), None
    )
    assert counted.share == pytest.approx(twice.share)
    assert counted.scarcity == pytest.approx(twice.scarcity)
    assert counted.above == pytest.approx(twice.above)


def test_a_policy_far_better_than_the_clinicians_is_not_given_their_spread():
    matched = np.arange(4000) % 4 == 0
    loss = np.where(matched, 0.0, (np.arange(4000) % 3 == 0).astype(float))
    clusters = code_clusters(np.arange(4000), n=4000)
    found = expose(loss, 4.0 * matched, None, clusters, (0.0, 1.0))
    assert found.second == pytest.approx(0.004, rel=0.01)  # none of 1000: at most 4
    assert found.third == pytest.approx(0.004, rel=0.02)
    assert expose(loss, np.ones(4000), None, clusters, (0.0, 1.0)).second > 0.15
    worse = expose(1 - loss, 4.0 * matched, None, clusters, (0.0, 1.0))
    assert (worse.second, worse.third) == pytest.approx((found.second, -found.third))


ESTIMATE_CLUSTERS = code_clusters([0, 0, 1, 2], n=4)
LOSS = np.array([1.0, 0.0, 1.0, 0.0])


def test_an_estimate_is_the_value_of_its_evidence_with_an_interval_around_it():
    weight = np.array([1.0, 1.0, 2.0, 0.0])
    evidence = ratio_of(ESTIMATE_CLUSTERS, [(LOSS * weight, weight)])
    estimate = Estimate.of("own", evidence, weight=weight, count=None, interval=Wald(0.8))
    assert (estimate.estimator, estimate.risk) == ("own", 0.75)
    assert (estimate.low, estimate.high) == Wald(0.8)(evidence)
    assert estimate.std_error == evidence.std_error > 0
    assert (estimate.n_decisions, estimate.n_clusters) == (4, 3)
    assert estimate.effective_n == pytest.approx(16 / 6)
    assert estimate.tuning is None
    assert "evidence" not in repr(estimate)


def test_effective_size_of_equal_weights_is_their_number():
    assert effective_size(np.full(7, 0.3)) == pytest.approx(7)
    assert effective_size(np.array([1.0, 0.0, 0.0])) == 1
    assert effective_size(np.zeros(3)) == 0


def test_effective_size_with_counts_is_that_of_repetition():
    weight, count = np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 3.0])
    repeated = np.repeat(weight, count.astype(int))
    assert effective_size(weight, count=count) == pytest.approx(effective_size(repeated))


CLUSTER = np.array([0, 0, 1, 1, 2, 2])
CONTRAST_LOSS = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0])
ACTION = np.array([0, 1, 1, 0, 2, 2])
# the likeliest actions are 0, 0, 1, 2, 2, 0: decisions 0, 2 and 4 match
PROBABILITIES = np.array(
    [[0.5, 0.3, 0.2], [0.6, 0.4, 0], [0, 1, 0], [0, 0.1, 0.9], [0.2, 0.2, 0.6], [0.7, 0, 0.3]]
)


def test_atenp_is_matched_minus_unmatched_with_both_sizes():
    found = atenp(CONTRAST_LOSS, ACTION, PROBABILITIES, CLUSTER)
    assert found.difference == pytest.approx(2 / 3 - 2 / 3)
    assert (found.n_matched, found.n_unmatched, found.n_clusters) == (3, 3, 3)
    other = atenp(CONTRAST_LOSS * np.array([3, 1, 1, 1, 1, 1]), ACTION, PROBABILITIES, CLUSTER)
    assert other.difference == pytest.approx(4 / 3 - 2 / 3)
    assert other.low < other.difference < other.high


def test_atenp_with_an_empty_group_is_undefined_but_counted():
    found = atenp(CONTRAST_LOSS, PROBABILITIES.argmax(axis=1), PROBABILITIES, CLUSTER)
    assert math.isnan(found.difference)
    assert (found.n_matched, found.n_unmatched) == (6, 0)


def test_atenp_of_equal_losses_keeps_a_width():
    found = atenp(0 * CONTRAST_LOSS, ACTION, PROBABILITIES, np.arange(6))
    assert (found.difference, found.std_error) == (0, 0)
    assert found.low < 0 < found.high


@given(cases())
@settings(max_examples=100, deadline=None)
def test_a_paired_difference_is_the_difference_and_reverses(case):
    first = snips(case.loss, case.weight, case.cluster)
    second = logged_risk(case.loss, case.cluster)
    forth, back = difference(first, second), difference(second, first)
    assert forth.difference == pytest.approx(first.risk - second.risk, abs=1e-12)
    assert forth.std_error == pytest.approx(back.std_error)
    assert (forth.low, forth.high) == pytest.approx((-back.high, -back.low))
    assert max(forth.p_value, back.p_value) == 1


def test_an_estimate_does_not_differ_from_itself():
    estimate = snips(CONTRAST_LOSS, np.ones(6), CLUSTER)
    same = difference(estimate, estimate)
    assert same.difference == same.std_error == 0
    assert same.p_value == 1
    clinicians = difference(estimate, logged_risk(CONTRAST_LOSS, CLUSTER))
    assert clinicians.difference == pytest.approx(0)
    assert clinicians.std_error == pytest.approx(0, abs=1e-12)


def test_pairing_makes_the_error_smaller_than_adding_two_errors():
    generator = np.random.default_rng(0)
    loss = (generator.random(500) < 0.4).astype(float)
    weight = 1 + 0.1 * generator.random(500)
    first, second = snips(loss, weight, np.arange(500)), logged_risk(loss, np.arange(500))
    paired = difference(first, second).std_error
    assert paired < 0.1 * math.hypot(first.std_error, second.std_error)


def test_estimates_of_different_clusters_cannot_be_paired():
    with pytest.raises(DataError, match=r"^cluster: must be the same in both estimates"):
        difference(
            snips(CONTRAST_LOSS, np.ones(6), CLUSTER), snips(CONTRAST_LOSS, np.ones(6), CLUSTER + 1)
        )


@pytest.mark.parametrize("kind", [EffectiveCount, Wald, Logit, Percentile, Studentised])
def test_better_and_the_printed_interval_never_disagree(kind):
    below = 0
    for seed in range(40):
        for level in (0.9, 0.95):
            gain = gain_of(0.09, seed=seed)
            found = difference_by(kind(level), gain)
            assert (found.high < 0) == (found.p_value <= 1 - level)
            below += found.high < 0
    assert 10 < below < 70  # both happened


def test_the_p_value_is_the_level_at_which_the_limit_is_zero():
    gain = gain_of(0.2)
    assert EffectiveCount(1 - gain.p_value)(gain.evidence)[1] == pytest.approx(0, abs=1e-9)
    plain = difference_by(Wald(), gain)
    t = gain.difference / gain.std_error
    assert plain.p_value == pytest.approx(2 * stats.t.cdf(t, 199))


def test_an_interval_that_is_a_bare_function_is_not_contradicted_either():
    gain = gain_of(0.2)
    assert difference_by(lambda evidence: (-1.0, 1.0), gain).p_value > 0.05
    assert difference_by(lambda evidence: (-2.0, -1.0), gain).p_value <= 0.05


def difference_by(interval, gain):
    """The same gain with another interval."""
    return Contrast(
        **{
            **vars(gain),
            "low": interval(gain.evidence)[0],
            "high": interval(gain.evidence)[1],
            "p_value": p_of_zero(interval, gain.evidence),
        }
    )


def test_a_gain_that_cannot_be_known_has_p_value_one():
    never = difference(
        snips(CONTRAST_LOSS, np.zeros(6), CLUSTER), logged_risk(CONTRAST_LOSS, CLUSTER)
    )
    assert never.p_value == 1
    one = np.array([1.0, 1, 0, 0, 0, 0])
    assert (
        difference(snips(CONTRAST_LOSS, one, CLUSTER), logged_risk(CONTRAST_LOSS, CLUSTER)).p_value
        == 1
    )


def test_a_gain_without_any_error_is_certain_only_with_the_number_of_stays_behind_it():
    def sure(k):
        cluster = np.arange(k)
        return difference(logged_risk(np.zeros(k), cluster), logged_risk(np.ones(k), cluster))

    assert (sure(6).difference, sure(6).std_error) == (-1, 0)
    matched = np.arange(60) % 2 == 0
    loss = np.where(matched, 0.0, np.arange(60) % 3 == 0)  # all that match have no loss
    found = difference(snips(loss, 2.0 * matched, np.arange(60)), logged_risk(loss, np.arange(60)))
    bare = replace(found.evidence, exposure=None)
    assert EffectiveCount()(bare)[1] - EffectiveCount()(bare)[0] < found.high - found.low


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([0.02]) == pytest.approx([0.02])


def test_safe_improvement_corrects_for_every_policy_asked_about():
    single = gain_of(0.16)
    assert 0.001 < single.p_value < 0.05
    (alone,) = safe_improvement({"one": single})
    assert alone.better
    many = {"one": single} | {f"other {i}": gain_of(0.0, seed=i) for i in range(1, 60)}
    found = safe_improvement(many)
    assert not found[0].better
    assert found[0].adjusted_p == pytest.approx(min(1, 60 * single.p_value))
    assert [f.policy for f in found] == list(many)


def test_safe_improvement_refuses_nothing_and_a_bad_level():
    with pytest.raises(DataError, match="at least one policy"):
        safe_improvement({})
    with pytest.raises(SettingError, match="alpha"):
        safe_improvement({"one": gain_of(0.1)}, alpha=1.5)


def test_stays_used_for_selection_are_refused_without_their_ids():
    require_unseen([4, 5, 6], [1, 2, 3])
    with pytest.raises(DataError) as caught:
        require_unseen([40041, 5, 6, 5], [5, 77])
    expected = (
        "cluster: must not have been used for selection; 2 of 4 rows fail, first at row 1. "
        "Evaluate on held-out stays."
    )
    assert str(caught.value) == expected
