"""Policies as somebody follows them."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import CLINIC, small

from etips.learn import LoggingPolicy, PredictiveModel
from etips.results.followed_policies import as_fitted, follow


@pytest.fixture(scope="module")
def learner():
    """Its networks are those of the clinicians, of whom it takes the likeliest action."""
    found = PredictiveModel(**small()).fit(CLINIC.log(60, seed=0))
    same = found.policy_.propensity
    policy = replace(found.policy_, kind="softmax", networks=same, acts="likeliest")
    found.policy_, found.fit_ = policy, replace(found.fit_, policy=policy)
    return found


def test_a_learner_and_its_policy_are_followed_alike(learner):
    stays = CLINIC.log(30, seed=1)
    assert as_fitted(learner) is as_fitted(learner.policy_) is learner.policy_
    one, other = follow(learner, stays), follow(learner.policy_, stays)
    assert (one.deployed.probabilities == other.deployed.probabilities).all()


def test_what_takes_its_likeliest_action_also_says_what_it_would_draw(learner):
    stays = CLINIC.log(30, seed=1)
    policy = replace(learner.policy_, support=0.0)
    found = follow(policy, stays)
    assert (found.deployed.probabilities.argmax(1) == policy.predict(stays)).all()
    assert set(np.unique(found.deployed.probabilities)) == {0, 1}
    assert (found.drawn.probabilities == policy.predict_proba(stays)).all()


def test_what_draws_has_nothing_beside(learner):
    stays = CLINIC.log(30, seed=1)
    policy = replace(learner.policy_, acts="draws")
    found = follow(policy, stays)
    assert found.drawn is None
    assert (found.deployed.probabilities == policy.predict_proba(stays)).all()
    clinicians = PredictiveModel(**small()).fit(stays)
    assert follow(clinicians, stays).drawn is None


def test_a_policy_of_somebody_else_is_its_probabilities():
    stays = CLINIC.log(30, seed=1)
    policy = LoggingPolicy().fit(stays)
    assert as_fitted(policy) is None
    found = follow(policy, stays)
    assert (found.deployed.probabilities == stays.true_logging()).all()
    assert not found.deployed.abstained.any()
