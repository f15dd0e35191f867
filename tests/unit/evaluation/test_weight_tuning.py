"""Tuning takes the setting of least estimated squared error, and keeps the untuned limits."""

import math

import numpy as np
import pytest

from etips.errors import SettingError
from etips.evaluation import Wald, clipped_ips, ips
from etips.evaluation.case import make_case
from etips.evaluation.weight_tuning import tune, tuned_estimate, weight_limits

LOSS = np.array([1.0, 0.0, 1.0, 0.0])
WEIGHT = np.array([2.0, 1.0, 0.0, 1.0])
CLUSTER = np.array([7, 7, 9, 9])


def test_limits_are_quantiles_of_the_positive_weights():
    weight = np.concatenate([np.zeros(50), np.arange(1, 1001)])
    limits = weight_limits(weight)
    assert limits == pytest.approx([500.5, 750.25, 900.1, 950.05, 990.01, 999.001])
    assert weight_limits(np.zeros(3)) == []
    assert weight_limits(np.ones(9)) == [1.0]


def test_the_choice_weighs_noise_against_the_distance_from_no_tuning():
    generator = np.random.default_rng(0)
    n = 400
    weight = np.where(np.arange(n) == 7, 500.0, generator.exponential(size=n))
    case = make_case(np.ones(n), weight, np.arange(n), None)

    def build(limit):
        return case.mean(case.loss * np.minimum(case.weight, limit))

    chosen = tune("clip", None, weight_limits(weight), build)
    errors = {
        limit: math.hypot(build(limit).std_error, build(limit).value - build(np.inf).value)
        for limit in (np.inf, *weight_limits(weight))
    }
    assert chosen.error == pytest.approx(min(errors.values()))
    assert errors[chosen.setting] == pytest.approx(chosen.error)
    assert chosen.setting < 500
    estimate = tuned_estimate(case, "own", chosen, Wald(), weight=np.minimum(weight, 1.0))
    plain = ips(case.loss, weight, np.arange(n), interval=Wald())
    assert (estimate.risk, estimate.tuning) == (chosen.value, chosen.setting)
    assert estimate.low <= min(plain.low, estimate.risk)
    assert estimate.high == plain.high
    assert estimate.effective_n > plain.effective_n


def test_a_heavy_weight_is_clipped_by_the_default_rule():
    generator = np.random.default_rng(0)
    weight = np.append(generator.random(400) * 2, 100.0)
    loss = np.append((generator.random(400) < 0.5).astype(float), 1.0)
    estimate = clipped_ips(loss, weight, np.arange(401))
    plain = ips(loss, weight, np.arange(401))
    assert estimate.tuning < 100
    assert estimate.std_error < plain.std_error
    assert estimate.effective_n > plain.effective_n


@pytest.mark.parametrize("clip", [-1.0, math.nan])
def test_a_tuning_parameter_below_zero_is_refused(clip):
    with pytest.raises(SettingError, match=r"^clip: must be zero or more\.$"):
        clipped_ips(LOSS, WEIGHT, CLUSTER, clip=clip)
