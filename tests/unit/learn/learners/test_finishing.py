"""The chosen policy goes on with all stays, for as long as it had learned, and no further."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_worlds import CLEAR, small, training

from etips.learn import Settings
from etips.learn.fitting.trainer import Trainer, TrainingRequest
from etips.learn.learners.policy_objectives import Variant, form_objective
from etips.learn.learners.policy_search import MAX_FINISH_EPOCHS, finish_of
from etips.learn.learners.weighted import EtIPS
from etips.models.bundle import Trained

SETTINGS = Settings(epochs=20, batch_size=64, learning_rate=0.02, patience=4)


@pytest.fixture(scope="module")
def base():
    learner = EtIPS(**small(training=training(6)))
    return learner._fit_nuisances(CLEAR.log(200, seed=0), Trainer(), support=0.0)


def request_of(base):
    objective = form_objective(base, [Variant("beta-IPS")], kl=0.01)
    return TrainingRequest(base.prepared, base.propensity.bundle, objective, "policy", SETTINGS)


def learn(base, trainer=None, **more):
    stages = {"finish": more.pop("finish", True), "policy": replace(SETTINGS, epochs=3, patience=2)}
    learner = EtIPS(**small(training=training(6, **stages)), translations=(0.5, 0.6), **more)
    return learner.learn_on(base, trainer or Trainer())


def ended(base, *epochs):
    return replace(base.propensity.bundle, trained=tuple(map(Trained, epochs)))


def finish_epochs(base, settings, *epochs):
    request = replace(request_of(base), settings=settings)
    return finish_of(request, ended(base, *epochs)).settings.epochs


@pytest.mark.parametrize(
    ("epochs", "expected"),
    [
        ((6, 6), 3),  # best after two, half as long again
        ((5, 6), 3),  # 1.5 on average
        ((5, 5), 2),
        ((20, 20), MAX_FINISH_EPOCHS),  # to the end, which is too long
        ((4, 4), 1),  # never better than where they began
    ],
)
def test_networks_go_on_for_half_as_long_again_as_they_had_learned(base, epochs, expected):
    assert finish_epochs(base, SETTINGS, *epochs) == expected


def test_never_longer_than_a_training_may_be(base):
    assert finish_epochs(base, replace(SETTINGS, epochs=3), 3, 3) == 3


def test_all_stays_are_learned_from_and_none_is_stopped_by(base):
    request = request_of(base)
    finish = finish_of(request, ended(base, 6, 6))
    assert (finish.prepared.folds.weight == 1).all()
    assert (finish.prepared.folds.held_out == 0).all()
    np.testing.assert_array_equal(finish.prepared.folds.fold, base.prepared.folds.fold)
    assert (finish.stage, finish.settings.epochs) == ("finish", 3)
    assert (request.prepared.folds.weight == 0).any()  # as it was


def test_where_nobody_knows_how_networks_ended_they_stay_as_they_are(base):
    assert finish_of(request_of(base), replace(base.propensity.bundle, trained=())) is None


@pytest.mark.parametrize(
    ("more", "stages"),
    [
        ({}, ["policy", "finish"]),
        ({"finish": False}, ["policy"]),
        ({"selection": "paper"}, ["policy"]),
    ],
)
def test_what_is_chosen_goes_on_unless_told_otherwise_or_by_the_papers_rule(base, more, stages):
    epochs = []
    fit = learn(base, Trainer(report=epochs.append), **more)
    assert fit.policy.kind == "softmax"
    assert list(dict.fromkeys(at.stage for at in epochs)) == stages


def test_it_begins_where_the_chosen_networks_were_best_and_ends_elsewhere(base):
    stopped = learn(base, finish=False)
    finished = learn(base)
    assert [c.risk for c in finished.path] == [c.risk for c in stopped.path]
    before, after = (fit.policy.networks.parameters for fit in (stopped, finished))
    assert all(before[name].shape == after[name].shape for name in before)
    assert not torch.equal(before["head.weight"], after["head.weight"])


def test_true_risk_falls_where_there_is_something_left_to_learn():
    stays, fresh = CLEAR.log(400, seed=1), CLEAR.log(800, seed=2)
    risks = {}
    for finish in (True, False):
        told = small(training=training(3, 3, finish=finish))
        policy = EtIPS(**told, translations=(0.5,)).fit(stays)
        greedy = np.eye(fresh.n_actions)[policy.predict_proba(fresh).argmax(axis=1)]
        risks[finish] = fresh.true_risk(greedy)
    assert risks[True] <= risks[False]
