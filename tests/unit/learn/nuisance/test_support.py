"""The floor on support: lowered where it would leave nothing to recommend."""

import numpy as np
import pytest

from etips.learn.nuisance.support import SUPPORT, bearable


def test_a_floor_that_leaves_an_action_nearly_everywhere_stays():
    likely = np.tile([0.9, 0.06, 0.04], (100, 1))
    likely[:5] = 1 / 3  # below the floor asked for, but few
    assert bearable(0.5, likely) == 0.5


@pytest.mark.parametrize("n_actions", [12, 25, 200])
@pytest.mark.parametrize("lag", [0, 1])
def test_many_even_actions_lower_the_floor_until_some_can_be_recommended(n_actions, lag):
    likely = np.full((50, n_actions), 1 / n_actions)
    floor = bearable(SUPPORT[lag], likely)
    assert floor <= 1 / n_actions
    assert floor == SUPPORT[lag] or 2 * floor > 1 / n_actions
