from itertools import product

import numpy as np
import pytest
from hidden_worlds import hidden_state

from etips.evaluation import Log, bound_risk, view
from etips.evaluation.sensitivity_weights import Extremes, extremes, strata


def best_of_a_stratum(loss, sure, open_, gamma, sign):
    """Greatest weighted loss that keeps the total: at most one weight lies inside its range."""
    small, large, total = sure + open_ / gamma, sure + open_ * gamma, (sure + open_).sum()
    values = []
    for choice in product((0, 1), repeat=loss.size):
        weight = np.where(choice, large, small)
        for place in range(loss.size):
            weight_there = total - (weight.sum() - weight[place])
            if small[place] - 1e-12 <= weight_there <= large[place] + 1e-12:
                moved = weight.copy()
                moved[place] = weight_there
                values.append(sign * (moved @ loss))
    return sign * max(values)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("most", [True, False])
def test_balanced_weights_are_the_best_of_all_that_keep_the_total_of_each_stratum(seed, most):
    generator = np.random.default_rng(seed)
    n, gamma = 8, 1.2 + seed / 5
    loss, stratum = generator.integers(0, 5, n) / 4, np.arange(n) // 4
    sure, open_ = generator.random(n), generator.random(n) * 2
    above, below = Extremes(loss, sure, open_, stratum).reach(gamma, most=most)
    wanted = sum(
        best_of_a_stratum(
            loss[own := stratum == number], sure[own], open_[own], gamma, 1 if most else -1
        )
        for number in (0, 1)
    )
    assert above.sum() == pytest.approx(wanted, abs=1e-12)
    assert below.sum() == pytest.approx((sure + open_).sum())


@pytest.mark.parametrize("seed", range(10))
def test_balanced_bounds_are_never_wider_than_free_ones(seed):
    log, table, _ = hidden_state(300, gamma=2.0, seed=seed, binary=bool(seed % 2))
    policy = view(log, table)
    sharp = bound_risk(log, policy, gammas=(1.0, 1.5, 4.0), balanced=True)
    free = bound_risk(log, policy, gammas=(1.0, 1.5, 4.0), balanced=False)
    assert sharp.balanced
    assert not free.balanced
    for own, wide in zip(sharp.bounds, free.bounds, strict=True):
        assert own.risk_most.value <= wide.risk_most.value + 1e-12
        assert own.risk_least.value >= wide.risk_least.value - 1e-12
    assert sharp.gamma_point >= free.gamma_point * 0.999


@pytest.mark.parametrize("binary", [True, False])
def test_balanced_bounds_meet_the_worst_hidden_state_where_free_ones_pass_it(binary):
    log, table, truth = hidden_state(20_000, gamma=3.0, seed=1, binary=binary)
    policy = view(log, table)
    (sharp,) = bound_risk(log, policy, gammas=(3.0,)).bounds
    (free,) = bound_risk(log, policy, gammas=(3.0,), balanced=False).bounds
    assert sharp.risk_most.value == pytest.approx(truth, abs=0.025)
    assert free.risk_most.value > truth + 0.05
    assert sharp.risk_most.high > truth


def test_nothing_is_open_where_the_policy_has_the_clinicians_own_probabilities():
    generator = np.random.default_rng(0)
    chance = generator.uniform(0.2, 0.8, 500)
    table = np.column_stack([chance, 1 - chance])
    action = (generator.random(500) > chance).astype(int)
    log = Log(
        loss=generator.integers(0, 2, 500).astype(float),
        action=action,
        propensity=table[np.arange(500), action],
        cluster=np.arange(500),
        n_actions=2,
        propensities=table,
    )
    (found,) = bound_risk(log, view(log, table), gammas=(5.0,)).bounds
    for bound in (found.gain_least, found.gain_most):
        assert bound.value == 0
    half = table.copy()
    half[250:] = [1.0, 0.0]
    ends = extremes(log, view(log, half), expected=None)
    assert (ends.open[:250] == 0).all()
    np.testing.assert_allclose(ends.sure[:250], 1)
    acted = np.arange(500) >= 250
    assert (ends.open[acted & (action == 0)] > 0).all()


def test_strata_hold_about_equal_mass_and_never_part_equal_expectations():
    generator = np.random.default_rng(0)
    expected = np.round(generator.random(5_000), 2)
    mass = generator.random(5_000)
    found = strata(expected, mass)
    shares = np.bincount(found, mass) / mass.sum()
    assert shares.size == 20
    assert shares.max() < 0.1
    assert all(np.unique(found[expected == value]).size == 1 for value in np.unique(expected))
    assert (strata(expected, np.zeros(5_000)) == 0).all()
    assert (strata(np.zeros(100), np.ones(100)) == 0).all()
