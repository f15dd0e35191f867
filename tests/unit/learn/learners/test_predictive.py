"""Imitation: the fitted propensities are the policy."""

import numpy as np
import pytest
from small_worlds import small, training

from etips.data.tables.arrays import from_arrays
from etips.learn import PredictiveModel
from etips.models.encoders.gru import GRU
from etips.worlds.clinic import Clinic

WORLD = Clinic(n_contexts=20, n_features=3, n_actions=3, decisions_per_stay=3)


def test_its_probabilities_come_near_those_of_the_clinicians():
    train, test = WORLD.log(600, seed=0), WORLD.log(100, seed=1)
    learner = PredictiveModel(encoder=GRU(8), training=training(12, 2)).fit(train)
    found = learner.predict_proba(test)
    assert np.abs(found - test.true_logging()).mean() < 0.1
    uniform = np.abs(1 / 3 - test.true_logging()).mean()
    assert np.abs(found - test.true_logging()).mean() < uniform / 2


def test_it_recommends_what_clinicians_would_most_likely_do():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 2))
    action = (features[:, 0] > 0).astype(int)
    learner = PredictiveModel(**small(training=training(12, 2)))
    learner.fit(features, action, rng.random(300))
    assert (learner.predict(features) == action).mean() > 0.9
    assert learner.quality_.accuracy > 0.9


def test_the_losses_are_nothing_to_it():
    log = WORLD.log(60, seed=0)
    other = from_arrays(log.sequence[:], log.action, 1 - log.loss)
    same = from_arrays(log.sequence[:], log.action, log.loss)
    found = [PredictiveModel(**small()).fit(data).predict_proba(same) for data in (same, other)]
    assert found[0].tobytes() == found[1].tobytes()


def test_it_never_abstains():
    log = WORLD.log(60, seed=0)
    learner = PredictiveModel(**small()).fit(log)
    assert not learner.abstains(log).any()
    assert learner.predict_proba(log) == pytest.approx(learner.policy_.propensities(log))
