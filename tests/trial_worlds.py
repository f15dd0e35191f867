"""Randomised trials with arrays for features, whose best rule is known."""

import numpy as np


def two_arms(n, seed, *, gap=0.3, shift=0.0):
    """Features, arm, a loss of 0 or 1 plus a shift, and the better arm: a line parts patients."""
    rng = np.random.default_rng(seed)
    rows, arm = rng.normal(size=(n, 4)), rng.integers(0, 2, n)
    best = (rows[:, 0] + rows[:, 1] > 0).astype(np.int64)
    chance = 0.5 + np.where(arm == best, -gap, gap)
    return rows, arm, (rng.random(n) < chance) + shift, best


def ring(n, seed, *, n_arms=2):
    """The same with losses that are amounts; which arm is better inside a ring no line tells."""
    rng = np.random.default_rng(seed)
    rows, arm = rng.normal(size=(n, 2)), rng.integers(0, n_arms, n)
    outside = (rows**2).sum(axis=1) > 1.4
    best = outside.astype(np.int64)
    return rows, arm, np.where(arm == best, 0.0, 1.0) + 0.3 * rng.normal(size=n), best


def agreement(learner, make, *, n=2000, seed=0, **world):
    """Share of new patients for whom a learner finds the better arm."""
    rows, arm, loss, _ = make(n, seed, **world)
    asked, _, _, best = make(4000, seed + 1000, **world)
    learner.fit(rows, arm, loss, propensity=np.full(n, 0.5))
    return float((learner.predict(asked) == best).mean())
