"""Weights brought to a mean of one: only where propensities are off beyond noise."""

import logging

import numpy as np
import pytest

from etips.learn.nuisance.weight_scale import weight_scale


def log(spread=0.0, factor=1.0, n=4000, seed=0):
    """Decisions of two in a stay, fitted clinicians who fit badly, and propensities times noise."""
    rng = np.random.default_rng(seed)
    true = rng.dirichlet(np.ones(4), n)
    wrong = rng.dirichlet(np.ones(4), n)  # they know nothing, and still have a mean weight of one
    action = np.array([rng.choice(4, p=row) for row in true])
    rows = np.arange(n)
    noise = factor * np.exp(spread * rng.normal(size=n))
    mixed = 0.9 * true + 0.1 * wrong
    return mixed[rows, action], true[rows, action] * noise, rows // 2


@pytest.mark.parametrize("seed", range(5))
def test_right_propensities_are_left_alone_however_badly_the_clinicians_are_fitted(seed):
    assert weight_scale(*log(seed=seed), clip=0.01) == 1.0


@pytest.mark.parametrize("spread", [1.0, 2.0])
def test_noise_makes_weights_too_large_by_half_its_variance_in_the_exponent(spread, caplog):
    with caplog.at_level(logging.WARNING):
        found = weight_scale(*log(spread=spread, n=20_000), clip=1e-9)
    assert found == pytest.approx(np.exp(spread**2 / 2), rel=0.3)
    assert "too small" in caplog.text
    imitated, chance, _ = log(spread=spread, n=20_000)
    assert (imitated / (chance * found)).mean() == pytest.approx(1.0)


def test_heavy_weights_that_were_not_drawn_are_no_fault_of_right_propensities():
    means = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        true = rng.dirichlet(np.full(4, 0.1), 2000)
        action = (rng.random((2000, 1)) > true.cumsum(1)).sum(1).clip(max=3)
        logged, even = true[np.arange(2000), action], np.full(2000, 0.25)
        means.append((even / logged).mean())
        assert weight_scale(even, logged, np.arange(2000), clip=0.01) == 1.0
    assert np.median(means) < 0.9  # their expectation is one, most of it in draws that are rare


def test_a_few_stays_cannot_tell():
    imitated, chance, stay = log(spread=1.0, n=8)
    assert weight_scale(imitated, chance, stay, clip=0.01) == 1.0


def test_what_a_clip_takes_away_is_meant():
    imitated, chance, stay = log()
    assert (imitated / np.maximum(chance, 0.5)).mean() < 0.8
    assert weight_scale(imitated, chance, stay, clip=0.5) == 1.0
    found = weight_scale(imitated, chance / 3, stay, clip=0.01)
    assert found > 2  # too small, whatever the clip takes away
