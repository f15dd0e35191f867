"""The floor on support of a regression: lower where rare actions bear out what it says of them."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import randomised

from etips.learn.nuisance.rare_actions import LEAST_PART, LOWEST, kept_promise, lower_floor

N = 4000


class Ward:
    """Clinicians do 0 and hardly ever 1, which a regression says has 0.3 less loss for some.

    Args:
        true: Loss by which the rare action is better where it is said to be.
        harm: Loss by which it is worse where it is said to be worse.
        n: Decisions, one a patient.
        seed: Of the log.
    """

    def __init__(self, true=0.3, harm=0.3, n=N, seed=0):
        rng = np.random.default_rng(seed)
        log = randomised(n, 2, seed=seed)
        action = (rng.random(n) < 0.04).astype(int)
        helps = rng.random(n) < 0.5
        self.likely = np.tile([0.96, 0.04], (n, 1))
        self.expected = np.stack([np.full(n, 0.5), np.where(helps, 0.2, 0.8)], axis=1)
        risk = np.where(action == 0, 0.5, np.where(helps, 0.5 - true, 0.5 + harm))
        loss = (rng.random(n) < risk).astype(float)
        self.log = replace(log, action=action, loss=loss)

    def floor(self, usual=0.05, **more):
        return lower_floor(usual, self.expected, replace(self.log, **more), self.likely)

    def kept(self, among=None, expected=None):
        log = self.log
        every = np.ones(log.n_decisions, bool) if among is None else among
        return kept_promise(
            self.expected if expected is None else expected,
            self.likely,
            log.logged_action,
            log.logged_loss,
            log.cluster,
            every,
        )


def test_what_came_true_is_worked_out_by_hand():
    """Promised 0.1 and 0.4 of forty patients each, seen 0.2 and 0.3: 0.14 of 0.17."""
    n = 80
    expected = np.tile([0.5, 0.4], (n, 1))
    expected[40:, 1] = 0.1
    loss = np.repeat([0.3, 0.2], 40)
    likely = np.tile([1.0, 0.0], (n, 1))
    every = np.ones(n, bool)
    found = kept_promise(expected, likely, np.ones(n, int), loss, np.arange(n), every)
    assert found.value == pytest.approx((0.1 * 0.2 + 0.4 * 0.3) / (0.1**2 + 0.4**2))


def test_it_is_the_slope_of_least_squares_through_nothing():
    ward = Ward(true=0.2)
    usual = (ward.likely * ward.expected).sum(axis=1)
    action = ward.log.logged_action
    promised = usual - ward.expected[np.arange(N), action]
    some = promised > 0
    seen = (usual - ward.log.logged_loss)[some]
    (slope,), *_ = np.linalg.lstsq(promised[some, None], seen, rcond=None)
    assert ward.kept().value == pytest.approx(slope)


def test_a_promise_that_is_kept_lowers_the_floor():
    kept = Ward().kept(Ward().log.logged_action == 1)
    assert kept.value == pytest.approx(1, abs=3 * kept.std_error)
    assert Ward().floor() == LOWEST


@pytest.mark.parametrize("true", [0.0, -0.3])
def test_a_promise_that_is_not_kept_leaves_the_floor(true):
    assert [Ward(true=true, seed=seed).floor() for seed in range(5)] == [None] * 5


def test_a_promise_of_harm_that_is_kept_says_nothing_of_help():
    """Rare actions that harm more than was said of them would be believed when they promise."""
    assert Ward(true=0.0, harm=0.5).floor() is None


def test_a_small_part_of_a_promise_is_not_enough_however_sure():
    ward = Ward(true=0.06, n=100_000)
    kept = ward.kept(ward.log.logged_action == 1)
    assert 3 * kept.std_error < kept.value < LEAST_PART
    assert ward.floor() is None


def test_too_few_who_got_a_rare_action_show_nothing():
    ward = Ward(n=400)
    assert ward.floor() is None
    assert ward.kept(ward.log.logged_action == 1) is None


def test_with_lag_1_the_floor_stays():
    """What made an action rare is hidden there, and the log bears out what is not so."""
    ward = Ward()
    assert ward.floor(schema=replace(ward.log.schema, lag=1)) is None


def test_a_floor_that_is_as_low_stays():
    assert Ward().floor(usual=LOWEST) is None
    assert Ward().floor(usual=0.0) is None


def test_patients_without_a_rare_action_do_not_matter():
    ward = Ward()
    rare = ward.log.logged_action == 1
    other = np.where(rare[:, None], ward.expected, ward.expected[:, ::-1])
    assert ward.kept(rare, other).value == ward.kept(rare).value
