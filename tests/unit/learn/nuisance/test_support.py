"""The floor on support: lowered where it would leave nothing to recommend."""

import numpy as np
import pytest

from etips.learn.nuisance.support import MARGIN, SUPPORT, agreed_floor, bearable


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
