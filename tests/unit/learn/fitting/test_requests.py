"""What a learner asks for: which requests train as one, and a request of some networks."""

from dataclasses import replace

import pytest
import torch
from small_worlds import ward

from etips.learn.fitting.prepare import prepare
from etips.learn.fitting.requests import FREE, TrainingRequest
from etips.learn.training.objectives import Sliced
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.network import Network


def prepared(seed=0):
    return prepare(ward(), n_folds=2, seed=seed, device=torch.device("cpu"))


@pytest.fixture(scope="module")
def request_():
    stays = prepared()
    network = Network(GRU(3), stays.steps.n_features, 2, 3)
    shift = torch.arange(4.0)[:, None]
    objective = Sliced(lambda outputs, _, these: outputs + shift[these])
    return TrainingRequest(stays, Bundle.start(network, range(4)), objective, "policy", Settings())


def test_requests_that_differ_in_rate_decay_and_objective_are_alike(request_):
    settings = replace(request_.settings, learning_rate=0.5, weight_decay=0.5)
    assert request_.is_like(replace(request_, settings=settings, objective=lambda o, _: o))
    assert set(FREE) == {"learning_rate", "weight_decay"}


@pytest.mark.parametrize(
    "other",
    [
        {"stage": "outcome"},
        {"settings": Settings(epochs=99)},
        {"settings": Settings(seed=1)},
        {"bundle": Bundle.start(Network(GRU(5), 4, 2, 3), [0])},
        {"prepared": prepared(seed=1)},
    ],
    ids=["stage", "epochs", "seed", "shape", "folds"],
)
def test_requests_of_another_kind_are_not(request_, other):
    assert not request_.is_like(replace(request_, **other))


def test_a_part_has_its_networks_its_objective_and_a_name_of_its_own(request_):
    part = request_.part(slice(1, 3))
    assert part.stage == "policy-1-3"
    for name, value in request_.bundle.parameters.items():
        assert torch.equal(part.bundle.parameters[name], value[1:3])
    assert part.objective(torch.zeros(2, 1), None).flatten().tolist() == [1.0, 2.0]
