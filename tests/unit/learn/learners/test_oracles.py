"""Policies that know the truth of a simulated world, each where its answer is known."""

import numpy as np
import pytest
from small_worlds import ward

from etips.errors import DataError, SettingError
from etips.learn.learners.baselines import BestPossible, LoggingPolicy
from etips.worlds.clinic import Clinic

EVERY = [LoggingPolicy, BestPossible]
CLINIC = Clinic(n_actions=4)


@pytest.fixture(scope="module")
def log():
    return CLINIC.log(200, seed=0)


@pytest.mark.parametrize("policy", EVERY)
def test_a_policy_gives_probabilities_in_decision_order(policy, log):
    fitted = policy().fit(log)
    found = fitted.predict_proba(log)
    assert found.shape == (log.n_decisions, 4)
    assert found.dtype == np.float64
    assert (found >= 0).all()
    assert found.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("policy", EVERY)
def test_a_prediction_is_an_action_the_policy_may_take(policy, log):
    fitted = policy().fit(log)
    action = fitted.predict(log)
    assert action.shape == (log.n_decisions,)
    assert (fitted.predict_proba(log)[np.arange(log.n_decisions), action] > 0).all()


@pytest.mark.parametrize("policy", EVERY)
def test_fit_returns_the_policy_itself(policy, log):
    made = policy()
    assert made.fit(log) is made


@pytest.mark.parametrize("policy", EVERY)
def test_a_policy_not_fitted_is_refused(policy, log):
    with pytest.raises(SettingError, match=f"^{policy.__name__}: is not fitted"):
        policy().predict_proba(log)
    with pytest.raises(SettingError, match=f"^{policy.__name__}: is not fitted"):
        policy().predict(log)


@pytest.mark.parametrize("policy", EVERY)
def test_data_with_other_actions_are_refused(policy, log):
    fitted = policy().fit(log)
    with pytest.raises(DataError, match=r"^data: must have the 4 actions"):
        fitted.predict_proba(Clinic(n_actions=3).log(5, seed=0))


def test_the_logging_policy_is_the_true_one(log):
    found = LoggingPolicy().fit(log).predict_proba(log)
    assert (found == CLINIC.logging_table()[log.truth.code]).all()


def test_the_best_policy_takes_the_action_of_least_true_loss(log):
    policy = BestPossible().fit(log)
    assert (policy.predict_proba(log) == CLINIC.best_table()[log.truth.code]).all()
    risk = log.true_risk(policy.predict_proba(log))
    assert risk < log.true_risk(LoggingPolicy().fit(log).predict_proba(log))


@pytest.mark.parametrize("policy", [LoggingPolicy, BestPossible])
def test_truth_is_refused_where_nobody_knows_it(policy, log):
    with pytest.raises(DataError, match=r"^truth: is known only in simulated data"):
        policy().fit(ward())
    with pytest.raises(DataError, match=r"^truth: is known only in simulated data"):
        policy().fit(log).predict(ward(n_actions=4))
