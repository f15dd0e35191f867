import math
from itertools import pairwise, product

import numpy as np
import pytest
from evaluation_logs import make_log

from etips.errors import SettingError
from etips.evaluation import Log, Wald, bound_risk, logged_risk, snips, view


def small(seed):
    generator = np.random.default_rng(seed)
    n = 7
    propensity = 0.1 + 0.8 * generator.random(n)
    log = Log(
        loss=generator.integers(0, 4, n) / 3,
        action=np.zeros(n, dtype=int),
        propensity=propensity,
        cluster=np.arange(n) // 2,
        n_actions=2,
    )
    first = generator.random(n)
    return log, view(log, np.column_stack([first, 1 - first]))


@pytest.mark.parametrize("seed", range(20))
def test_bounds_equal_the_best_of_all_corners(seed):
    log, policy = small(seed)
    gamma = 1.0 + seed / 5
    probability = policy.weight * log.propensity
    odds = 1 / log.propensity - 1
    ends = np.stack([probability * (1 + odds / gamma), probability * (1 + odds * gamma)])
    corners = [
        (w := ends[list(choice), np.arange(7)]) @ log.loss / w.sum()
        for choice in product((0, 1), repeat=7)
    ]
    (found,) = bound_risk(log, policy, gammas=(gamma,)).bounds
    assert found.risk_least.value == pytest.approx(min(corners), abs=1e-12)
    assert found.risk_most.value == pytest.approx(max(corners), abs=1e-12)


def test_without_confounding_the_bounds_are_snips_and_its_interval():
    log, table, _ = make_log()
    policy = view(log, table)
    plain = snips(log.loss, policy.weight, log.cluster)
    (found,) = bound_risk(log, policy, gammas=(1.0,)).bounds
    for bound in (found.risk_least, found.risk_most):
        assert (bound.value, bound.low, bound.high) == pytest.approx(
            (plain.risk, plain.low, plain.high)
        )
    clinicians = logged_risk(log.loss, log.cluster).risk
    assert found.gain_least.value == pytest.approx(plain.risk - clinicians)


def test_bounds_widen_with_gamma_and_the_gain_is_risk_minus_the_clinicians():
    log, table, _ = make_log()
    found = bound_risk(log, view(log, table), gammas=(3.0, 1.0, 2.0)).bounds
    assert [b.gamma for b in found] == [1, 2, 3]
    clinicians = logged_risk(log.loss, log.cluster).risk
    for narrow, wide in pairwise(found):
        assert wide.risk_least.value < narrow.risk_least.value
        assert wide.risk_most.value > narrow.risk_most.value
    for bound in found:
        assert bound.gain_most.value == pytest.approx(bound.risk_most.value - clinicians)
        assert bound.risk_most.low < bound.risk_most.value < bound.risk_most.high


def strong_gain(n=400):
    """A policy with loss 0.1 where it matches and clinicians with 0.5 on average."""
    generator = np.random.default_rng(0)
    action = generator.integers(0, 2, n)
    loss = (generator.random(n) < np.where(action == 0, 0.1, 0.9)).astype(float)
    log = Log(
        loss=loss, action=action, propensity=np.full(n, 0.5), cluster=np.arange(n), n_actions=2
    )
    return log, view(log, np.tile([1.0, 0.0], (n, 1)))


def test_the_gamma_at_which_the_gain_is_gone():
    log, policy = strong_gain()
    found = bound_risk(log, policy, gammas=(1.0,), interval=Wald())
    at = bound_risk(log, policy, gammas=(found.gamma_point,), interval=Wald()).bounds[0]
    assert at.gain_most.value == pytest.approx(0, abs=1e-3)
    at = bound_risk(log, policy, gammas=(found.gamma_interval,), interval=Wald()).bounds[0]
    assert at.gain_most.high == pytest.approx(0, abs=1e-3)
    assert 1 < found.gamma_interval < found.gamma_point


def test_a_gain_that_is_not_there_is_gone_at_gamma_one():
    log, _ = strong_gain()
    worse = view(log, np.tile([0.0, 1.0], (log.n_decisions, 1)))
    found = bound_risk(log, worse, gammas=(1.0,))
    assert found.gamma_point == found.gamma_interval == 1


def test_a_gain_no_confounding_can_remove_is_never_gone():
    log, policy = strong_gain()
    fields = {name: getattr(log, name) for name in ("action", "propensity", "cluster")}
    sure = Log(loss=(log.action == 1).astype(float), n_actions=2, **fields)
    found = bound_risk(sure, view(sure, policy.probabilities), gammas=(1.0,))
    assert found.gamma_point == math.inf


def test_a_policy_that_never_matches_has_no_bounds_and_no_gain():
    log, _ = strong_gain()
    fields = {name: getattr(log, name) for name in ("loss", "propensity", "cluster")}
    other = Log(action=np.ones(log.n_decisions, dtype=int), n_actions=2, **fields)
    found = bound_risk(other, view(other, np.tile([1.0, 0.0], (log.n_decisions, 1))))
    assert math.isnan(found.bounds[0].risk_most.value)
    assert found.gamma_point == 1


@pytest.mark.parametrize("gammas", [(), (0.5,), (math.nan,)])
def test_a_gamma_below_one_is_refused(gammas):
    log, policy = strong_gain(20)
    with pytest.raises(
        SettingError, match=r"^gammas: must be one or more numbers of at least 1\.$"
    ):
        bound_risk(log, policy, gammas=gammas)
