"""Requests that are trained: alone, beside others, and taken up again; nobody waits for ever."""

import numpy as np
import pytest
import torch
from small_worlds import CLINIC, ward

from etips.errors import SettingError
from etips.learn.fitting import driver
from etips.learn.fitting.driver import drive, drive_together
from etips.learn.fitting.prepare import prepare
from etips.learn.fitting.requests import TrainingRequest
from etips.learn.learners.learner import fit_together
from etips.learn.learners.recipes import make_learner
from etips.learn.training.objectives import cross_entropy
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.network import Network
from etips.runs.run import Run

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


@pytest.fixture(scope="module")
def prepared():
    return prepare(ward(), n_folds=2, seed=0, device=torch.device("cpu"))


def request(prepared, stage="propensity", **settings):
    network = Network(GRU(3), prepared.steps.n_features, 2, 3)
    usual = {"epochs": 1, "batch_size": 16}
    return TrainingRequest(
        prepared,
        Bundle.start(network, [1, 2]),
        lambda outputs, seen: cross_entropy(outputs, prepared.action[seen]),
        stage=stage,
        settings=Settings(**{**usual, **settings}),
    )


def asking(*requests):
    """A learner that asks for these trainings and returns their networks."""
    bundles = []
    for each in requests:
        bundles.append((yield each))
    return bundles


def learners(method, **more):
    return [make_learner(method, {**SHAPE, **own, **more}, device="cpu") for own in FREE]


def fail(*_, **__):
    raise SettingError("training", "must end")


# ---- alone -------------------------------------------------------------------------------------


def test_a_learner_is_sent_the_networks_of_each_request_in_turn(prepared, trained):
    first, second = drive(asking(request(prepared, "one"), request(prepared, "two")))
    assert trained == [2, 2]
    for name, value in request(prepared).bundle.parameters.items():
        assert (first.parameters[name] != value).any()
        assert torch.equal(first.parameters[name], second.parameters[name])


def test_a_learner_that_asks_for_nothing_ends_at_once():
    assert drive(asking()) == []


def test_a_report_says_which_stage_it_is(prepared):
    told = []
    drive(asking(request(prepared, "one"), request(prepared, "two", epochs=2)), report=told.append)
    assert [(at.stage, at.epoch) for at in told] == [("one", 1), ("two", 1), ("two", 2)]


def test_the_error_of_a_training_is_raised_where_the_learner_asked(prepared, monkeypatch):
    monkeypatch.setattr(driver, "train", fail)
    ended = []

    def careful():
        try:
            yield request(prepared)
        finally:
            ended.append(True)

    with pytest.raises(SettingError, match=r"^training: must end"):
        drive(careful())
    assert ended == [True]


def test_a_learner_may_do_without_a_training_that_failed(prepared, monkeypatch):
    monkeypatch.setattr(driver, "train", fail)

    def modest():
        try:
            yield request(prepared)
        except SettingError:
            return "nothing"

    assert drive(modest()) == "nothing"


def test_a_finished_stage_is_taken_from_the_checkpoints(prepared, trained, tmp_path):
    with Run(tmp_path / "run", "id") as run:
        (first,) = drive(asking(request(prepared)), checkpoints=run)
    with Run(tmp_path / "run", "id") as run:
        (second,) = drive(asking(request(prepared)), checkpoints=run)
    assert trained == [2]
    for name, value in first.parameters.items():
        assert torch.equal(value, second.parameters[name])


# ---- beside others -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_learner_beside_others_becomes_what_it_becomes_alone(method, log, trained):
    fitted = [learner.fit(log) for learner in learners(method)]
    alone = [learner.predict_proba(log) for learner in fitted]
    each = trained[:]
    trained.clear()
    beside = learners(method)
    fit_together(beside, log)
    assert len(trained) == len(each) // 3  # each training once for all
    assert sum(trained) == sum(each)
    for own, wanted in zip(beside, alone, strict=True):
        np.testing.assert_allclose(own.predict_proba(log), wanted, atol=1e-4)
    first, second = (own.fit_.propensity.bundle.parameters for own in fitted[:2])
    assert max((first[name] - second[name]).abs().max() for name in first) > 1e-3  # rates matter


def test_learners_of_two_shapes_train_apart(log, trained):
    small, large = learners("predictive"), learners("predictive", hidden=6)
    fit_together([small[0], large[0], small[1]], log)
    assert sorted(trained) == [2, 4]


def test_learners_that_ask_for_different_numbers_of_trainings_all_end(prepared, trained):
    one, two = request(prepared, "one"), request(prepared, "two")
    learned = drive_together([asking(one, two), asking(), asking(one), asking(two, one)])
    assert [len(bundles) for bundles in learned] == [2, 0, 1, 2]
    # First those who ask for "one", then "two" of the last; then what is left, apart.
    assert trained == [4, 2, 2, 2]


def test_one_that_fails_is_told_and_the_others_end(prepared):
    ended = []

    class UnfitError(Exception):
        pass

    def unfit():
        raise UnfitError
        yield

    def good():
        ended.append((yield request(prepared)))

    with pytest.raises(UnfitError):
        drive_together([good(), unfit(), good()])
    assert len(ended) == 2


def test_the_first_error_in_the_order_of_the_learners_is_raised(prepared):
    def late():
        yield request(prepared)
        raise SettingError("late", "must come first")

    def early():
        raise SettingError("early", "must come second")
        yield

    with pytest.raises(SettingError, match=r"^late: "):
        drive_together([late(), early()])


def test_a_training_that_fails_is_everybodys_failure(prepared, monkeypatch):
    monkeypatch.setattr(driver, "train", fail)
    told = []

    def learner(number):
        try:
            yield request(prepared)
        except SettingError:
            told.append(number)
            raise

    with pytest.raises(SettingError, match="training: must end"):
        drive_together([learner(number) for number in range(3)])
    assert told == [0, 1, 2]


def test_an_interrupt_ends_all_at_once(prepared, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(driver, "train", interrupt)
    with pytest.raises(KeyboardInterrupt):
        drive_together([asking(request(prepared)), asking(request(prepared))])


def test_one_report_is_told_once_of_a_bundle(prepared):
    told = []
    drive_together([asking(request(prepared)), asking(request(prepared))], report=told.append)
    assert [(at.stage, at.epoch) for at in told] == [("propensity", 1)]


def test_finished_stages_of_a_run_are_taken_up(log, tmp_path, trained):
    def runs():
        return [Run(tmp_path / f"{number}", f"learner {number}") for number in range(3)]

    def fit(chosen):
        with runs()[0] as one, runs()[1] as two, runs()[2] as three:
            fit_together(chosen, log, runs=[one, two, three])
        return [own.predict_proba(log) for own in chosen]

    first = fit(learners("etips"))
    for stage in ("policy", "finish"):  # killed before they were kept
        (tmp_path / "1" / "checkpoint" / f"{stage}.safetensors").unlink()
    trained.clear()
    second = fit(learners("etips"))
    assert len(trained) == 2  # the policies of one learner, and what it kept of them
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
