"""The network around the encoder, and many of them as a bundle."""

import pytest
import torch

from etips.models import network as models_network
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.encoders.last_step import LastStep
from etips.models.network import Network

T, B = 4, 3


def setting(**more):
    network = Network(GRU(5), n_features=2, n_static=2, n_outputs=3, **more)
    generator = torch.Generator().manual_seed(0)
    steps = torch.randn(T, B, 2, generator=generator, dtype=torch.float64)
    static = torch.randn(B, 2, generator=generator, dtype=torch.float64)
    bundle = Bundle.start(network, [1, 2]).to(dtype=torch.float64)
    return network, bundle.parameters, steps, static


def test_the_head_reads_the_state_with_the_static_features_beside_it():
    network, parameters, steps, static = setting()
    own = {k.removeprefix("encoder."): v for k, v in parameters.items() if k.startswith("enc")}
    states = GRU(5).states(own, steps)  # (J, T, B, H)
    beside = static.expand(2, T, B, 2)
    wanted = torch.cat([states, beside], dim=-1) @ parameters["head.weight"][:, None]
    wanted = wanted + parameters["head.bias"][:, None, None]
    found = network.outputs(parameters, steps, static)
    torch.testing.assert_close(found.view(2, T, B, 3), wanted)


def test_some_slots_are_those_of_all_slots_with_the_same_gradient():
    network, parameters, steps, static = setting()
    moving = {name: value.clone().requires_grad_() for name, value in parameters.items()}
    slots = torch.tensor([7, 0, 10, 5])
    some = network.outputs(moving, steps, static, slots=slots)
    every = network.outputs(moving, steps, static)[:, slots]
    assert torch.equal(some, every)
    for left, right in zip(
        torch.autograd.grad(some.cos().sum(), list(moving.values())),
        torch.autograd.grad(every.cos().sum(), list(moving.values())),
        strict=True,
    ):
        torch.testing.assert_close(left, right, atol=1e-14, rtol=1e-12)


def test_a_mask_hides_parts_of_the_state_and_not_the_static_features():
    network, parameters, steps, static = setting()
    hidden = network.outputs(parameters, steps, static, keep=torch.zeros(T * B, 5).double())
    wanted = parameters["head.bias"][:, None] + static @ parameters["head.weight"][:, 5:]
    torch.testing.assert_close(hidden, wanted.repeat(1, T, 1))
    kept = network.outputs(parameters, steps, static, keep=torch.ones(T * B, 5).double())
    assert torch.equal(kept, network.outputs(parameters, steps, static))


def test_a_mask_at_some_slots_is_that_of_all_slots_there():
    network, parameters, steps, static = setting()
    mask = torch.rand(T * B, 5, generator=torch.Generator().manual_seed(4)).double()
    slots = torch.tensor([3, 9, 0])
    some = network.outputs(parameters, steps, static, slots=slots, keep=mask[slots])
    torch.testing.assert_close(
        some,
        network.outputs(parameters, steps, static, keep=mask)[:, slots],
        atol=1e-14,
        rtol=1e-12,
    )


def test_an_additive_network_ranks_the_actions_alike_everywhere():
    network, parameters, steps, static = setting(additive=True)
    parameters["head.bias"].copy_(torch.tensor([[0.1, -0.2, 0.3], [0.0, 0.5, -0.5]]))
    found = network.outputs(parameters, steps, static)
    assert found.shape == (2, T * B, 3)
    assert (found.argsort(-1) == parameters["head.bias"].argsort(-1)[:, None]).all()


@pytest.mark.parametrize("additive", [False, True])
def test_its_shapes_are_those_of_what_it_starts_with(additive):
    network = Network(GRU(5, embed=4), 2, 2, 3, additive=additive)
    started = {name: tuple(value.shape[1:]) for name, value in network.start([1, 2]).items()}
    assert list(network.shapes()) == list(started.items())


@pytest.mark.parametrize("encoder", [GRU(5), LastStep(5)])
def test_where_every_place_is_asked_nothing_is_picked_and_all_is_the_same(encoder, monkeypatch):
    network = Network(encoder, 3, 2, 4)
    own = {name: value.requires_grad_() for name, value in network.start([1, 2, 3]).items()}
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(6, 7, 3, generator=generator)
    static, slots = torch.randn(7, 2, generator=generator), torch.arange(42)
    found = network.outputs(own, inputs, static, slots=slots)
    picked = torch.cat(
        [network.outputs(own, inputs, static, slots=part) for part in slots.chunk(2)], dim=1
    )
    assert torch.allclose(found, picked, atol=1e-6)
    assert torch.allclose(found, network.outputs(own, inputs, static), atol=1e-6)
    mine, theirs = (
        torch.autograd.grad(value.square().sum(), list(own.values())) for value in (found, picked)
    )
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    monkeypatch.setattr(models_network, "_pick", None)
    assert torch.equal(network.outputs(own, inputs, static, slots=slots), found)
