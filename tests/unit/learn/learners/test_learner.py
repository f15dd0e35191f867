"""What every learner can do, shown on a learner of one's own: it needs nothing but its class."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from small_worlds import CLINIC, ward

import etips
from etips.errors import SettingError
from etips.learn.fitting.prepare import prepare
from etips.learn.fitting.trainer import TrainingRequest
from etips.learn.learners.learner import Fit, Learner
from etips.learn.training.objectives import cross_entropy
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.network import Network
from etips.policies.policy import FittedPolicy
from etips.runs.run import Run


@dataclass(kw_only=True, eq=False)
class Imitation(Learner):
    """A learner of one's own: networks that imitate, and one request for them."""

    rate: float = 0.05
    hidden: int = 4

    def _learn(self, stays, trainer):
        if self.rate <= 0:
            raise SettingError("rate", "must be above 0")
        prepared = prepare(stays, n_folds=2, seed=0, device=torch.device("cpu"))
        n_features, n_static = prepared.steps.n_features, stays.static.shape[1]
        network = Network(GRU(self.hidden), n_features, n_static, stays.n_actions)
        request = TrainingRequest(
            prepared,
            Bundle.start(network, [1, 2]),
            lambda outputs, seen: cross_entropy(outputs, prepared.action[seen]),
            stage="imitation",
            settings=Settings(epochs=3, batch_size=32, learning_rate=self.rate),
        )
        bundle = trainer.train(request)
        return Fit(
            FittedPolicy("imitation", stays.schema, scaler=prepared.scaler, propensity=bundle)
        )


@pytest.fixture(scope="module")
def log():
    return CLINIC.log(60, seed=0)


def test_a_learner_of_ones_own_is_fitted_saved_and_loaded(log, tmp_path):
    learner = Imitation().fit(log)
    probabilities = learner.predict_proba(log)
    assert probabilities.shape == (log.n_decisions, log.n_actions)
    assert probabilities.sum(axis=1) == pytest.approx(1)
    learner.save(tmp_path / "policy")
    assert (etips.load(tmp_path / "policy").predict_proba(log) == probabilities).all()


def test_what_was_learned_is_set_from_the_fit_and_nowhere_else(log):
    learner = Imitation()
    before = set(vars(learner))
    learner.fit(log)
    assert learner.policy_ is learner.fit_.policy
    assert (learner.path_, learner.selected_risk_, learner.quality_) == ((), None, None)
    assert (learner.support_, learner.clipped_share_) == (None, None)
    learned = {"fit_", "policy_", "path_", "quality_", "support_", "clipped_share_", "choice_"}
    assert set(vars(learner)) - before == learned | {"selected_risk_"}


def test_a_learner_that_is_not_fitted_has_no_policy_and_no_classes(tmp_path):
    learner = Imitation()
    for act in (learner.fitted_policy, lambda: learner.predict(ward())):
        with pytest.raises(SettingError, match=r"^Imitation: must be fitted first\.$"):
            act()
    with pytest.raises(SettingError, match=r"^Imitation: must be fitted first\.$"):
        learner.save(tmp_path / "policy")
    assert not hasattr(learner, "classes_")
    assert not hasattr(learner, "n_features_in_")


def test_classes_are_the_actions_and_features_those_of_a_step(log):
    learner = Imitation().fit(log)
    assert learner.classes_.tolist() == [0, 1, 2]
    assert learner.n_features_in_ == len(log.schema.sequence)


def test_arrays_do_as_well_as_stays():
    rng = np.random.default_rng(0)
    features, action = rng.normal(size=(40, 2)), np.tile([0, 1], 20)
    learner = Imitation().fit(features, action, np.zeros(40))
    assert learner.predict(features).shape == (40,)
    with pytest.raises(SettingError, match=r"^data: must be Trajectories alone, or arrays"):
        learner.fit(ward(), action, np.zeros(40))


def test_a_run_must_be_one_and_in_use(log, tmp_path):
    for wrong in (tmp_path, "run"):
        with pytest.raises(SettingError, match=r"^run: must be a run in use\. Use with Run"):
            Imitation().fit(log, run=wrong)
    with pytest.raises(SettingError, match=r"^run: must be a run in use\. Use with Run"):
        Imitation().fit(log, run=Run(tmp_path / "run", "id"))


def test_a_run_keeps_the_stage_and_the_next_fit_takes_it_up(log, tmp_path, trained):
    with Run(tmp_path / "run", "id") as run:
        first = Imitation().fit(log, run=run)
    with Run(tmp_path / "run", "id") as run:
        second = Imitation().fit(log, run=run)
    assert trained == [2]
    assert (first.predict_proba(log) == second.predict_proba(log)).all()


def test_a_learner_must_say_how_it_learns():
    with pytest.raises(TypeError, match="_learn"):
        type("Idle", (Learner,), {})()
