"""The GRU with one kernel for all steps: on a GPU, and on a CPU with stand-ins for its kernels."""

import importlib
import sys
import types

import pytest
import torch
from recurrences import B, J, inputs_of, parameters_of

from etips.models.kernels import gru_kernel


@pytest.fixture
def whole(monkeypatch):
    """The module as it is imported beside a Triton that compiles nothing."""
    language = types.SimpleNamespace(constexpr=int)
    stand_in = types.SimpleNamespace(jit=lambda **_: lambda kernel: kernel, language=language)
    monkeypatch.setitem(sys.modules, "triton", stand_in)
    monkeypatch.setitem(sys.modules, "triton.language", language)
    monkeypatch.delitem(sys.modules, "etips.models.kernels.whole_gru", raising=False)
    module = importlib.import_module("etips.models.kernels.whole_gru")
    monkeypatch.setattr(module, "whole_forward", forward)
    monkeypatch.setattr(module, "whole_backward", backward)
    yield module
    sys.modules.pop("etips.models.kernels.whole_gru", None)


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
    for form in (gru_kernel._Gru, whole.WholeGru):
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


class OnGpu:
    """Inputs as far as the choice of a form asks."""

    is_cuda = True


@pytest.mark.parametrize(("size", "taken"), [(64, True), (64, False), (63, True)])
def test_it_is_used_for_states_of_its_sizes_where_kernels_take_the_inputs(
    size, taken, whole, monkeypatch
):
    monkeypatch.setattr(gru_kernel, "takes", lambda _: taken)
    used = whole.WholeGru if taken and size == 64 else gru_kernel._FusedGru
    assert gru_kernel._form(OnGpu(), size) is used


@pytest.mark.gpu
@pytest.mark.parametrize("size", [16, 32, 64])
@pytest.mark.parametrize(("n_batch", "n_steps", "shared"), [(5, 1, True), (40, 9, False)])
def test_on_a_gpu_one_kernel_says_what_the_plain_form_says_on_a_cpu(size, n_batch, n_steps, shared):
    pytest.importorskip("triton")
    assert gru_kernel._form(torch.zeros(1, device="cuda"), size) is not gru_kernel._FusedGru
    generator = torch.Generator().manual_seed(size)
    shape = (n_steps, n_batch, 7) if shared else (3, n_steps, n_batch, 7)
    shapes = [shape, (3, 7, 3 * size), (3, size, 3 * size), (3, 3 * size), (3, size)]
    values = [torch.randn(own, generator=generator) / own[-2] ** 0.5 for own in shapes]
    found = []
    for device, kind in (("cpu", torch.float64), ("cuda", torch.float32)):
        moved = [value.to(device, kind).requires_grad_() for value in values]
        states = gru_kernel.gru(*moved)
        gradients = torch.autograd.grad(states.cos().sum(), moved)
        found.append([own.double().cpu() for own in (states, *gradients)])
    for left, right in zip(*found, strict=True):
        torch.testing.assert_close(left, right, atol=2e-4, rtol=2e-5)
