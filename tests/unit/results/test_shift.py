"""How data that a policy is judged on differ from those it learned from."""

from dataclasses import replace

import numpy as np
import pytest

import etips
from etips.data.alignment import align
from etips.evaluation.log import Log
from etips.learn import Settings, Training
from etips.results.shift import find_shift
from etips.worlds.two_hospitals import SECOND, simulate_place

SHORT = Settings(epochs=3, batch_size=64, learning_rate=0.01)
QUICK = Training(n_folds=2, device="cpu", propensity=SHORT, outcome=SHORT, policy=SHORT)


@pytest.fixture(scope="module")
def policy():
    return etips.PredictiveModel(training=QUICK).fit(simulate_place(200, seed=1)).policy_


def shift_to(policy, stays):
    data = align(stays, policy.schema)
    log = Log.of(data, propensities=np.full((data.n_decisions, 9), 1 / 9), predicted=None)
    return find_shift({"it": policy}, data, log)


@pytest.fixture(scope="module")
def shift(policy):
    return shift_to(policy, simulate_place(300, seed=2, place=SECOND))


def test_data_of_the_same_place_have_none(policy):
    assert shift_to(policy, simulate_place(100, seed=3)) is None


def test_features_that_were_moved_differ_in_their_direction(shift):
    moved = {own.name: own.difference for own in shift.features}
    assert moved["SOFA"] > 0.2
    assert moved["MeanBP"] < -0.2
    assert moved["age"] > 0.25
    assert abs(moved["gender"]) < 0.25
    sizes = [abs(own.difference) for own in shift.features]
    assert sizes == sorted(sizes, reverse=True)
    assert shift.n_apart == sum(size > 0.25 for size in sizes)


def test_actions_practice_and_losses_stand_side_by_side(shift):
    assert sum(own.expected for own in shift.actions) == pytest.approx(1)
    assert shift.practice > 0.05
    assert shift.log_loss_here == pytest.approx(np.log(9))
    assert 0.3 < shift.loss_there < 0.6
    assert 0.3 < shift.loss_here < 0.6
    assert shift.distance in ("moved", "far")
    assert "etips compare" in shift.sentences[-1]


def test_a_feature_in_another_unit_is_asked_about(policy):
    stays = simulate_place(100, seed=2, place=SECOND)
    factor = np.ones(5, np.float32)
    factor[stays.schema.sequence.index("MeanBP")] = 7.5  # mmHg of kPa
    odd = shift_to(policy, replace(stays, sequence=stays.sequence * factor))
    assert any("In another unit?" in own and "MeanBP" in own for own in odd.sentences)
    assert odd.distance == "far"
    assert odd.unlike is None or odd.unlike > 0.9


def test_policies_that_remember_nothing_have_no_shift(policy):
    assert shift_to(replace(policy, origin=None), simulate_place(50, seed=2, place=SECOND)) is None
