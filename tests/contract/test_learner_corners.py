"""H5: corner cases are learned from or refused in one line by every learner."""

from dataclasses import replace

import numpy as np
import pytest
from fitted_learners import (
    attempt,
    every_learner,
    every_network,
    fitted,
    log,
)
from small_worlds import LEARNERS, NETWORKS, training

import etips
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.errors import EtipsError


def one_stay():
    return log().subset([1])


def two_stays():
    return log().subset([1, 4])


def one_action():
    data = log()
    schema = replace(data.schema, n_actions=1)
    return replace(data, action=np.where(data.action >= 0, 0, -1), schema=schema)


def flat_feature():
    data = log()
    sequence = np.array(data.sequence)
    sequence[:, 3] = 7.0
    return replace(data, sequence=sequence)


def no_features():
    schema = Schema(sequence=(), n_actions=3, lag=0)
    return Trajectories(
        sequence=np.zeros((30, 0), np.float32),
        offsets=np.arange(31),
        schema=schema,
        action=np.tile([0, 1, 2], 10),
        loss=np.tile([0.0, 1.0], 15),
        propensity=np.full(30, 1 / 3),
    )


def no_decisions():
    data = log()
    return replace(data, loss=np.full(data.n_steps, np.nan), propensity=None)


def no_log():
    return log().without_log()


def an_action_nobody_took():
    data = log()
    return replace(data, schema=replace(data.schema, n_actions=4))


def losses_all_alike():
    data = log()
    return replace(data, loss=np.where(np.isnan(data.loss), np.nan, 1.0))


def losses_in_hundreds():
    data = log()
    return replace(data, loss=300 + 100 * data.loss)


def negative_losses():
    """Rewards with their sign turned, of clinicians who mostly do what suits."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 4))
    score = 1.5 * np.stack([features[:, 0], features[:, 1], -features[:, 0]], axis=1)
    chance = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    action = (rng.random(300)[:, None] > chance.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    reward = 2 - 0.5 * score[np.arange(300), action] + 0.3 * rng.normal(size=300)
    return etips.from_arrays(features, action, -reward, propensity=chance[np.arange(300), action])


def losses_beyond_float32():
    data = log()
    return replace(data, loss=1e300 * data.loss)


CORNERS = {
    make.__name__: make
    for make in (
        one_stay,
        two_stays,
        one_action,
        flat_feature,
        no_features,
        no_decisions,
        no_log,
        an_action_nobody_took,
        losses_all_alike,
        losses_in_hundreds,
        negative_losses,
        losses_beyond_float32,
    )
}


REFUSED = {"one_stay", "no_decisions", "no_log", "losses_beyond_float32"}


@every_learner
@pytest.mark.parametrize("corner", CORNERS)
def test_a_corner_case_is_learned_from_or_refused_in_one_line(name, corner):
    data = CORNERS[corner]()
    found = attempt(lambda: LEARNERS[name]().fit(data).predict_proba(data))
    if name in NETWORKS:
        assert isinstance(found, EtipsError) == (corner in REFUSED)
    if not isinstance(found, EtipsError):
        assert found.shape == (data.n_decisions, data.n_actions)
        assert (found >= 0).all()
        assert found.sum(axis=1) == pytest.approx(1)


@every_network
def test_an_ordinary_log_of_negative_losses_is_learned_from_to_the_end(name):
    """Some learners failed once their policies had left the clinicians' behind."""
    data = negative_losses()
    found = LEARNERS[name](training=training(6, 3)).fit(data).predict_proba(data)
    assert found.sum(axis=1) == pytest.approx(1)


@every_learner
def test_data_without_a_decision_get_an_empty_answer(name):
    assert fitted(name).predict_proba(no_decisions()).shape == (0, 3)
    assert fitted(name).predict(no_decisions()).shape == (0,)


def renamed():
    data = log()
    return replace(data, schema=replace(data.schema, sequence=("hr", "map", "lactate", "other")))


def without_static():
    data = log()
    schema = replace(data.schema, static=())
    return replace(data, schema=schema, static=np.zeros((data.n_stays, 0), np.float32))


def other_lag():
    return log().with_lag(0)


@every_network
@pytest.mark.parametrize("other", [renamed, without_static, other_lag, an_action_nobody_took])
def test_data_of_another_schema_are_refused(name, other):
    with pytest.raises(etips.DataError, match=r"^data, (sequence|static|lag|n_actions): is "):
        fitted(name).predict_proba(other())


@pytest.mark.parametrize("name", ["RandomPolicy", "MostFrequent"])
def test_data_with_another_number_of_actions_are_refused_by_simple_policies(name):
    with pytest.raises(etips.DataError, match=r"^data: must have the 3 actions"):
        fitted(name).predict_proba(an_action_nobody_took())


@pytest.mark.parametrize("name", ["TIPS", "IPS"])
def test_known_propensities_that_are_not_there_are_missed_before_training(name):
    data, epochs = replace(log(), propensity=None), []
    with pytest.raises(etips.DataError, match=r"^propensity: is not in the data"):
        LEARNERS[name]().fit(data, report=epochs.append)
    assert epochs == []
