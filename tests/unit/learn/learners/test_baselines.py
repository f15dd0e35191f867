"""Learners with next to nothing to learn, each where its answer is known."""

import numpy as np
import pytest
from small_worlds import ward

import etips
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError
from etips.learn.learners.baselines import MostFrequent, RandomPolicy
from etips.worlds.clinic import Clinic

EVERY = [RandomPolicy, MostFrequent]
CLINIC = Clinic(n_actions=4)


@pytest.fixture(scope="module")
def log():
    return CLINIC.log(200, seed=0)


def real_log(action, n_actions=3):
    """A log as a hospital has it: nobody knows the truth."""
    n = len(action)
    return Trajectories(
        sequence=np.zeros((n, 1), np.float32),
        offsets=np.arange(n + 1),
        schema=Schema(sequence=("x",), n_actions=n_actions, lag=0),
        action=np.array(action),
        loss=np.zeros(n),
    )


@pytest.mark.parametrize("policy", EVERY)
def test_a_baseline_gives_probabilities_of_its_predictions_and_abstains_nowhere(policy, log):
    learner = policy().fit(log)
    probabilities, action = learner.predict_proba(log), learner.predict(log)
    assert probabilities.shape == (log.n_decisions, 4)
    assert probabilities.sum(axis=1) == pytest.approx(1)
    assert (probabilities[np.arange(log.n_decisions), action] > 0).all()
    assert not learner.abstains(log).any()


@pytest.mark.parametrize("policy", EVERY)
def test_a_baseline_not_fitted_is_refused(policy, log):
    with pytest.raises(SettingError, match=f"^{policy.__name__}: must be fitted first"):
        policy().predict(log)


@pytest.mark.parametrize("policy", EVERY)
def test_data_with_other_actions_are_refused(policy, log, tmp_path):
    learner = policy().fit(log)
    learner.save(tmp_path / "policy")
    for n_actions in (3, 5):
        for own in (learner, etips.load(tmp_path / "policy")):
            with pytest.raises(DataError, match=r"^data: must have the 4 actions"):
                own.predict_proba(Clinic(n_actions=n_actions).log(5, seed=0))


def test_the_random_policy_is_uniform_and_draws_uniformly(log):
    policy = RandomPolicy(seed=1).fit(log)
    assert (policy.predict_proba(log) == 0.25).all()
    share = np.bincount(policy.predict(log), minlength=4) / log.n_decisions
    assert share == pytest.approx(np.full(4, 0.25), abs=0.07)  # 1,000 draws: 5 standard errors
    assert (policy.predict(log) == policy.predict(log)).all()
    assert (policy.predict(log) != RandomPolicy(seed=2).fit(log).predict(log)).any()


def test_the_most_frequent_action_is_given_to_everyone():
    policy = MostFrequent().fit(real_log([2, 1, 2, 0]))
    assert policy.policy_.constant == 2
    asked = real_log([0, 0])
    assert policy.predict(asked).tolist() == [2, 2]
    assert policy.predict_proba(asked).tolist() == [[0, 0, 1], [0, 0, 1]]


def test_among_equally_frequent_actions_the_lowest_wins():
    assert MostFrequent().fit(real_log([2, 1, 1, 2])).policy_.constant == 1


def test_most_frequent_counts_decisions_not_steps():
    data = real_log([1, 1, 1, 2, 2])
    stays = Trajectories(
        sequence=data.sequence,
        offsets=np.array([0, 3, 5]),
        schema=data.schema,
        action=np.array([1, 1, 2, 1, 2]),
        loss=np.zeros(5),
    )
    assert MostFrequent().fit(stays).policy_.constant == 1
    later = MostFrequent().fit(stays.with_lag(1))  # first steps are no decisions
    assert later.policy_.constant == 2


def test_most_frequent_needs_a_decision_and_a_log():
    nothing = real_log([1]).with_lag(1)
    with pytest.raises(DataError, match=r"^data: must hold at least one decision"):
        MostFrequent().fit(nothing)
    with pytest.raises(DataError, match=r"^data: holds no logged actions"):
        MostFrequent().fit(real_log([1]).without_log())


def test_a_saved_random_policy_draws_what_it_drew_before(tmp_path):
    learner = RandomPolicy(seed=7).fit(ward())
    learner.save(tmp_path / "policy")
    found = etips.load(tmp_path / "policy").predict(ward())
    assert (found == learner.predict(ward())).all()
    assert np.unique(found).size == 3
