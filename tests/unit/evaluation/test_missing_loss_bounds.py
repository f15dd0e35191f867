import math
from itertools import pairwise

import numpy as np
import pytest
from missing_worlds import make_missing

from etips.errors import SettingError
from etips.evaluation import Log, bound_risk, difference, logged_risk, snips, view
from etips.evaluation.censoring import LossModel, model_losses
from etips.evaluation.missing_loss_bounds import bound_missing


def bounds_of(world, **more):
    model = model_losses(world.data)
    log = Log.of(model.complete(world.data), propensities=world.propensities)
    return bound_missing(model, log, view(log, world.policy), **more)


@pytest.mark.parametrize("by_loss", [3.0, -3.0])
def test_bounds_hold_the_truth_when_the_loss_itself_decides(by_loss):
    world = make_missing(3_000, seed=3, by_loss=by_loss)
    plain, *_, worst = bounds_of(world).bounds
    assert not plain.risk_least.low < world.risk < plain.risk_most.high
    assert worst.gamma == math.inf
    assert worst.risk_least.low < world.risk < worst.risk_most.high
    assert worst.gain_least.low < world.gain < worst.gain_most.high


def test_bounds_widen_with_gamma_up_to_the_worst_case():
    found = bounds_of(make_missing(1_000, seed=4), gammas=(1.0, 2.0, 1000.0, math.inf)).bounds
    for narrow, wide in pairwise(found):
        assert wide.gain_most.value >= narrow.gain_most.value
        assert wide.risk_least.value <= narrow.risk_least.value
    assert found[-2].risk_most.value == found[-1].risk_most.value


def test_the_worst_case_of_a_few_decisions_by_hand():
    observed = np.array([True, True, False, False])
    model = LossModel(observed, np.array([1.0, 0, 0, 0]), np.full(4, 0.5), np.full(4, 0.5))
    log = Log(
        loss=model.stand_in,
        action=np.array([0, 1, 0, 1]),
        propensity=np.full(4, 0.5),
        cluster=np.arange(4),
        n_actions=2,
    )
    policy = view(log, np.tile([1.0, 0.0], (4, 1)))
    (worst,) = bound_missing(model, log, policy, gammas=(math.inf,)).bounds
    assert (worst.risk_least.value, worst.risk_most.value) == (0.5, 1.0)
    # action 0 counts for the policy: 1 + missing, against a quarter of all four
    assert worst.gain_most.value == pytest.approx(1.0 - 0.5)
    assert worst.gain_least.value == pytest.approx(0.5 - 0.5)


def test_without_dependence_the_bound_is_the_weighted_estimate():
    world = make_missing(800, seed=5)
    model = model_losses(world.data)
    log = Log.of(model.complete(world.data), propensities=world.propensities)
    policy = view(log, world.policy)
    (plain,) = bound_missing(model, log, policy, gammas=(1.0,)).bounds
    risk = snips(log.loss, policy.weight, log.clusters)
    gain = difference(risk, logged_risk(log.loss, log.clusters))
    assert plain.risk_most.value == pytest.approx(risk.risk)
    assert plain.gain_least.value == pytest.approx(gain.difference)


def test_losses_beyond_the_unit_have_no_worst_case_and_gammas_are_checked():
    world = make_missing(400, seed=6)
    far = type(world.data)(
        sequence=world.data.sequence,
        offsets=world.data.offsets,
        schema=world.data.schema,
        action=world.data.action,
        loss=world.data.loss * 10,
        missing_loss="weight",
    )
    model = model_losses(far)
    log = Log.of(model.complete(far), propensities=world.propensities)
    found = bound_missing(model, log, view(log, world.policy))
    assert all(math.isfinite(bound.gamma) for bound in found.bounds)
    with pytest.raises(SettingError, match=r"^gammas: "):
        bound_missing(model, log, view(log, world.policy), gammas=(0.5,))


def test_hidden_confounding_is_bounded_by_the_losses_and_not_by_the_noise_of_stand_ins():
    world = make_missing(3_000, seed=7)
    model = model_losses(world.data)
    log = Log.of(model.complete(world.data), propensities=world.propensities)
    policy = view(log, world.policy)
    (noisy,) = bound_risk(log, policy, gammas=(3.0,)).bounds
    (own,) = bound_risk(log, policy, gammas=(3.0,), losses=model).bounds
    assert 0 <= own.risk_least.value < own.risk_most.value <= 1
    assert own.risk_most.value - own.risk_least.value < (
        noisy.risk_most.value - noisy.risk_least.value
    )
