"""Learners that train networks hand their settings on to what they stand on."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from small_worlds import CLINIC, small, training

from etips.errors import SettingError
from etips.learn.learners.learner import Fit
from etips.learn.learners.policy_search import NetworkLearner


@dataclass(kw_only=True, eq=False)
class Probe(NetworkLearner):
    """A learner that keeps what it stands on."""

    additive: bool = False

    def _learn(self, stays, trainer):
        self.base = self._fit_nuisances(stays, trainer, support=0.2)
        self.outcome = self._fit_outcome(self.base, trainer, additive=self.additive)
        return Fit(self.base.policy("imitation"))


@pytest.fixture(scope="module")
def log():
    return CLINIC.log(60, seed=0)


def test_shape_folds_and_seed_reach_every_network(log):
    first = Probe(**small(seed=1, training=training(n_folds=3))).fit(log)
    assert first.base.propensity.bundle.network.encoder == first.encoder
    assert first.outcome.bundle.network.encoder == first.encoder
    assert first.base.propensity.bundle.n_members == first.outcome.bundle.n_members == 3
    assert first.base.support == 0.2
    again = Probe(**small(seed=1, training=training(n_folds=3))).fit(log)
    other = Probe(**small(seed=2, training=training(n_folds=3))).fit(log)
    assert (first.outcome.expected == again.outcome.expected).all()
    assert np.abs(first.outcome.expected - other.outcome.expected).max() > 1e-4


def test_outcome_networks_have_settings_of_their_own(log, trained):
    longer = replace(training(), outcome=replace(training().outcome, epochs=3))
    epochs = []
    Probe(**small(training=longer)).fit(log, report=epochs.append)
    assert [at.stage for at in epochs] == ["propensity"] * 2 + ["outcome"] * 3
    assert trained == [2, 2]


def test_additive_networks_are_a_stage_of_their_own(log):
    stages = []
    Probe(additive=True, **small()).fit(log, report=lambda at: stages.append(at.stage))
    assert set(stages) == {"propensity", "additive"}


def test_settings_outside_their_limits_are_refused_before_training(log, trained):
    with pytest.raises(SettingError, match=r"^seed: must be in "):
        Probe(**small(seed=-1)).fit(log)
    assert trained == []
