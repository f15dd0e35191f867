"""The guaranteed gain: valid in every sample, and of use where the gain is strong."""

import numpy as np
import pytest

from etips.errors import DataError, SettingError
from etips.evaluation.inference.betting import BETS, guaranteed_gain, log_capital


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
