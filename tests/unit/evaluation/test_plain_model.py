"""What one model of a stack says beside it."""

from dataclasses import replace

import numpy as np
import pytest
from confounded_worlds import confounded, marginal

from etips.evaluation import Log, assess, snips, view
from etips.evaluation.diagnostics import moved_by_stacking, plain_weights


def logs(world, **more):
    table = marginal(world)
    chance = table[np.arange(len(world.x)), world.action]
    before = Log(
        world.loss, world.action, chance, world.cluster, 3,
        propensities=table, features=world.x, **more,
    )  # fmt: skip
    own = np.maximum(world.right[np.arange(len(world.x)), world.action], 0)
    after = replace(before, propensity=own, propensities=world.right)
    return before, after.beside(table, None)


def always(world, action=0):
    return np.eye(3)[np.full(len(world.x), action)]


def test_it_is_the_difference_of_both_estimates_over_the_half_width():
    world = confounded("linear", n_stays=300, seed=0)
    before, after = logs(world)
    one, other = (
        snips(log.loss, view(log, always(world)).weight, log.clusters) for log in (before, after)
    )
    moved = moved_by_stacking(after, view(after, always(world)), other, 0.05)
    assert moved == pytest.approx(abs(one.risk - other.risk) / 0.05)
    assert moved_by_stacking(before, view(before, always(world)), one, 0.05) is None


def test_predicted_losses_leave_less_to_move_and_abstained_decisions_nothing():
    world = confounded("linear", n_stays=300, seed=1)
    predicted = np.tile(world.risk[:, None], (1, 3))
    _, after = logs(world, predicted=predicted)
    policy = view(after, always(world))
    plain, robust = (assess(after, always(world), estimators=(e,)) for e in ("snips", "sndr"))
    assert robust.diagnostics.moved < plain.diagnostics.moved / 2
    silent = view(after, policy.probabilities, np.ones(len(world.x), bool))
    estimate = plain.estimates[0]
    assert moved_by_stacking(after, silent, estimate, 0.05) == pytest.approx(0, abs=1e-12)


def test_an_estimate_that_stacking_moved_far_is_doubtful_and_one_hardly_moved_is_not():
    world = confounded("linear", n_stays=500, seed=2)
    _, after = logs(world)
    verdict = assess(after, always(world), estimators=("snips",)).verdict
    assert verdict.label == "doubtful"
    assert any("stacking models moved the estimate" in reason for reason in verdict.reasons)
    same = after.beside(world.right, None)
    reasons = assess(same, always(world), estimators=("snips",)).verdict.reasons
    assert not any("stacking" in reason for reason in reasons)


def test_stacking_makes_no_verdict_better_than_that_of_one_model():
    world = confounded("product", n_stays=500, seed=3)
    before, after = logs(world)
    one, other = (assess(log, always(world), estimators=("snips",)) for log in (before, after))
    assert one.verdict.label != "reliable"
    assert other.verdict.label == "doubtful"
    assert any("By the network alone" in own for own in other.verdict.reasons)
    assert plain_weights(before, view(before, always(world))) is None
