"""Learners side by side: each becomes what it becomes alone, and nobody waits for ever."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from small_worlds import CLINIC, one_thread

from etips.errors import SettingError
from etips.learn.fitting import crossfit
from etips.learn.fitting import driver as together
from etips.learn.fitting.driver import run_together
from etips.learn.learners.recipes import make_learner
from etips.learn.training.objectives import Sliced, Weighted
from etips.learn.training.sharing import Sharing, sharers
from etips.runs.run import Run

__all__ = ["one_thread"]

SHAPE = {"hidden": 4, "epochs": 2, "n_folds": 2, "batch_size": 16}
FREE = [
    {"learning_rate": 0.05, "weight_decay": 0.0},
    {"learning_rate": 0.005, "weight_decay": 0.1},
    {"learning_rate": 0.02, "weight_decay": 0.01},
]
METHODS = ["etips", "tips", "eips", "direct", "doubly-robust", "predictive"]


@pytest.fixture(scope="module")
def log():
    return CLINIC.log(60, seed=0)


def learners(method, **more):
    return [make_learner(method, {**SHAPE, **own, **more}, device="cpu") for own in FREE]


def fit_all(log, chosen, runs=(None, None, None)):
    run_together([partial(own.fit, log, run=run) for own, run in zip(chosen, runs, strict=True)])


@pytest.fixture
def trained(monkeypatch):
    """How many networks every training had."""
    found = []

    def noted(bundle, *arguments, **more):
        found.append(bundle.n_members)
        return train(bundle, *arguments, **more)

    train = crossfit.train
    monkeypatch.setattr(crossfit, "train", noted)
    return found


@pytest.mark.parametrize("method", METHODS)
def test_a_learner_beside_others_becomes_what_it_becomes_alone(method, log, trained):
    alone = [learner.fit(log).predict_proba(log) for learner in learners(method)]
    each = trained[:]
    trained.clear()
    beside = learners(method)
    fit_all(log, beside)
    assert len(trained) == len(each) // 3  # each training once for all
    assert sum(trained) == sum(each)
    for own, wanted in zip(beside, alone, strict=True):
        np.testing.assert_allclose(own.predict_proba(log), wanted, atol=1e-4)
    assert np.abs(alone[0] - alone[1]).max() > 1e-3  # rate and decay matter


def test_learners_of_two_shapes_train_apart(log, trained):
    small, large = learners("predictive"), learners("predictive", hidden=6)
    fit_all(log, [small[0], large[0], small[1]])
    assert sorted(trained) == [2, 4]


def test_one_that_fails_is_told_and_the_others_end(log):
    class UnfitError(Exception):
        pass

    def fail():
        raise UnfitError

    good = learners("predictive")[0]
    with pytest.raises(UnfitError):
        run_together([fail, lambda: good.fit(log)])
    assert good.predict_proba(log).shape == (log.n_decisions, log.n_actions)


def test_a_training_that_fails_is_everybodys_failure(log, monkeypatch):
    def fail(*_, **__):
        raise SettingError("training", "must end")

    monkeypatch.setattr(crossfit, "train", fail)
    with pytest.raises(SettingError, match="training: must end"):
        fit_all(log, learners("predictive"))


def test_finished_stages_of_a_run_are_taken_up(log, tmp_path, trained):
    def runs():
        return [Run(tmp_path / f"{number}", f"learner {number}") for number in range(3)]

    def fit(chosen):
        with runs()[0] as one, runs()[1] as two, runs()[2] as three:
            fit_all(log, chosen, [one, two, three])
        return [own.predict_proba(log) for own in chosen]

    first = fit(learners("etips"))
    (tmp_path / "1" / "checkpoint" / "policy.safetensors").unlink()  # killed before it was kept
    trained.clear()
    second = fit(learners("etips"))
    assert len(trained) == 1  # the policies of one learner
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("these", [slice(0, 9), slice(1, 9, 3), slice(4, 7), slice(0, 2)])
def test_every_network_keeps_its_own_objective(these):
    offsets = [
        torch.tensor([10.0, 11, 12]),
        torch.tensor([20.0, 21]),
        torch.tensor([30.0, 31, 32, 33]),
    ]
    objectives = [Sliced(lambda o, _, t, own=own: o + own[t, None]) for own in offsets]
    joined = together._join(objectives, [0, 3, 5, 9])
    outputs = torch.zeros(9, 2)[these]
    found = replace(joined, these=these)(outputs, None)
    assert found[:, 0].tolist() == torch.cat(offsets)[these].tolist()


def test_weights_are_told_where_every_objective_has_some():
    weighted = Weighted(lambda o, *_: o, lambda o, *_: o + 1)
    joined = together._join([weighted, weighted], [0, 1, 2])
    assert joined.weigh(torch.zeros(2, 1), None).tolist() == [[1.0], [1.0]]
    assert not isinstance(together._join([weighted, lambda o, _: o], [0, 1, 2]), Weighted)


def test_learners_side_by_side_share_a_device_as_the_thread_does_that_began_them():
    found = []
    with Sharing(5).take_part():
        run_together([lambda: found.append(sharers())] * 3)
    assert found == [5, 5, 5]
