"""Our recurrences by hand, and against torch's own, forwards and backwards."""

import math

import pytest
import torch
from torch import nn

from etips.models import recurrences
from etips.models.recurrences import gru, lstm

J, B, D, H = 3, 4, 5, 6
GATES = {"gru": 3, "lstm": 4}
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def parameters_of(kind, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    width = GATES[kind] * H
    shapes = [(J, D, width), (J, H, width), (J, width)] + ([(J, H)] if kind == "gru" else [])
    return [torch.randn(s, generator=generator, dtype=dtype).requires_grad_() for s in shapes]


def inputs_of(n_steps, dtype, shared):
    generator = torch.Generator().manual_seed(1)
    shape = (n_steps, B, D) if shared else (J, n_steps, B, D)
    return torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()


def ours(kind, inputs, parameters):
    return {"gru": gru, "lstm": lstm}[kind](inputs, *parameters)


def as_torch_has_it(kind, weights):
    """Columns of ours in the order of torch's gates; torch wants a row a gate."""
    parts = list(weights.chunk(GATES[kind], dim=-1))
    if kind == "lstm":
        parts[2], parts[3] = parts[3], parts[2]
    return torch.cat(parts, dim=-1)


def theirs(kind, inputs, parameters):
    """The same states from `torch.nn`, one network after another, differentiable in ours."""
    found = []
    for j in range(J):
        own = inputs if inputs.dim() == 3 else inputs[j]
        weight, state, bias = (as_torch_has_it(kind, p[j]) for p in parameters[:3])
        second = torch.zeros_like(bias)
        if kind == "gru":
            second = torch.cat([second[: 2 * H], parameters[3][j]])
        module = {"gru": nn.GRU, "lstm": nn.LSTM}[kind](D, H, dtype=inputs.dtype)
        named = {
            "weight_ih_l0": weight.T,
            "weight_hh_l0": state.T,
            "bias_ih_l0": bias,
            "bias_hh_l0": second,
        }
        found.append(torch.func.functional_call(module, named, (own,))[0])
    return torch.stack(found)


def sigmoid(value):
    return 1 / (1 + math.exp(-value))


def test_two_steps_of_a_gru_of_one_unit_by_hand():
    weight, recurrent = [0.5, -0.3, 0.8], [0.2, 0.4, -0.6]
    bias, new = [0.1, 0.2, -0.1], 0.3
    state, wanted = 0.0, []
    for value in (1.5, -0.7):
        reset, update = (
            sigmoid(value * weight[k] + state * recurrent[k] + bias[k]) for k in (0, 1)
        )
        candidate = math.tanh(value * weight[2] + bias[2] + reset * (state * recurrent[2] + new))
        state = (1 - update) * candidate + update * state
        wanted.append(state)
    shapes = (
        (weight, (1, 1, 3)),
        (recurrent, (1, 1, 3)),
        (bias, (1, 3)),
        ([new], (1, 1)),
    )
    parameters = [torch.tensor(values, dtype=torch.float64).view(s) for values, s in shapes]
    states = gru(torch.tensor([1.5, -0.7], dtype=torch.float64).view(2, 1, 1), *parameters)
    assert states.flatten().tolist() == pytest.approx(wanted, rel=1e-12)


def test_two_steps_of_an_lstm_of_one_unit_by_hand():
    weight, recurrent = [0.5, -0.3, 0.8, 0.9], [0.2, 0.4, -0.6, 0.7]
    bias = [0.1, 1.2, -0.1, 0.3]
    state, memory, wanted = 0.0, 0.0, []
    for value in (1.5, -0.7):
        entry, forget, output, cell = (
            value * weight[k] + state * recurrent[k] + bias[k] for k in range(4)
        )
        memory = sigmoid(forget) * memory + sigmoid(entry) * math.tanh(cell)
        state = sigmoid(output) * math.tanh(memory)
        wanted.append(state)
    shapes = ((weight, (1, 1, 4)), (recurrent, (1, 1, 4)), (bias, (1, 4)))
    parameters = [torch.tensor(values, dtype=torch.float64).view(s) for values, s in shapes]
    states = lstm(torch.tensor([1.5, -0.7], dtype=torch.float64).view(2, 1, 1), *parameters)
    assert states.flatten().tolist() == pytest.approx(wanted, rel=1e-12)


def rounded(run, inputs, parameters):
    """States and gradients, once in float32 and once with products in bfloat16."""
    found = []
    for rough in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=rough):
            states = run(inputs, parameters)
        gradients = torch.autograd.grad(states.float().cos().sum(), [inputs, *parameters])
        found.append([states, *gradients])
    return found


