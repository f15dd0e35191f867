"""Policies deployed: looking ahead beats looking at one decision where the two disagree.

About two minutes on one core.
"""

import numpy as np
import pytest

from etips.learn import DirectMethod, Training
from etips.models.encoders.gru import GRU
from etips.worlds.deployment import follow
from etips.worlds.tolerance import Tolerance

pytestmark = pytest.mark.statistical

VISITS = 8


def deployed(world, seed, *, n_stays=400, earlier_actions=False, **settings):
    """Loss per visit of a policy learned from a small log; its standard error is about 0.003."""
    training = Training(device="cpu", earlier_actions=earlier_actions)
    learner = DirectMethod(encoder=GRU(32, embed=32), training=training, seed=seed, **settings)
    policy = learner.fit(world.log(n_stays, seed=seed)).policy_
    return world.deploy(follow(policy), n_stays=2_000, seed=99).stay_risk().risk / VISITS


@pytest.mark.parametrize("overlap", [0.3, 1.0])
def test_one_decision_ahead_does_harm_and_the_stay_in_view_does_good(overlap):
    world = Tolerance(overlap=overlap)
    logged = world.stay_risk(world.logging_table()) / VISITS
    for seed in range(2):
        assert deployed(world, seed) > logged + 0.03
        assert deployed(world, seed, horizon="stay") < logged - 0.03


def test_where_tolerance_is_hard_to_see_the_earlier_actions_tell():
    world = Tolerance(overlap=1.0, noise=0.5)
    logged = world.stay_risk(world.logging_table()) / VISITS
    found = [deployed(world, s, horizon="stay", earlier_actions=True) for s in range(2)]
    assert max(found) < logged - 0.03
    blind = [deployed(world, s, horizon="stay") for s in range(2)]
    assert np.mean(found) < np.mean(blind) - 0.01


def test_where_nothing_builds_up_looking_ahead_costs_little():
    world = Tolerance(overlap=1.0, buildup=0.0)
    logged = world.stay_risk(world.logging_table()) / VISITS
    best = world.stay_risk(world.best_table()) / VISITS
    assert deployed(world, 0, horizon="stay") < best + 0.4 * (logged - best)
