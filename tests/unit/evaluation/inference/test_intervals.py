"""Limits: of counts, of resampled clusters, and those that hold in every sample."""

import math
from itertools import pairwise

import numpy as np
import pytest
from evaluation_logs import cases, sample
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from etips.errors import DataError, SettingError
from etips.evaluation import (
    Logit,
    Percentile,
    Studentised,
    Wald,
    difference,
    dr,
    logged_risk,
    matching_factor,
    sndr,
    snips,
)
from etips.evaluation.inference import intervals as bootstrap
from etips.evaluation.inference.betting import BETS, guaranteed_gain, log_capital
from etips.evaluation.inference.checks import code_clusters
from etips.evaluation.inference.evidence import ratio_of
from etips.evaluation.inference.intervals import EffectiveCount

EVERY = (Wald(), Logit(), Percentile(replicates=100))


@given(cases(), st.integers(2, 5))
@settings(max_examples=200, deadline=None)
def test_repeating_every_decision_in_its_stay_leaves_the_interval_unchanged_s7(case, times):
    rows = np.repeat(np.arange(case.loss.size), times)
    again = case.take(rows)
    for interval in EVERY:
        for estimator, model in ((snips, False), (dr, True), (sndr, True)):
            options = {"interval": interval} | (case.model if model else {})
            more = {"interval": interval} | (again.model if model else {})
            once = estimator(case.loss, case.weight, case.cluster, **options)
            repeated = estimator(again.loss, again.weight, again.cluster, **more)
            for name in ("risk", "std_error", "low", "high"):
                expected = getattr(once, name)
                found = getattr(repeated, name)
                assert found == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)


def test_repeating_decisions_leaves_the_studentised_interval_unchanged_s7():
    """Not for tiny samples: a replicate with next to no spread has a t statistic of any size."""
    loss, weight, cluster = sample(k=30, per=2)
    once = snips(loss, weight, cluster, interval=Studentised())
    rows = np.repeat(np.arange(loss.size), 3)
    again = snips(loss[rows], weight[rows], cluster[rows], interval=Studentised())
    assert (again.low, again.high) == pytest.approx((once.low, once.high), rel=1e-12)


def test_wald_is_value_plus_and_minus_t_errors():
    loss, weight, cluster = sample()
    estimate = snips(loss, weight, cluster, interval=Wald(0.9))
    reach = stats.t.ppf(0.95, 79) * estimate.std_error
    assert estimate.high - estimate.risk == pytest.approx(reach)
    assert estimate.risk - estimate.low == pytest.approx(reach)


def test_logit_stays_inside_0_to_1_and_is_wald_without_bounds():
    loss, weight, cluster = sample(k=12)
    estimate = snips(loss, weight * (1 + 30 * loss), cluster, interval=Logit(0.999))
    assert 0 < estimate.low < estimate.risk < estimate.high < 1
    for other in (10 * loss, 3 * loss - 0.5, np.where(loss > 0, 1.5, 0.25)):
        wide = snips(other, weight, cluster, interval=Logit())
        assert (wide.low, wide.high) == Wald()(wide.evidence)


def test_logit_leans_away_from_the_near_bound():
    loss, weight, cluster = sample()
    estimate = snips(loss * (cluster % 4 == 0), weight, cluster)
    assert estimate.risk < 0.2
    assert estimate.high - estimate.risk > estimate.risk - estimate.low


@pytest.mark.parametrize("interval", [Percentile, Studentised])
def test_a_bootstrap_depends_on_its_seed_and_on_nothing_else(interval):
    evidence = snips(*sample()).evidence
    np.random.seed(5)  # noqa: NPY002  global state must neither be read nor changed
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first = interval(seed=1)(evidence)
    assert first == interval(seed=1)(evidence)
    assert first != interval(seed=2)(evidence)
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


def test_percentile_limits_are_quantiles_of_the_replicates():
    evidence = snips(*sample()).evidence
    values = bootstrap.replicate_values(evidence, replicates=300, seed=4)
    found = Percentile(level=0.8, replicates=300, seed=4)(evidence)
    assert found == pytest.approx(tuple(np.quantile(values, [0.1, 0.9])))


def test_studentised_limits_are_quantiles_of_t_reversed():
    evidence = snips(*sample()).evidence
    values, errors = bootstrap.replicate_studentised(evidence, replicates=300, seed=4)
    low, high = np.quantile((values - evidence.value) / errors, [0.1, 0.9])
    own = math.sqrt(80 / 79 * (evidence.influence**2).sum())
    found = Studentised(level=0.8, replicates=300, seed=4)(evidence)
    assert found == pytest.approx((evidence.value - high * own, evidence.value - low * own))


def test_intervals_of_every_kind_agree_in_a_large_sample():
    evidence = snips(*sample(k=3000)).evidence
    reference = Wald()(evidence)
    width = reference[1] - reference[0]
    for interval in (Logit(), Percentile(), Studentised()):
        assert interval(evidence) == pytest.approx(reference, abs=0.1 * width)


def test_bootstraps_without_any_spread_fall_back():
    cluster = np.repeat(np.arange(10), 2)
    evidence = snips(np.full(20, 0.25), np.ones(20), cluster).evidence
    assert Studentised()(evidence) == (0.25, 0.25)
    assert Percentile()(evidence) == pytest.approx((0.25, 0.25))
    never = snips(np.ones(20), np.zeros(20), cluster).evidence
    assert all(math.isnan(limit) for limit in (*Percentile()(never), *Studentised()(never)))


