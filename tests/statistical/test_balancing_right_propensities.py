"""Right propensities are hardly ever corrected, and come to no harm where they are."""

import numpy as np
import pytest
from confounded_worlds import KINDS, confounded, regressed_prognosis, snips_bias

from etips.evaluation.reweighting.rebalance import Decided, rebalance

pytestmark = pytest.mark.statistical


def test_right_propensities_are_touched_in_few_worlds_and_estimates_are_no_worse():
    used, plain, after, heavier = [], [], [], []
    for kind in KINDS:
        for seed in range(5000, 5060):
            world = confounded(kind, n_stays=400, seed=seed)
            outlook = regressed_prognosis(world)
            decided = Decided(world.action, world.loss, world.x, outlook)
            same = rebalance(world.right, decided, world.cluster)
            used.append(same.used)
            plain.append(snips_bias(world, world.right))
            after.append(snips_bias(world, same.propensities))
            first = world.action == 0
            squares = [(1 / own[first, 0] ** 2).mean() for own in (same.propensities, world.right)]
            heavier.append(squares[0] / squares[1])
    assert np.mean(used) <= 0.05
    assert np.square(after).mean() <= 1.02 * np.square(plain).mean()
    assert np.mean(heavier) <= 1.02
