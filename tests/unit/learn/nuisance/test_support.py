"""The floor on support: lowered where it would leave nothing to recommend."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etips.learn.nuisance.support import (
    BEYOND_DOUBT,
    LOWEST,
    MARGIN,
    SUPPORT,
    agreed_floor,
    bearable,
    bears_hidden,
    highest_mean,
    lead_of_lower,
    may_go_lower,
)


def test_a_floor_that_leaves_an_action_nearly_everywhere_stays():
    likely = np.tile([0.9, 0.06, 0.04], (100, 1))
    likely[:5] = 1 / 3  # below the floor asked for, but few
    assert bearable(0.5, likely) == 0.5


@pytest.mark.parametrize("n_actions", [12, 25, 200])
@pytest.mark.parametrize("lag", [0, 1])
def test_many_even_actions_lower_the_floor_until_some_can_be_recommended(n_actions, lag):
    likely = np.full((50, n_actions), 1 / n_actions)
    floor = bearable(SUPPORT[lag], likely)
    assert MARGIN * floor <= 1 / n_actions
    assert floor == SUPPORT[lag] or 2 * MARGIN * floor > 1 / n_actions


def test_a_floor_that_the_policy_meets_as_judged_stays():
    likely = np.linspace(0, 1, 100)
    assert agreed_floor(0.3, likely, likely >= 0.3) == 0.3
    assert agreed_floor(0.3, likely + 0.1, likely >= 0.3) == 0.3  # abstains less often


def test_a_floor_is_lowered_until_the_policy_abstains_as_often_as_judged():
    likely = np.linspace(0, 1, 1000)
    found = agreed_floor(0.3, likely - 0.1, likely >= 0.3)
    assert (likely - 0.1 < found).mean() == pytest.approx(0.3, abs=0.01)


def test_no_floor_is_left_that_everybody_misses_by_a_hair():
    """Judged just above the floor, applied just below it: the policy abstained everywhere."""
    found = agreed_floor(0.0125, np.full(50, 0.0124999), np.ones(50, bool))
    assert found < 0.0124999


def decisions(n=20_000, *, lag=0, gain=0.6, seed=0):
    """A log of two actions, one of them rare, which spares some patients part of the loss."""
    rng = np.random.default_rng(seed)
    kind = rng.random(n) < 0.1  # for whom the rare action is right
    likely = np.tile([0.97, 0.03], (n, 1))
    action = (rng.random(n) < likely[:, 1]).astype(int)
    loss = (rng.random(n) < 0.7 - gain * (kind & (action == 1))).astype(float)
    data = SimpleNamespace(
        lag=lag, logged_action=action, logged_loss=loss, cluster=np.arange(n), n_decisions=n
    )
    return data, kind, likely


def lead(data, kind, likely):
    """Of the rule that gives the rare action to whom it suits, over one that never does."""
    chance, held, free = whom(data, kind, likely)
    return lead_of_lower(data, chance, held, free, chance)


def test_a_policy_that_gains_by_what_is_rare_leads_without_its_floor():
    assert lead(*decisions()) > BEYOND_DOUBT


def test_one_that_gains_nothing_by_it_does_not_lead():
    leads = [lead(*decisions(gain=0.0, seed=seed)) for seed in range(40)]
    assert max(leads) < BEYOND_DOUBT
    assert abs(np.mean(leads)) < 0.5  # 3 standard errors
    assert lead(*decisions(gain=-0.25)) < -1


def test_one_that_rests_on_a_few_heavy_weights_is_not_believed():
    data, kind, likely = decisions()
    everybody = np.ones_like(kind)
    assert lead(data, kind, likely) > 0
    assert lead(data, everybody, likely) == -np.inf


def whom(data, kind, likely):
    """What the rule that gives the rare action to whom it suits, and one that never does, made of
    the logged actions; and the propensities of these."""
    chance = likely[np.arange(data.n_decisions), data.logged_action]
    held, free = (data.logged_action == np.where(kind & may, 1, 0) for may in (False, True))
    return chance, held.astype(float), free.astype(float)


def test_a_large_gain_by_what_is_rare_bears_something_hidden_and_a_small_one_does_not():
    for gain, borne in ((0.65, True), (0.3, False), (0.0, False)):
        data, kind, likely = decisions(gain=gain)
        assert bears_hidden(data, *whom(data, kind, likely)) is borne


def test_a_rare_action_given_for_a_hidden_good_prognosis_is_not_believed():
    """It harms by 0.1, goes to the well eight times as often, and leads by many standard errors."""
    rng = np.random.default_rng(0)
    n = 40_000
    kind, well = rng.random((2, n)) < [[0.1], [0.4]]
    seen = np.tile([0.96, 0.04], (n, 1))
    action = (rng.random(n) < np.where(well, 0.08, 0.01)).astype(int)
    loss = (rng.random(n) < np.where(well, 0.1, 0.7) + 0.1 * action).astype(float)
    data = SimpleNamespace(
        lag=0, logged_action=action, logged_loss=loss, cluster=np.arange(n), n_decisions=n
    )
    chance, held, free = whom(data, kind, seen)
    assert lead_of_lower(data, chance, held, free, chance) > BEYOND_DOUBT
    assert not bears_hidden(data, chance, held, free)


def test_too_few_who_got_it_tell_nothing():
    data, kind, likely = decisions(n=2_000, gain=0.65)
    assert not bears_hidden(data, *whom(data, kind, likely))


@given(
    st.lists(st.floats(-3, 3), min_size=1, max_size=6),
    st.floats(1, 9),
    st.integers(0, 2**31),
)
def test_the_highest_mean_is_that_of_the_worst_weights(loss, odds, seed):
    loss = np.asarray(loss)
    weight = np.random.default_rng(seed).uniform(0.1, 2, len(loss))
    each = itertools.product((1 / odds, odds), repeat=len(loss))
    worst = max((weight * own) @ loss / (weight * own).sum() for own in map(np.asarray, each))
    assert highest_mean(loss, weight, odds) == pytest.approx(worst, abs=1e-9)
    assert highest_mean(loss, weight, 1.0) == pytest.approx(weight @ loss / weight.sum(), abs=1e-9)


def test_a_log_that_hides_the_present_is_not_asked():
    assert may_go_lower(0.05, SimpleNamespace(lag=0))
    assert not may_go_lower(0.1, SimpleNamespace(lag=1))
    assert not may_go_lower(LOWEST, SimpleNamespace(lag=0))
