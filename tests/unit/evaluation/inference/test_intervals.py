import math

import numpy as np
import pytest
from evaluation_logs import cases, sample
from hypothesis import given, settings
from hypothesis import strategies as st

from etips.evaluation import (
    Logit,
    Percentile,
    Studentised,
    Wald,
    dr,
    sndr,
    snips,
)
from etips.evaluation.inference import bootstrap
from etips.evaluation.inference.quantiles import student_quantile

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
    reach = student_quantile(0.95, 79) * estimate.std_error
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
