"""Given propensities averaged with fitted ones: where they are noisy, never if they are right."""

import numpy as np
import pytest

from etips.learn.nuisance.pooled_propensity import pooled_propensity

CLIP = 0.01


def log(spread=0.0, n=4000, seed=0):
    """Decisions of two in a stay, propensities times noise, and clinicians fitted so so."""
    rng = np.random.default_rng(seed)
    true, other = rng.dirichlet(np.ones(4), n), rng.dirichlet(np.ones(4), n)
    action = np.array([rng.choice(4, p=row) for row in true])
    rows = np.arange(n)
    fitted = (0.9 * true + 0.1 * other)[rows, action]
    return true[rows, action] * np.exp(spread * rng.normal(size=n)), fitted, rows // 2


@pytest.mark.parametrize("seed", range(5))
def test_right_propensities_are_left_alone(seed):
    assert pooled_propensity(*log(seed=seed), clip=CLIP) is None


def test_right_propensities_that_know_what_is_hidden_are_left_alone():
    """Half of the sites always treat, and nothing that is visible tells which."""
    rng = np.random.default_rng(0)
    given = np.where(rng.random(2000) < 0.9, 0.9, 0.1)
    assert pooled_propensity(given, np.full(2000, 0.5), np.arange(2000), clip=CLIP) is None


@pytest.mark.parametrize("spread", [0.5, 1.0, 2.0])
def test_noisy_propensities_are_averaged_and_weights_have_a_mean_of_one(spread):
    given, fitted, cluster = log(spread)
    pooled = pooled_propensity(given, fitted, cluster, clip=1e-9)
    assert pooled == pytest.approx((given + fitted) / 2)
    assert (fitted / pooled).mean() == pytest.approx(1, abs=0.05)
    assert (fitted / pooled).max() <= 2


def test_two_models_that_err_apart_tell_more_together():
    rng = np.random.default_rng(1)
    true, others = rng.dirichlet(np.ones(4), 4000), rng.dirichlet(np.ones(4), (2, 4000))
    action = np.array([rng.choice(4, p=row) for row in true])
    given, fitted = ((0.6 * true + 0.4 * own)[np.arange(4000), action] for own in others)
    assert pooled_propensity(given, fitted, np.arange(4000), clip=CLIP) is not None


def test_what_is_pooled_is_raised_to_the_clip():
    given, fitted, cluster = log(2.0)
    pooled = pooled_propensity(given, fitted, cluster, clip=0.3)
    assert pooled is not None
    assert pooled.min() == 0.3
