"""Kernels of our own: where they are used, and that they do what operations of torch do."""

import importlib
import logging
import sys
import types

import pytest
import torch
from test_recurrences import B, J, inputs_of, parameters_of

from etips.learn.training import optimiser
from etips.learn.training.optimiser import Schedule
from etips.learn.training.state import State
from etips.models import gpu, recurrences


@pytest.fixture(autouse=True)
def _nothing_is_known():
    gpu.can_compile.cache_clear()
    yield
    gpu.can_compile.cache_clear()


def tried_out(monkeypatch, work):
    monkeypatch.setattr(gpu, "find_spec", lambda _: True)
    monkeypatch.setattr(gpu, "import_module", lambda _: types.SimpleNamespace(try_out=work))


def test_without_triton_nothing_is_compiled_and_nobody_is_told(monkeypatch, caplog):
    monkeypatch.setattr(gpu, "find_spec", lambda _: None)
    assert not gpu.can_compile()
    assert not caplog.records


def test_where_the_trial_succeeds_kernels_are_used(monkeypatch):
    tried_out(monkeypatch, lambda: None)
    assert gpu.can_compile()


def test_where_nothing_can_be_compiled_a_warning_comes_once(monkeypatch, caplog):
    def refuse():
        raise RuntimeError("no compiler")

    tried_out(monkeypatch, refuse)
    with caplog.at_level(logging.WARNING):
        assert not gpu.can_compile()
        assert not gpu.can_compile()
    assert len(caplog.records) == 1
    assert "no compiler" in caplog.text


class Values:
    """A tensor as far as the question goes."""

    def __init__(self, dtype=torch.float32, device="cuda:0"):
        self.dtype, self.device = dtype, torch.device(device)
        self.is_cuda = self.device.type == "cuda"


@pytest.mark.parametrize(
    ("values", "taken"),
    [
        (Values(), True),
        (Values(dtype=torch.float64), False),
        (Values(device="cuda:1"), False),  # not the GPU in use
        (Values(device="cpu"), False),
    ],
)
def test_kernels_take_float32_on_the_gpu_in_use(values, taken, monkeypatch):
    tried_out(monkeypatch, lambda: None)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    assert gpu.takes(values) is taken


@pytest.mark.gpu
def test_on_a_gpu_with_triton_kernels_are_compiled():
    pytest.importorskip("triton")
    assert gpu.can_compile()


# ---- the GRU


@pytest.fixture
def whole(monkeypatch):
    """The module as it is imported beside a Triton that compiles nothing."""
    language = types.SimpleNamespace(constexpr=int)
    stand_in = types.SimpleNamespace(jit=lambda **_: lambda kernel: kernel, language=language)
    monkeypatch.setitem(sys.modules, "triton", stand_in)
    monkeypatch.setitem(sys.modules, "triton.language", language)
    monkeypatch.delitem(sys.modules, "etips.models.gpu_kernels", raising=False)
    module = importlib.import_module("etips.models.gpu_kernels")
    monkeypatch.setattr(module, "whole_forward", forward)
    monkeypatch.setattr(module, "whole_backward", backward)
    yield module
    sys.modules.pop("etips.models.gpu_kernels", None)


def forward(products, recurrent, new, kept):
    """What the kernel computes, step by step."""
    n_networks, n_steps, n_batch, _ = products.shape
    states = [products.new_zeros(n_networks, n_batch, new.shape[1])]
    for step in range(n_steps):
        from_state = torch.bmm(states[-1], recurrent)
        reset, update, candidate = products[:, step].chunk(3, -1)
        more_reset, more_update, part = from_state.chunk(3, -1)
        part = part + new[:, None]
        reset, update = (reset + more_reset).sigmoid(), (update + more_update).sigmoid()
        candidate = (candidate + reset * part).tanh()
        states.append(candidate + update * (states[-1] - candidate))
        if kept is not None:
            kept[:, step] = torch.cat([reset, update, candidate, part], -1)
    return torch.stack(states, 1)


def backward(grad, recurrent, states, kept):
    """The way back, its gates in the kernel's order; every stay is a block of its own."""
    n_steps = grad.shape[1]
    carried, gates = torch.zeros_like(grad[:, 0]), []
    for step in reversed(range(n_steps)):
        reset, update, candidate, part = kept[:, step].chunk(4, -1)
        d_state = grad[:, step] + carried
        d_update = d_state * (states[:, step] - candidate) * update * (1 - update)
        d_new = d_state * (1 - update) * (1 - candidate**2)
        d_reset = d_new * part * reset * (1 - reset)
        told = torch.cat([d_reset, d_update, d_new * reset], -1)
        carried = d_state * update + torch.bmm(told, recurrent.transpose(1, 2))
        gates.insert(0, torch.cat([d_new, told], -1))
    every = torch.stack(gates, 1)
    return every, every.sum(1)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("n_steps", [1, 7, 12])
