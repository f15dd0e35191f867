from dataclasses import replace

import numpy as np
import pytest
from confounded_worlds import confounded, marginal

from etips.evaluation import Log, assess, snips, view
from etips.evaluation.reweighting.moved_risk import moved_by_balancing, weights_before


def logs(world, **more):
    table = marginal(world)
    chance = table[np.arange(len(world.x)), world.action]
    before = Log(
        world.loss, world.action, chance, world.cluster, 3,
        propensities=table, features=world.x, **more,
    )  # fmt: skip
    return before, before.weighed_by(world.right)


def always(world, action=0):
    return np.eye(3)[np.full(len(world.x), action)]


def test_it_is_the_difference_of_both_estimates_over_the_half_width():
    world = confounded("linear", n_stays=300, seed=0)
    before, after = logs(world)
    one, other = (
        snips(log.loss, view(log, always(world)).weight, log.clusters) for log in (before, after)
    )
    moved = moved_by_balancing(after, view(after, always(world)), other, 0.05)
    assert moved == pytest.approx(abs(one.risk - other.risk) / 0.05)
    assert moved_by_balancing(before, view(before, always(world)), one, 0.05) is None


def test_predicted_losses_leave_less_to_move_and_abstained_decisions_nothing():
    world = confounded("linear", n_stays=300, seed=1)
    predicted = np.tile(world.risk[:, None], (1, 3))
    _, after = logs(world, predicted=predicted)
    policy = view(after, always(world))
    plain, robust = (assess(after, always(world), estimators=(e,)) for e in ("snips", "sndr"))
    assert robust.diagnostics.moved < plain.diagnostics.moved / 2
    silent = view(after, policy.probabilities, np.ones(len(world.x), bool))
    estimate = plain.estimates[0]
    assert moved_by_balancing(after, silent, estimate, 0.05) == pytest.approx(0, abs=1e-12)


def test_an_estimate_that_balancing_moved_far_is_doubtful_and_one_hardly_moved_is_not():
    world = confounded("linear", n_stays=500, seed=2)
    _, after = logs(world)
    verdict = assess(after, always(world), estimators=("snips",)).verdict
    assert verdict.label == "doubtful"
    assert any("balancing them moved the estimate" in reason for reason in verdict.reasons)
    same = replace(after, unbalanced=None).weighed_by(world.right)
    reasons = assess(same, always(world), estimators=("snips",)).verdict.reasons
    assert not any("balancing" in reason for reason in reasons)


def test_balancing_makes_no_verdict_better_than_it_was():
    world = confounded("product", n_stays=500, seed=3)
    before, after = logs(world)
    one, other = (assess(log, always(world), estimators=("snips",)) for log in (before, after))
    assert one.verdict.label != "reliable"
    assert other.verdict.label == "doubtful"
    assert any("Before the fitted models were corrected" in own for own in other.verdict.reasons)
    assert weights_before(before, view(before, always(world))) is None
