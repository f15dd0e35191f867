"""Weighting for missing losses covers where the visible and the action decide who is missing."""

import numpy as np
import pytest
from missing_worlds import make_missing

from etips.evaluation import difference, logged_risk, snips
from etips.evaluation.censoring import model_losses

pytestmark = pytest.mark.statistical

WORLDS = 100  # binomial noise 2.2 points: 95 % lands above 88


@pytest.mark.parametrize("kind", ["line", "product"])
def test_intervals_from_stand_ins_cover_and_those_without_the_missing_do_not(kind):
    n, weighted, dropped = 1_500, [], []
    for seed in range(WORLDS):
        world = make_missing(n, seed=seed, kind=kind)
        model, rows = model_losses(world.data), np.arange(n)
        action = world.data.logged_action
        weight = world.policy[rows, action] / world.propensities[rows, action]
        for found, loss, kept in (
            (weighted, model.stand_in, rows),
            (dropped, model.loss, np.flatnonzero(model.observed)),
        ):
            risk = snips(loss[kept], weight[kept], kept)
            gain = difference(risk, logged_risk(loss[kept], kept))
            found.append((risk.low < world.risk < risk.high, gain.low < world.gain < gain.high))
    assert (np.mean(weighted, axis=0) >= 0.88).all()
    assert (np.mean(dropped, axis=0) < 0.85).any()
