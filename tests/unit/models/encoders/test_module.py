"""Any causal torch module of the user's as an encoder."""

import copy

import pytest
import torch
from torch import nn

from etips.errors import SettingError
from etips.models.encoders.gru import GRU
from etips.models.encoders.lstm import LSTM
from etips.models.encoders.module import ModuleEncoder, require_causal
from etips.models.encoders.transformer import CausalTransformer
from etips.models.network import Network

D, H = 4, 6


class Averages(nn.Module):
    """The running mean of the steps so far, bent: causal, and easy for vmap."""

    def __init__(self, n_features):
        super().__init__()
        self.inner = nn.Linear(n_features, H)

    def forward(self, batch):
        count = torch.arange(1, batch.shape[1] + 1, dtype=batch.dtype)[:, None]
        return torch.tanh(self.inner(batch.cumsum(1) / count))


class Peeking(Averages):
    """Looks at a number while it runs, which vmap cannot do for many networks at once."""

    def forward(self, batch):
        states = super().forward(batch)
        return states if float(states.sum().detach()) > 1e9 else states * 1.0


class Recurrent(nn.Module):
    def __init__(self, n_features, *, both_ways=False, batch_first=True):
        super().__init__()
        self.gru = nn.GRU(n_features, H, bidirectional=both_ways, batch_first=batch_first)

    def forward(self, batch):
        return self.gru(batch)[0]


class Attention(nn.Module):
    def __init__(self, n_features):
        super().__init__()
        self.inner = nn.MultiheadAttention(n_features, 2, batch_first=True)

    def forward(self, batch):
        return self.inner(batch, batch, batch)[0]


def steps(n_steps=5, n_batch=3, dtype=torch.float32):
    return torch.randn(n_steps, n_batch, D, generator=torch.Generator().manual_seed(0), dtype=dtype)


def alone(make, encoder, seeds, inputs):
    """The states of each network from a module of its own, with the same parameters."""
    parameters = encoder.start(D, seeds)
    found = []
    for j in range(len(seeds)):
        module = make(D)
        module.load_state_dict({name: value[j] for name, value in parameters.items()})
        found.append(module.eval()(inputs.transpose(0, 1)).transpose(0, 1))
    return parameters, torch.stack(found)


@pytest.mark.parametrize("make", [Averages, Peeking, Recurrent, CausalTransformer().module])
def test_a_users_module_gives_in_a_bundle_what_it_gives_alone(make):
    encoder, inputs = ModuleEncoder(make), steps()
    parameters, wanted = alone(make, encoder, [3, 4, 5], inputs)
    moving = {name: value.requires_grad_() for name, value in parameters.items()}
    found = encoder.states(moving, inputs)
    torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-5)
    torch.autograd.grad(found.square().sum(), list(moving.values()))
    assert found.shape == (3, 5, 3, encoder.size(D))


@pytest.mark.parametrize("make", [Averages, CausalTransformer().module])
def test_vmap_and_one_by_one_agree_in_states_and_gradients(make):
    batched, one_by_one = ModuleEncoder(make), ModuleEncoder(make)
    one_by_one._one_by_one = {True, False}
    found = []
    for encoder in (batched, one_by_one):
        moving = {k: v.double().requires_grad_() for k, v in encoder.start(D, [1, 2]).items()}
        states = encoder.states(moving, steps(dtype=torch.float64))
        found.append([states, *torch.autograd.grad(states.cos().sum(), list(moving.values()))])
    assert batched._one_by_one == set()
    for left, right in zip(*found, strict=True):
        torch.testing.assert_close(left, right, atol=1e-12, rtol=1e-10)


def test_a_module_that_vmap_cannot_batch_falls_back():
    encoder = ModuleEncoder(Peeking)
    parameters = encoder.start(D, [1, 2])
    encoder.states(parameters, steps())
    assert encoder._one_by_one == {True}
    plain = ModuleEncoder(Averages)
    assert torch.allclose(
        encoder.states(parameters, steps()), plain.states(plain.start(D, [1, 2]), steps())
    )


def test_a_module_instance_is_copied_and_each_seed_gets_its_own_numbers():
    module = Averages(D)
    before = copy.deepcopy(module.state_dict())
    parameters = ModuleEncoder(module).start(D, [0, 1, 0])["inner.weight"]
    assert all(torch.equal(before[k], v) for k, v in module.state_dict().items())
    assert torch.equal(parameters[0], parameters[2])
    assert not torch.equal(parameters[0], parameters[1])


