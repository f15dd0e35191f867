"""What a trainer is asked for: trained once, in parts if memory asks for it, and taken up again."""

import math

import pytest
import torch
from small_worlds import ward

from etips.learn.fitting.prepare import prepare
from etips.learn.fitting.trainer import Trainer, TrainingRequest
from etips.learn.training import memory
from etips.learn.training.objectives import cross_entropy
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.network import Network
from etips.runs.run import Run


@pytest.fixture(scope="module")
def prepared():
    return prepare(ward(), n_folds=2, seed=0, device=torch.device("cpu"))


def request(prepared, stage="propensity", seeds=(1, 2), **settings):
    network = Network(GRU(3), prepared.steps.n_features, 2, 3)
    return TrainingRequest(
        prepared,
        Bundle.start(network, seeds),
        lambda outputs, seen: cross_entropy(outputs, prepared.action[seen]),
        stage=stage,
        settings=Settings(**{"epochs": 1, "batch_size": 16, **settings}),
    )


def test_networks_come_back_trained_and_the_request_is_as_it_was(prepared):
    asked = request(prepared)
    before = {name: value.clone() for name, value in asked.bundle.parameters.items()}
    bundle = Trainer().train(asked)
    for name, value in before.items():
        assert (bundle.parameters[name] != value).any()
        assert torch.equal(asked.bundle.parameters[name], value)


def test_a_report_names_the_stage_of_every_epoch_and_models_without_epochs(prepared):
    epochs = []
    trainer = Trainer(report=epochs.append)
    trainer.train(request(prepared, "one"))
    trainer.train(request(prepared, "two", epochs=2))
    trainer.fitted("forest", 3.0)
    assert [(at.stage, at.epoch) for at in epochs] == [
        ("one", 1),
        ("two", 1),
        ("two", 2),
        ("forest", 1),
    ]
    assert [at.seconds for at in epochs] == [None, None, None, 3.0]
    assert math.isnan(epochs[-1].loss)


def test_a_finished_stage_is_taken_from_the_checkpoints(prepared, trained, tmp_path):
    bundles = []
    for _ in range(2):
        with Run(tmp_path / "run", "id") as run:
            bundles.append(Trainer(checkpoints=run).train(request(prepared)))
    assert trained == [2]
    for name, value in bundles[0].parameters.items():
        assert torch.equal(value, bundles[1].parameters[name])


def test_where_memory_lacks_networks_train_in_parts_and_become_the_same(
    prepared, trained, tmp_path, monkeypatch
):
    asked = request(prepared, seeds=range(6))
    whole = Trainer().train(asked)
    each = memory.estimate(asked.bundle.network, prepared.steps, asked.settings)
    monkeypatch.setattr(memory, "room", lambda _: 2.5 * each)
    with Run(tmp_path / "run", "id") as run:
        parts = Trainer(checkpoints=run).train(asked)
    assert trained == [6, 2, 2, 2]
    assert "6 networks in 3 parts, for memory" in (tmp_path / "run" / "log.jsonl").read_text()
    for name, value in whole.parameters.items():
        assert torch.allclose(value, parts.parameters[name], atol=1e-5)
    monkeypatch.undo()  # more memory now: the parts stay as they were
    with Run(tmp_path / "run", "id") as run:
        Trainer(checkpoints=run).train(asked)
    assert trained == [6, 2, 2, 2]
