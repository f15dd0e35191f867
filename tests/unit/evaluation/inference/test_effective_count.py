"""The default interval: counts' limits, at an effective number of events."""

import math
from itertools import pairwise

import numpy as np
import pytest
from evaluation_logs import sample
from scipy import stats

from etips.errors import SettingError
from etips.evaluation import Wald, difference, dr, logged_risk, matching_factor, sndr, snips
from etips.evaluation.inference.checks import code_clusters
from etips.evaluation.inference.effective_count import EffectiveCount
from etips.evaluation.inference.evidence import ratio_of


def of_zeros_and_ones(events, k):
    loss = (np.arange(k) < events).astype(float)
    return logged_risk(loss, np.arange(k))


def test_no_event_has_clopper_and_pearsons_upper_limit():
    found = of_zeros_and_ones(0, 1000)
    t = stats.t.ppf(0.975, 999)
    assert (found.risk, found.std_error, found.low) == (0, 0, 0)
    assert found.high == pytest.approx(stats.beta.ppf(stats.norm.cdf(t), 1, 1000), rel=1e-9)
    every = of_zeros_and_ones(1000, 1000)
    assert (every.low, every.high) == pytest.approx((1 - found.high, 1))


@pytest.mark.parametrize("events", [1, 3, 10, 300])
def test_equal_weights_lie_between_the_exact_and_the_middle_limits(events):
    found = of_zeros_and_ones(events, 1000)
    exact = stats.beta.ppf([0.025, 0.975], [events, events + 1], [1001 - events, 1000 - events])
    middle = stats.beta.ppf([0.025, 0.975], events + 0.5, 1000.5 - events)
    assert exact[0] * 0.99 < found.low < middle[0] * 1.01
    assert middle[1] * 0.99 < found.high < exact[1] * 1.01


def test_equal_matched_losses_have_a_width_that_falls_with_the_number_of_stays():
    widths = []
    for k in (50, 500, 5000):
        matched = np.arange(k) % 4 == 0
        loss = np.where(matched, 0.0, 1.0)
        risk = snips(loss, 4.0 * matched, np.arange(k))
        gain = difference(risk, logged_risk(loss, np.arange(k)))
        assert risk.std_error == 0
        widths.append((risk.high - risk.low, gain.high - gain.low))
    assert widths[0][0] > 0.2
    for small, large in pairwise(widths):
        assert 5 < small[0] / large[0] < 15
        assert large[1] > large[0] * 0.5


def test_a_light_event_is_no_reason_to_believe_that_all_events_are_light():
    weight = np.where(np.arange(100) == 0, 0.01, 1.0)
    one = snips((np.arange(100) == 0).astype(float), weight, np.arange(100))
    none = snips(np.zeros(100), weight, np.arange(100))
    assert one.high == pytest.approx(none.high, rel=0.1)


def test_many_decisions_a_stay_keep_their_worth():
    generator = np.random.default_rng(0)
    loss = (generator.random(20_000) < 0.3).astype(float)
    found = logged_risk(loss, np.repeat(np.arange(400), 50))
    wald = Wald()(found.evidence)
    assert found.high - found.low == pytest.approx(wald[1] - wald[0], rel=0.1)


def test_the_upper_limit_lies_farther_where_few_losses_are_great():
    generator = np.random.default_rng(1)
    loss = np.exp(1.2 * generator.normal(size=300))
    found = logged_risk(loss, np.arange(300))
    assert found.high - found.risk > 1.3 * (found.risk - found.low)
    mirrored = logged_risk(-loss, np.arange(300))
    assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low))


def test_without_skewness_it_is_students_interval():
    loss = np.tile([-1.0, 2.0, 5.0], 40)
    evidence = ratio_of(code_clusters(np.arange(120), n=120), [(loss, np.ones(120))])
    assert EffectiveCount()(evidence) == pytest.approx(Wald()(evidence))
    assert EffectiveCount().p_value(evidence) == pytest.approx(Wald().p_value(evidence))


def test_doubly_robust_risks_stay_within_the_bounds_and_keep_a_width():
    matched = np.arange(200) % 4 == 0
    loss = np.where(matched, 0.0, 1.0)
    model = np.where(matched, 0.1, 0.9)
    for estimator in (dr, sndr):
        found = estimator(loss, 4.0 * matched, np.arange(200), model, np.full(200, 0.1))
        assert found.low == pytest.approx(0, abs=1e-12)
        assert 0.02 < found.high < 0.2
        beyond = estimator(loss, 4.0 * matched, np.arange(200), model, np.full(200, 0.05))
        assert beyond.low == pytest.approx(beyond.risk) == pytest.approx(-0.05)
        assert beyond.high > 0.02


def test_a_sum_of_weights_that_cannot_vary_has_no_width():
    found = matching_factor(np.ones(40), np.arange(40))
    assert found.low == found.high == 1


def test_nothing_matched_and_one_stay_with_all_weight():
    loss, cluster = np.array([0.0, 1.0, 1.0]), np.arange(3)
    assert all(math.isnan(x) for x in EffectiveCount()(snips(loss, 0 * loss, cluster).evidence))
    alone = snips(loss, np.array([1.0, 0, 0]), cluster)
    assert (alone.low, alone.high) == (0, 1)
    gain = difference(alone, logged_risk(loss, cluster))
    assert (gain.low, gain.high, gain.p_value) == (-math.inf, math.inf, 1)


def test_a_higher_level_is_wider_and_a_level_is_a_share():
    evidence = snips(*sample()).evidence
    narrow, wide = EffectiveCount(0.8)(evidence), EffectiveCount(0.99)(evidence)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    with pytest.raises(SettingError, match="level"):
        EffectiveCount(1.0)


@pytest.mark.parametrize("unit", [1e-120, 1e-98, 1e-38])
def test_losses_of_next_to_nothing_have_limits_too(unit):
    loss = unit * np.array([-1.0, 0, 0, 5, 1, 0, 0])
    found = logged_risk(loss, np.arange(7))
    gain = difference(snips(loss, np.arange(7.0), np.arange(7)), found)
    assert found.low < found.risk < found.high
    assert gain.low < gain.difference < gain.high
    assert 0 <= gain.p_value <= 1
