"""Like requests as one bundle: every network keeps its objective, its rate and its decay."""

from dataclasses import replace

import pytest
import torch
from small_worlds import ward

from etips.learn.fitting.groups import (
    group_alike,
    join_objectives,
    join_reports,
    join_requests,
)
from etips.learn.fitting.prepare import prepare
from etips.learn.fitting.requests import TrainingRequest
from etips.learn.training.objectives import Sliced, Weighted
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.network import Network


@pytest.fixture(scope="module")
def prepared():
    return prepare(ward(), n_folds=2, seed=0, device=torch.device("cpu"))


def request(prepared, seeds=(1, 2), hidden=3, **settings):
    bundle = Bundle.start(Network(GRU(hidden), prepared.steps.n_features, 2, 3), list(seeds))
    return TrainingRequest(prepared, bundle, lambda o, _: o, "policy", Settings(**settings))


def test_requests_are_grouped_in_the_order_of_the_first_of_each(prepared):
    small, large = request(prepared), request(prepared, hidden=5)
    assert group_alike({4: small, 0: large, 2: small, 3: large}) == [[0, 3], [2, 4]]
    assert group_alike({}) == []


def test_a_group_has_each_request_s_rate_and_decay_and_deals_its_networks_back(prepared):
    one = request(prepared, (1, 2), learning_rate=0.1)
    other = request(prepared, (3, 4, 5, 6), weight_decay=0.5)
    group = join_requests([one, other])
    usual = Settings()
    rates = [0.1] * 2 + [usual.learning_rate] * 4
    assert group.learning_rates.tolist() == pytest.approx(rates)
    decays = [usual.weight_decay] * 2 + [0.5] * 4
    assert group.weight_decays.tolist() == pytest.approx(decays)
    for asked, dealt in zip((one, other), group.deal(group.request.bundle), strict=True):
        for name, value in asked.bundle.parameters.items():
            assert torch.equal(dealt.parameters[name], value)


@pytest.mark.parametrize("these", [slice(0, 9), slice(1, 9, 3), slice(4, 7), slice(0, 2)])
def test_every_network_keeps_its_own_objective(these):
    offsets = [
        torch.tensor([10.0, 11, 12]),
        torch.tensor([20.0, 21]),
        torch.tensor([30.0, 31, 32, 33]),
    ]
    objectives = [Sliced(lambda o, _, t, own=own: o + own[t, None]) for own in offsets]
    joined = join_objectives(objectives, [0, 3, 5, 9])
    outputs = torch.zeros(9, 2)[these]
    values = replace(joined, these=these)(outputs, None)
    assert values[:, 0].tolist() == torch.cat(offsets)[these].tolist()


def test_weights_are_told_where_every_objective_has_some():
    weighted = Weighted(lambda o, *_: o, lambda o, *_: o + 1)
    joined = join_objectives([weighted, weighted], [0, 1, 2])
    assert joined.weigh(torch.zeros(2, 1), None).tolist() == [[1.0], [1.0]]
    assert not isinstance(join_objectives([weighted, lambda o, _: o], [0, 1, 2]), Weighted)


def test_everybody_who_listens_is_told():
    told = []
    join_reports([None, told.append, told.append])({"epoch": 1})
    assert told == [{"epoch": 1}] * 2
    assert join_reports([None, None]) is None
