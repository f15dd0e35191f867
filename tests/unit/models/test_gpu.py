"""Features in the host's memory: where that is chosen, and that nothing else changes by it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from random_cohorts import Cohort

from etips.data import Coded
from etips.learn.training.loop import train
from etips.learn.training.objectives import cross_entropy
from etips.learn.training.settings import Settings
from etips.models import gpu
from etips.models.answers import answer_decisions, outputs_at
from etips.models.batches import as_tensor, step_tensors
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.gpu import Feed, stay_on_host
from etips.models.network import Network

CPU, GPU = torch.device("cpu"), torch.device("cuda")
BIG = Cohort(seed=1, n_stays=150, longest=9, gaps=0.0)


def coded(data):
    table, code = np.unique(data.sequence[:], axis=0, return_inverse=True)
    return replace(data, sequence=Coded(table, code.astype(np.int32)))


def test_features_stay_on_the_host_where_they_would_take_half_of_what_is_free(monkeypatch):
    monkeypatch.setattr(gpu, "free_on_gpu", lambda _: 1000)
    assert not stay_on_host(500, GPU)
    assert stay_on_host(501, GPU)
    assert not stay_on_host(501, GPU, "device")
    assert stay_on_host(1, GPU, "host")
    assert not stay_on_host(10**12, CPU)  # there they are on the host either way


@pytest.mark.parametrize("earlier_actions", [False, True])
@pytest.mark.parametrize("form", [lambda data: data, coded], ids=["plain", "coded"])
def test_what_is_handed_over_is_what_would_be_looked_up(form, earlier_actions):
    data = form(BIG.make())
    steps = step_tensors(data, earlier_actions=earlier_actions, features="host")
    assert steps.on_host
    longest, rng = int(steps.reach.max()), np.random.default_rng(0)
    feed = Feed((longest, 8, steps.n_features), CPU)
    everybody = np.flatnonzero(steps.reach)
    for _ in range(5):
        stays = rng.choice(everybody, 8)
        n_steps = int(steps.reach[stays].max())
        feed.load(steps.padded_features(stays, n_steps))
        batch = steps.padded_batch(torch.from_numpy(stays), torch.tensor(8), n_steps)
        assert torch.equal(feed.features(n_steps), steps.inputs(batch.rows))


def test_a_batch_with_its_features_is_answered_alike():
    steps = step_tensors(BIG.make(), earlier_actions=False)
    bundle = Bundle.start(Network(GRU(4), steps.n_features, steps.static.shape[1], 3), [0, 1])
    batch = steps.batch(np.flatnonzero(steps.reach)[:6])
    given = replace(batch, features=steps.inputs(batch.rows))
    blank = replace(batch, features=torch.zeros_like(steps.inputs(batch.rows)))
    assert torch.equal(outputs_at(bundle, given, steps), outputs_at(bundle, batch, steps))
    assert not torch.equal(outputs_at(bundle, blank, steps), outputs_at(bundle, batch, steps))


def learn(data, device, place):
    """Two networks, three epochs; their parameters, and what they say of every decision."""
    steps = step_tensors(data, earlier_actions=True, device=device, features=place)
    network = Network(GRU(6, embed=4), steps.n_features, steps.static.shape[1], data.n_actions)
    spread = np.zeros(data.n_steps, np.int64)
    spread[data.seen_rows] = data.logged_action
    action = as_tensor(spread, device)
    counts = torch.ones(2, data.n_stays, device=device)
    trained, _ = train(
        Bundle.start(network, [0, 1]).to(device),
        steps,
        lambda outputs, seen: cross_entropy(outputs, action[seen]),
        weight=counts,
        held_out=counts,
        settings=Settings(epochs=3, batch_size=16, dropout=0.1),
    )
    (said,) = answer_decisions(steps, lambda batch, _: (outputs_at(trained, batch, steps)[0],))
    return {name: value.cpu() for name, value in trained.parameters.items()}, said.cpu()


@pytest.mark.gpu
@pytest.mark.parametrize("form", [lambda data: data, coded], ids=["plain", "coded"])
def test_networks_learn_the_same_from_features_on_the_host(form):
    data = form(BIG.make())
    (near, said), (far, said_far) = (learn(data, GPU, place) for place in ("device", "host"))
    assert all(torch.equal(near[name], far[name]) for name in near)
    assert torch.equal(said, said_far)


def test_on_a_cpu_it_makes_no_difference():
    data = BIG.make()
    (near, said), (far, said_far) = (learn(data, CPU, place) for place in ("device", "host"))
    assert all(torch.equal(near[name], far[name]) for name in near)
    assert torch.equal(said, said_far)