def test_what_is_done_outside_the_kernels_equals_the_plain_form(n_steps, shared, whole):
    inputs = inputs_of(n_steps, torch.float64, shared)
    parameters = parameters_of("gru", torch.float64)
    found = []
    for form in (recurrences._Gru, whole.WholeGru):
        states = form.apply(inputs, *parameters)
        found.append([states, *torch.autograd.grad(states.cos().sum(), [inputs, *parameters])])
    for left, right in zip(*found, strict=True):
        torch.testing.assert_close(left, right, atol=1e-12, rtol=1e-12)


def test_nothing_is_kept_where_nobody_goes_back(whole, monkeypatch):
    told = []
    monkeypatch.setattr(whole, "whole_forward", lambda *a: told.append(a[3]) or forward(*a))
    inputs = inputs_of(3, torch.float64, True).detach()
    states = whole.WholeGru.apply(
        inputs, *(p.detach() for p in parameters_of("gru", torch.float64))
    )
    assert told == [None]
    assert states.shape[:3] == (J, 3, B)


@pytest.mark.parametrize(("size", "taken"), [(64, True), (64, False), (63, True)])
def test_it_is_used_for_states_of_its_sizes_where_kernels_take_the_inputs(
    size, taken, whole, monkeypatch
):
    monkeypatch.setattr(recurrences, "takes", lambda _: taken)
    monkeypatch.setattr(recurrences, "_apply", lambda form, *_: form)
    used = whole.WholeGru if taken and size == 64 else recurrences._Gru
    assert recurrences.gru(*[torch.zeros(1, size)] * 5) is used


@pytest.mark.gpu
@pytest.mark.parametrize("size", [16, 32, 64])
@pytest.mark.parametrize(("n_batch", "n_steps", "shared"), [(5, 1, True), (40, 9, False)])
def test_on_a_gpu_one_kernel_says_what_the_plain_form_says_on_a_cpu(size, n_batch, n_steps, shared):
    pytest.importorskip("triton")
    generator = torch.Generator().manual_seed(size)
    shape = (n_steps, n_batch, 7) if shared else (3, n_steps, n_batch, 7)
    shapes = [shape, (3, 7, 3 * size), (3, size, 3 * size), (3, 3 * size), (3, size)]
    values = [torch.randn(own, generator=generator) / own[-2] ** 0.5 for own in shapes]
    found = []
    for device, kind in (("cpu", torch.float64), ("cuda", torch.float32)):
        moved = [value.to(device, kind).requires_grad_() for value in values]
        states = recurrences.gru(*moved)
        gradients = torch.autograd.grad(states.cos().sum(), moved)
        found.append([own.double().cpu() for own in (states, *gradients)])
    for left, right in zip(*found, strict=True):
        torch.testing.assert_close(left, right, atol=2e-4, rtol=2e-5)


# ---- Adam


def moved(device, *, kernel, monkeypatch):
    """Parameters and moments after a step, from the same start."""
    monkeypatch.setattr(optimiser, "takes", lambda value: kernel and value.is_cuda)
    random = torch.Generator().manual_seed(0)

    def some():
        shapes = {"weight": (J, 5, 7), "bias": (J, 2000), "new": (J, 1)}
        made = {name: torch.randn(own, generator=random) for name, own in shapes.items()}
        return {name: own.to(device) for name, own in made.items()}

    parameters, first = some(), some()
    second = {name: own.square() for name, own in some().items()}
    gradients = [own.transpose(0, -1).contiguous().transpose(0, -1) for own in some().values()]
    rates = torch.tensor([0.01, 0.0, 0.02], device=device)  # the second has stopped
    kept = torch.tensor([0.99, 1.0, 0.9], device=device)
    first_by, second_by = torch.tensor(0.5, device=device), torch.tensor(0.1, device=device)
    schedule = Schedule(rates, kept, first_by, second_by, torch.tensor(3, device=device))
    before = {name: own.clone() for name, own in parameters.items()}
    none = torch.zeros(J, device=device)
    state = State(parameters, first, second, {}, none, none, none)
    optimiser.adam(state, gradients, schedule, 1.0)
    return before, state


@pytest.mark.gpu
def test_the_kernel_moves_parameters_and_moments_as_operations_of_torch_do(monkeypatch):
    pytest.importorskip("triton")
    _, plain = moved("cuda", kernel=False, monkeypatch=monkeypatch)
    before, ours = moved("cuda", kernel=True, monkeypatch=monkeypatch)
    for group in ("parameters", "first", "second"):
        for name, value in getattr(plain, group).items():
            torch.testing.assert_close(getattr(ours, group)[name], value, atol=1e-6, rtol=1e-5)
    assert torch.equal(ours.parameters["bias"][1], before["bias"][1])  # one that has stopped
    assert not torch.equal(ours.parameters["bias"][0], before["bias"][0])


def test_on_a_cpu_operations_of_torch_do_it_whatever_can_be_compiled(monkeypatch):
    _, one = moved("cpu", kernel=True, monkeypatch=monkeypatch)
    _, other = moved("cpu", kernel=False, monkeypatch=monkeypatch)
    assert all(torch.equal(own, other.parameters[name]) for name, own in one.parameters.items())