@pytest.mark.parametrize("make", [GRU(H), LSTM(H), CausalTransformer(8), ModuleEncoder(Averages)])
def test_a_network_depends_on_its_own_seed_only(make):
    three, one = make.start(D, [7, 8, 9]), make.start(D, [8])
    assert all(torch.equal(three[name][1], one[name][0]) for name in one)


@pytest.mark.parametrize("make", [GRU(H), LSTM(H), CausalTransformer(8), ModuleEncoder(Averages)])
def test_the_global_generator_is_neither_read_nor_changed(make):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = make.start(D, [1])
    make.states(first, steps())
    make.size(D)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    second = make.start(D, [1])
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_parameters_alone_are_enough_to_go_on():
    parameters = ModuleEncoder(Averages).start(D, [1, 2])
    fresh = ModuleEncoder(Averages)  # as after loading a saved policy
    assert torch.equal(
        fresh.states(parameters, steps()), ModuleEncoder(Averages).states(parameters, steps())
    )


def test_dropout_inside_a_module_is_off_so_that_runs_repeat():
    encoder = ModuleEncoder(lambda d: nn.Sequential(nn.Linear(d, H), nn.Dropout(0.5)))
    parameters = encoder.start(D, [1, 2])
    assert torch.equal(encoder.states(parameters, steps()), encoder.states(parameters, steps()))


@pytest.mark.parametrize("make", [lambda d: Recurrent(d, both_ways=True), Attention])
def test_a_module_that_looks_ahead_is_refused(make):
    with pytest.raises(SettingError, match=r"^encoder: must be causal"):
        ModuleEncoder(make).start(D, [0])


def test_a_module_that_mixes_stays_is_refused():
    with pytest.raises(SettingError, match=r"^encoder: must read each stay by itself.* batch\?$"):
        ModuleEncoder(lambda d: Recurrent(d, batch_first=False)).start(D, [0])


@pytest.mark.parametrize(
    "module", [nn.GRU(D, H, batch_first=True), nn.Flatten(), nn.Sequential(nn.Flatten(0, 1))]
)
def test_a_module_of_the_wrong_shape_is_refused(module):
    with pytest.raises(SettingError, match=r"^encoder: must map \(batch, steps, features\)"):
        require_causal(module, D)


def test_a_module_with_running_averages_is_refused():
    with pytest.raises(SettingError, match=r"^encoder: must not keep buffers"):
        ModuleEncoder(lambda d: nn.Sequential(nn.Linear(d, 6), nn.BatchNorm1d(6))).start(D, [0])


def test_a_module_is_left_in_the_mode_it_was_in():
    module = Averages(D).train()
    require_causal(module, D)
    assert module.training


def test_a_module_with_nothing_to_learn_serves_all_networks():
    encoder = ModuleEncoder(nn.Identity)
    assert encoder.start(D, [1, 2]) == {}
    assert torch.equal(encoder.states({}, steps()), steps()[None])
    network = Network(encoder, D, 0, 3)
    found = network.outputs(network.start([1, 2]), steps(), torch.zeros(3, 0))
    assert found.shape == (2, 15, 3)
    assert not torch.equal(found[0], found[1])


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (nn.Linear(D + 1, H), "encoder: fails on an input of shape (3, 6, 4): "),
        (nn.Linear, "encoder: must be built from the number of features alone: "),
        (lambda d: d, "encoder: must build a torch module."),
    ],
)
def test_a_module_that_cannot_be_built_or_asked_is_refused_in_one_line(make, line):
    with pytest.raises(SettingError) as refusal:
        ModuleEncoder(make).start(D, [0])
    assert str(refusal.value).startswith(line)
    assert "\n" not in str(refusal.value)


def test_its_shapes_are_those_of_what_it_starts_with():
    encoder = ModuleEncoder(Averages)
    assert dict(encoder.shapes(D)) == {"inner.weight": (H, D), "inner.bias": (H,)}
    with pytest.raises(SettingError, match=r"^encoder: must be causal"):
        list(ModuleEncoder(Attention).shapes(D))


def test_code_is_not_stored():
    assert ModuleEncoder(Averages).to_json() == {"name": "module"}
