import math
from dataclasses import replace

import numpy as np
import pytest
from evaluation_logs import cases, gain_of
from hypothesis import given, settings

from etips.errors import DataError
from etips.evaluation import (
    Contrast,
    Logit,
    Percentile,
    Studentised,
    Wald,
    atenp,
    difference,
    logged_risk,
    snips,
)
from etips.evaluation.inference.effective_count import EffectiveCount
from etips.evaluation.inference.intervals import p_of_zero
from etips.evaluation.inference.quantiles import student_cdf

CLUSTER = np.array([0, 0, 1, 1, 2, 2])
LOSS = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0])
ACTION = np.array([0, 1, 1, 0, 2, 2])
# the likeliest actions are 0, 0, 1, 2, 2, 0: decisions 0, 2 and 4 match
PROBABILITIES = np.array(
    [[0.5, 0.3, 0.2], [0.6, 0.4, 0], [0, 1, 0], [0, 0.1, 0.9], [0.2, 0.2, 0.6], [0.7, 0, 0.3]]
)


def test_atenp_is_matched_minus_unmatched_with_both_sizes():
    found = atenp(LOSS, ACTION, PROBABILITIES, CLUSTER)
    assert found.difference == pytest.approx(2 / 3 - 2 / 3)
    assert (found.n_matched, found.n_unmatched, found.n_clusters) == (3, 3, 3)
    other = atenp(LOSS * np.array([3, 1, 1, 1, 1, 1]), ACTION, PROBABILITIES, CLUSTER)
    assert other.difference == pytest.approx(4 / 3 - 2 / 3)
    assert other.low < other.difference < other.high


def test_atenp_with_an_empty_group_is_undefined_but_counted():
    found = atenp(LOSS, PROBABILITIES.argmax(axis=1), PROBABILITIES, CLUSTER)
    assert math.isnan(found.difference)
    assert (found.n_matched, found.n_unmatched) == (6, 0)


def test_atenp_of_equal_losses_keeps_a_width():
    found = atenp(0 * LOSS, ACTION, PROBABILITIES, np.arange(6))
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
    estimate = snips(LOSS, np.ones(6), CLUSTER)
    same = difference(estimate, estimate)
    assert same.difference == same.std_error == 0
    assert same.p_value == 1
    clinicians = difference(estimate, logged_risk(LOSS, CLUSTER))
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
        difference(snips(LOSS, np.ones(6), CLUSTER), snips(LOSS, np.ones(6), CLUSTER + 1))


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
    assert plain.p_value == pytest.approx(2 * student_cdf(t, 199))


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
    never = difference(snips(LOSS, np.zeros(6), CLUSTER), logged_risk(LOSS, CLUSTER))
    assert never.p_value == 1
    one = np.array([1.0, 1, 0, 0, 0, 0])
    assert difference(snips(LOSS, one, CLUSTER), logged_risk(LOSS, CLUSTER)).p_value == 1


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