@pytest.mark.parametrize("kind", ["gru", "lstm"])
@pytest.mark.parametrize("shared", [True, False])
def test_in_bfloat16_states_and_gradients_are_those_of_float32_but_for_rounding(kind, shared):
    inputs, parameters = inputs_of(7, torch.float32, shared), parameters_of(kind, torch.float32)
    plain, rough = rounded(lambda x, p: ours(kind, x, p), inputs, parameters)
    assert rough[0].dtype == torch.bfloat16
    assert all(gradient.dtype == torch.float32 for gradient in rough[1:])
    for left, right in zip(plain, rough, strict=True):
        gap = (left - right).norm() / left.norm()
        assert 0 < gap < 0.05  # bfloat16 keeps eight bits: 0.004 a rounding


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("n_steps", [1, 2, 7])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_states_and_gradients_equal_those_of_torch(kind, n_steps, shared, dtype):
    inputs, parameters = inputs_of(n_steps, dtype, shared), parameters_of(kind, dtype)
    mine, other = ours(kind, inputs, parameters), theirs(kind, inputs, parameters)
    assert mine.shape == (J, n_steps, B, H)
    close = {"atol": TOLERANCE[dtype], "rtol": TOLERANCE[dtype]}
    torch.testing.assert_close(mine, other, **close)
    weight = torch.randn(mine.shape, generator=torch.Generator().manual_seed(2), dtype=dtype)
    gradients = [torch.autograd.grad(x, [inputs, *parameters], weight) for x in (mine, other)]
    for left, right in zip(*gradients, strict=True):
        torch.testing.assert_close(left, right, **close)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_the_written_out_gradient_is_the_gradient(kind, n_steps, shared):
    inputs = inputs_of(n_steps, torch.float64, shared)
    parameters = parameters_of(kind, torch.float64)
    assert torch.autograd.gradcheck(
        lambda x, *p: ours(kind, x, p), (inputs, *parameters), atol=1e-7
    )


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_a_gradient_that_nobody_asked_for_changes_nothing(kind):
    inputs, parameters = inputs_of(4, torch.float64, True), parameters_of(kind, torch.float64)
    with_inputs = torch.autograd.grad(ours(kind, inputs, parameters).sum(), parameters)
    without = torch.autograd.grad(ours(kind, inputs.detach(), parameters).sum(), parameters)
    assert all(torch.equal(a, b) for a, b in zip(with_inputs, without, strict=True))


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_without_gradients_the_states_are_the_same(kind):
    inputs, parameters = inputs_of(5, torch.float32, True), parameters_of(kind, torch.float32)
    plain = [parameter.detach() for parameter in parameters]
    assert torch.equal(ours(kind, inputs.detach(), plain), ours(kind, inputs, parameters))


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_enormous_inputs_saturate_and_stay_finite(kind):
    inputs = (inputs_of(3, torch.float32, True).detach() * 1e6).requires_grad_()
    parameters = parameters_of(kind, torch.float32)
    states = ours(kind, inputs, parameters)
    gradients = torch.autograd.grad(states.sum(), [inputs, *parameters])
    assert states.abs().max() <= 1
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_gradients_of_little_precision_are_added_up_in_float32():
    """256 + 1 is 256 in bfloat16, however often it is added."""
    like = torch.zeros(1, 1, 1, dtype=torch.bfloat16)
    total = recurrences._sums(like, (1, 1, 1))
    assert total.dtype == torch.float32
    one = torch.ones(1, 1, 1, dtype=torch.bfloat16)
    recurrences._add_product(total, 256 * one, one)
    for _ in range(100):
        recurrences._add_product(total, one, one)
    assert total.item() == 356
    assert recurrences._sums(like.double(), (2,)).dtype == torch.float64


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_on_a_gpu_bfloat16_rounds_as_on_the_cpu(kind):
    inputs, parameters = inputs_of(7, torch.float32, True), parameters_of(kind, torch.float32)
    found = []
    for device in ("cpu", "cuda"):
        moved = [x.detach().to(device).requires_grad_() for x in (inputs, *parameters)]
        with torch.autocast(device, torch.bfloat16):
            states = ours(kind, moved[0], moved[1:])
        gradients = torch.autograd.grad(states.float().cos().sum(), moved)
        found.append([x.float().cpu() for x in (states, *gradients)])
    for left, right in zip(*found, strict=True):
        assert (left - right).norm() / left.norm() < 0.05


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_on_a_gpu_states_and_gradients_equal_those_on_the_cpu(kind, shared, dtype):
    inputs, parameters = inputs_of(7, dtype, shared), parameters_of(kind, dtype)
    found = []
    for device in ("cpu", "cuda"):
        moved = [x.detach().to(device).requires_grad_() for x in (inputs, *parameters)]
        states = ours(kind, moved[0], moved[1:])
        gradients = torch.autograd.grad(states.cos().sum(), moved)
        found.append([x.cpu() for x in (states, *gradients)])
    for left, right in zip(*found, strict=True):
        torch.testing.assert_close(left, right, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
