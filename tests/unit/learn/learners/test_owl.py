"""Outcome weighted learning: where it wins, and what a shift of the loss does to it."""

import numpy as np
import pytest
from trial_worlds import agreement, ring, two_arms

import etips
from etips.learn import OWL


@pytest.mark.parametrize("seed", [0, 1])
def test_in_a_randomised_trial_of_two_arms_it_agrees_with_the_best_rule(seed):
    assert agreement(OWL(), two_arms, n=2000, seed=seed) >= 0.95


def test_a_line_does_not_follow_a_ring_and_the_gaussian_kernel_does():
    assert agreement(OWL(), ring) < 0.75
    assert agreement(OWL(kernel="rbf"), ring) > 0.85


@pytest.mark.parametrize("shift", [-10.0, 10.0])
def test_a_constant_added_to_the_loss_hides_what_did_well(shift):
    learner = OWL(propensities="known")
    plain, shifted = (agreement(learner, two_arms, n=800, gap=0.2, shift=s) for s in (0.0, shift))
    assert shifted < plain - 0.05


def test_known_propensities_undo_who_was_treated():
    """Arm 1 goes to four in five whatever they need; weighted by what is known, that is nothing."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 2))
    arm = (rng.random(2000) < 0.8).astype(np.int64)
    best = (rows[:, 0] > 0).astype(np.int64)
    loss = (rng.random(2000) < np.where(arm == best, 0.2, 0.8)).astype(float)
    chance = np.where(arm == 1, 0.8, 0.2)
    learner = OWL(propensities="known").fit(rows, arm, loss, propensity=chance)
    assert (learner.predict(rows) == best).mean() > 0.95
    with pytest.raises(etips.DataError, match=r"^propensity: is not in the data"):
        OWL(propensities="known").fit(rows, arm, loss)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"kernel": "cubic"}, "kernel"),
        ({"ridge": 0.0}, "ridge"),
        ({"n_waves": 0}, "n_waves"),
        ({"reward_from": np.inf}, "reward_from"),
        ({"propensities": "guessed"}, "propensities"),
        ({"support": 1.0}, "support"),
        ({"clip": 0.0}, "clip"),
        ({"seed": -1}, "seed"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, named):
    rows, arm, loss, _ = two_arms(50, 0)
    with pytest.raises(etips.SettingError, match=rf"^{named}: "):
        OWL(**settings).fit(rows, arm, loss)
