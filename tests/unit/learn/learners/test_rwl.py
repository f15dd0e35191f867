"""Residual weighted learning: a shift of the loss changes nothing."""

import pytest
from trial_worlds import agreement, ring, two_arms

from etips.learn import OWL, RWL


@pytest.mark.parametrize("shift", [-10.0, 10.0])
def test_it_beats_owl_when_the_loss_is_shifted_by_a_constant(shift):
    world = {"n": 800, "gap": 0.2, "shift": shift}
    theirs = agreement(OWL(propensities="known"), two_arms, **world)
    ours = agreement(RWL(propensities="known"), two_arms, **world)
    assert ours > 0.9
    assert ours > theirs + 0.05


def test_a_shift_changes_nothing():
    plain, shifted = (agreement(RWL(ridge=0.1), two_arms, n=600, shift=s) for s in (0.0, 100.0))
    assert shifted == pytest.approx(plain, abs=0.01)


def test_a_line_does_not_follow_a_ring_and_the_gaussian_kernel_does():
    assert agreement(RWL(ridge=0.1), ring) < 0.75
    assert agreement(RWL(kernel="rbf", ridge=0.01), ring) > 0.85
