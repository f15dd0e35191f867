"""Q-learning: as good as its regression, and no better."""

import numpy as np
from trial_worlds import agreement, ring, two_arms

from etips.learn import QLearning


def test_it_finds_a_rule_that_is_a_line():
    assert agreement(QLearning(), two_arms) > 0.95


def test_a_shift_of_the_loss_is_nothing_to_it():
    assert agreement(QLearning(), two_arms, shift=-10.0) > 0.95


def test_it_fails_where_the_loss_follows_no_line():
    assert agreement(QLearning(), ring) < 0.75


def test_the_penalty_keeps_forty_columns_of_noise_from_the_rule():
    """Least squares has 90 coefficients for 300 patients and follows the noise."""
    rng = np.random.default_rng(0)
    rows, arm = rng.normal(size=(300, 44)), rng.integers(0, 2, 300)
    asked = rng.normal(size=(4000, 44))
    loss = np.where(arm == (rows[:, 0] > 0), -0.5, 0.5) + rng.normal(size=300)
    design = np.concatenate(
        [np.insert(rows, 0, 1, axis=1) * (arm == a)[:, None] for a in (0, 1)], 1
    )
    free = np.linalg.lstsq(design, loss, rcond=None)[0].reshape(2, 45)
    plain = (np.insert(asked, 0, 1, axis=1) @ free.T).argmin(axis=1)
    ours = QLearning().fit(rows, arm, loss).predict(asked)
    best = asked[:, 0] > 0
    assert (ours == best).mean() > (plain == best).mean() + 0.05
