"""The worlds of `benchmarks.curved` are what they say they are."""

import numpy as np
import pytest

from benchmarks.curved_baselines import rows_of
from benchmarks.curved_worlds import (
    WORLDS,
    Stays,
    World,
    best_two_stage,
    zhou_means,
    zhou_tree,
)

ONE_STAGE = [name for name, world in WORLDS.items() if isinstance(world, World)]


def always(action, n_actions):
    return lambda stays: np.tile(np.eye(n_actions)[action], (int(stays.decides.sum()), 1))


def clinicians(stays):
    return np.full((int(stays.decides.sum()), 2), np.nan)


def test_zhou_has_the_values_of_its_regions():
    grid = (np.arange(1000) + 0.5) / 1000
    x5, x7 = (axis.ravel() for axis in np.meshgrid(grid, grid))
    region, reward = zhou_means(x5, x7)
    chance = np.array([[0.2, 0.6, 0.2], [0.2, 0.6, 0.2], [0.4, 0.2, 0.4]])[region]
    second = np.pi / 4 * (0.6 * 0.35 + 0.4 * 0.35)  # two quarters of an ellipse
    share = np.array([0.39, 0.61 - second, second])
    assert np.bincount(region) / region.size == pytest.approx(share, abs=1e-4)
    logged, best = (chance * reward).sum(axis=1).mean(), reward.max(axis=1).mean()
    assert logged == pytest.approx(share @ [2.0, 1.8, 0.0], abs=5e-4)
    assert best == pytest.approx(share @ [3.0, 2.0, 1.5], abs=5e-4)
    assert (logged, best) == pytest.approx((1.381, 2.250), abs=3e-3)  # as they were given
    features = np.zeros((x5.size, 10))
    features[:, 4], features[:, 6] = x5, x7
    assert (zhou_tree(Stays.rows(features)) * reward).sum(axis=1).mean() == pytest.approx(
        2.2157, abs=2e-3
    )


def test_two_stages_have_their_known_values():
    world = WORLDS["two-stage"]
    assert world.value(None) == pytest.approx(0.970, abs=0.01)
    assert world.value(always(1, 2)) == pytest.approx(1.000, abs=1e-9)
    assert world.value(always(0, 2)) == pytest.approx(0.0, abs=1e-9)
    assert world.value(best_two_stage) == pytest.approx(1.450, abs=0.01)
    greedy = world.value(lambda s: np.eye(2)[(s.features[:, :, 1][s.decides] > 0).astype(int)])
    assert greedy == pytest.approx(1.389, abs=0.01)
    assert world.gain(clinicians) == 0.0
    log = world.sample(40_000, seed=0)
    assert -log.loss[::2].mean() + 0.0 == pytest.approx(0.970, abs=0.05)


def test_a_loss_of_the_first_stage_holds_that_of_the_second():
    log = WORLDS["two-stage"].sample(20_000, seed=1)
    first, second = log.loss.reshape(-1, 2).T
    x, (a1, a2) = log.stays.features, log.action.reshape(-1, 2).T
    own = first - second + a1 * x[:, 0, 1] + x[:, 1, 0]  # nothing is left but U2 = A1 C1 + L2
    assert np.abs(own).max() < 1e-9
    assert np.corrcoef(second, -a2 * x[:, 1, 1])[0, 1] > 0.5
    assert np.array_equal(x[:, 1, 2], a1)


@pytest.mark.parametrize("name", ONE_STAGE)
def test_logs_follow_the_stated_chances_and_losses(name):
    world = WORLDS[name]
    chance = world.fresh.chance
    assert chance.sum(axis=1) == pytest.approx(np.ones(len(chance)), abs=1e-9)
    assert chance.min() > 0
    log = world.sample(20_000, seed=3)
    drawn = np.bincount(log.action, minlength=log.n_actions) / log.action.size
    assert drawn == pytest.approx(chance.mean(axis=0), abs=0.02)
    error = 4 * (log.loss.std() + world.fresh.mean.std()) / 20_000**0.5
    assert log.loss.mean() == pytest.approx(world.logged_value(), abs=error)
    # Given features too: what is taken beyond the stated chances goes with none of them.
    again = world.draw(world._rng(1, 20_000, 3), 20_000)
    picked = np.eye(log.n_actions)[log.action] - again.chance
    for column in rows_of(log.stays).T:
        scale = np.abs(column).mean() + 1e-12
        assert np.abs((picked * column[:, None]).mean(axis=0)).max() < 0.05 * scale + 0.02
    assert np.array_equal(again.stays.features, log.stays.features)
    if world.good_clinicians:
        assert chance.min() >= 0.0099
        assert (chance * world.fresh.best()).sum(axis=1).mean() > 0.6


@pytest.mark.parametrize("name", WORLDS)
def test_no_policy_gains_more_than_the_best(name):
    world = WORLDS[name]
    n_actions = world.sample(50, seed=0).n_actions
    best = world.best_gain()
    assert (best > 0.02) == world.effect
    rng = np.random.default_rng(0)
    for action in range(n_actions):
        assert world.gain(always(action, n_actions)) <= best + 0.01
    for _ in range(3):
        slope = rng.normal(size=(rows_of(world.sample(5, 0).stays).shape[1], n_actions))
        gain = world.gain(lambda s, b=slope: np.eye(n_actions)[(rows_of(s) @ b).argmin(axis=1)])
        assert gain <= best + 0.01
        assert world.effect or gain == pytest.approx(0, abs=1e-12)


def test_a_row_of_an_earlier_decision_knows_nothing_of_a_later_step():
    stays = WORLDS["time-since"].sample(300, seed=0).stays
    changed = stays.features.copy()
    changed[:, 2:] += 5
    early = np.nonzero(stays.decides)[1] < 2
    other = rows_of(Stays(changed, stays.lengths, stays.decides))
    assert np.array_equal(rows_of(stays)[early], other[early])
    assert not np.array_equal(rows_of(stays)[~early], other[~early])