def naive(evidence, columns, counts):
    total = counts @ columns
    half = columns.shape[1] // 2
    return (total[:half] / total[half:]) @ evidence.sign


def test_the_bootstrap_equals_a_plain_loop_over_its_counts():
    loss, weight, cluster = sample()
    evidence = difference(snips(loss, weight, cluster), logged_risk(loss, cluster)).evidence
    drawn = np.random.default_rng(0).integers(0, 80, (150, 80))
    counts = np.stack([np.bincount(row, minlength=80) for row in drawn]).astype(float)
    values, errors = bootstrap.replicate_studentised(evidence, replicates=150, seed=0)
    columns = np.hstack([evidence.numerator, evidence.denominator])
    assert values == pytest.approx([naive(evidence, columns, row) for row in counts], abs=1e-12)
    for row, error in zip(counts, errors, strict=True):
        chosen = np.repeat(np.arange(80), row.astype(int))
        above, below = evidence.numerator[chosen], evidence.denominator[chosen]
        ratio = above.sum(axis=0) / below.sum(axis=0)
        influence = ((above - ratio * below) / below.sum(axis=0)) @ evidence.sign
        assert error == pytest.approx(math.sqrt(80 / 79 * (influence**2).sum()))


def test_bootstrap_standard_deviation_agrees_with_the_standard_error():
    loss, weight, cluster = sample(k=400)
    estimate = snips(loss, weight, cluster)
    values = bootstrap.replicate_values(estimate.evidence, replicates=4000, seed=3)
    assert values.std() == pytest.approx(estimate.std_error, rel=0.06)  # 4000 draws: noise 1.1 %
    assert values.mean() == pytest.approx(estimate.risk, abs=4 * estimate.std_error / 60)


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


def test_the_capital_is_the_mean_over_bets_of_a_product_over_clusters():
    total, size = np.array([3.0, 0.0, 1.0]), np.array([2.0, 1.0, 1.0])
    back = (total / 0.8 - size) / 2
    expected = np.mean([np.prod(1 + bet * back) for bet in BETS])
    assert log_capital(total, size, 0.8) == pytest.approx(np.log(expected))


def test_a_bet_never_loses_more_than_its_stake():
    total, size = np.zeros(1000), np.ones(1000)
    assert np.isfinite(log_capital(total, size, 0.5))
    assert log_capital(total, size, 0.5) < 0


def test_the_limit_is_where_the_capital_reaches_twenty():
    generator = np.random.default_rng(0)
    loss, matched = generator.random(300), generator.random(300) < 0.4
    limit = guaranteed_gain(loss, matched / 0.4, np.arange(300))
    total = 1 + (matched / 0.4 - 1) * (1 - loss)
    assert log_capital(total, np.ones(300), 1 - limit) == pytest.approx(np.log(20), abs=0.01)


def heavy_and_without_effect(seed, n):
    generator = np.random.default_rng([5, seed])
    propensity = np.clip(generator.beta(0.5, 3, n), 0.005, 1)
    taken = generator.random(n) < propensity
    loss = (generator.random(n) < 0.3 + 0.4 * (propensity < 0.05)).astype(float)
    return loss, taken / propensity, np.arange(n)


@pytest.mark.parametrize("n", [50, 400])
def test_no_gain_is_guaranteed_where_there_is_none(n):
    false = sum(guaranteed_gain(*heavy_and_without_effect(seed, n)) < 0 for seed in range(200))
    assert false <= 10


def test_a_strong_gain_is_guaranteed_with_a_few_thousand_decisions():
    generator = np.random.default_rng(1)
    taken = generator.random(4000) < 0.3
    loss = (generator.random(4000) < np.where(taken, 0.2, 0.5)).astype(float)
    alone = guaranteed_gain(loss, taken / 0.3, np.arange(4000))
    assert -0.21 < alone < -0.12  # the gain is -0.21
    assert guaranteed_gain(loss, taken / 0.3, np.arange(4000) // 4) < -0.1
    assert guaranteed_gain(loss, taken / 0.3, np.arange(4000), level=0.999) > alone


def test_decisions_that_repeat_one_another_are_worth_one():
    generator = np.random.default_rng(2)
    taken = generator.random(500) < 0.5
    loss = (generator.random(500) < 0.4).astype(float)
    once = guaranteed_gain(loss, taken / 0.5, np.arange(500))
    thrice = [np.repeat(values, 3) for values in (loss, taken / 0.5, np.arange(500))]
    assert guaranteed_gain(*thrice) == pytest.approx(once, abs=1e-4)


def test_losses_beyond_zero_and_one_have_no_guarantee():
    assert guaranteed_gain([0.0, 2.0], [1.0, 1.0], [0, 1]) is None
    assert guaranteed_gain([-0.1, 1.0], [1.0, 1.0], [0, 1]) is None


def test_a_policy_that_was_never_followed_is_not_excluded_from_anything():
    assert guaranteed_gain(np.zeros(20), np.zeros(20), np.arange(20)) == pytest.approx(1)
    assert guaranteed_gain(np.ones(20), np.ones(20), np.arange(20)) > 0


def test_what_is_no_level_and_no_weight_is_refused():
    with pytest.raises(SettingError, match="level"):
        guaranteed_gain([0.0, 1.0], [1.0, 1.0], [0, 1], level=1.0)
    with pytest.raises(DataError, match=r"^weight"):
        guaranteed_gain([0.0, 1.0], [1.0, -1.0], [0, 1])
