"""Our recurrences against torch's own, network by network, forwards and backwards."""

import pytest
import torch
from torch import nn

from etips.models.kernels import fused, recurrent
from etips.models.kernels.recurrent import gru, lstm

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


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_networks_in_blocks_give_what_they_give_together(kind, shared, monkeypatch):
    inputs, parameters = inputs_of(4, torch.float64, shared), parameters_of(kind, torch.float64)

    def run():
        states = ours(kind, inputs, parameters)
        return [states, *torch.autograd.grad(states.square().sum(), [inputs, *parameters])]

    together = run()
    monkeypatch.setattr(recurrent, "_BLOCK", 2 * B * H)
    for left, right in zip(together, run(), strict=True):
        torch.testing.assert_close(left, right, atol=1e-12, rtol=1e-12)


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


def cell(from_input, from_state, state):
    """What torch's fused cell computes on a GPU, as its source has it."""
    ir, iu, ic = from_input.chunk(3, 1)
    hr, hu, hc = from_state.chunk(3, 1)
    reset, update = (ir + hr).sigmoid(), (iu + hu).sigmoid()
    candidate = (ic + reset * hc).tanh()
    after = candidate + update * (state - candidate)
    return after, torch.cat([reset, update, candidate, state, hc], 1)


def cell_backward(grad, workspace, has_bias):
    reset, update, candidate, state, hc = workspace.chunk(5, 1)
    d_update = grad * (state - candidate) * (1 - update) * update
    d_candidate = grad * (1 - update) * (1 - candidate.square())
    d_reset = d_candidate * hc * (1 - reset) * reset
    from_input = torch.cat([d_reset, d_update, d_candidate], 1)
    from_state = torch.cat([d_reset, d_update, d_candidate * reset], 1)
    return from_input, from_state, grad * update, None, None


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("n_steps", [1, 4, fused._SPAN, 2 * fused._SPAN + 1])
def test_the_fused_form_equals_the_plain_one_given_a_stand_in_for_its_cell(
    n_steps, shared, monkeypatch
):
    monkeypatch.setattr(fused, "_cell", cell)
    monkeypatch.setattr(fused, "_cell_backward", cell_backward)
    inputs = inputs_of(n_steps, torch.float64, shared)
    parameters = parameters_of("gru", torch.float64)
    found = []
    for form in (recurrent._Gru, recurrent._FusedGru):
        states = form.apply(inputs, *parameters)
        found.append([states, *torch.autograd.grad(states.cos().sum(), [inputs, *parameters])])
    for left, right in zip(*found, strict=True):
        torch.testing.assert_close(left, right, atol=1e-12, rtol=1e-12)


def rounded(run, inputs, parameters):
    """States and gradients, once in float32 and once with products in bfloat16."""
    found = []
    for lesser in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=lesser):
            states = run(inputs, parameters)
        gradients = torch.autograd.grad(states.float().cos().sum(), [inputs, *parameters])
        found.append([states, *gradients])
    return found


@pytest.mark.parametrize("form", ["gru", "lstm", "fused"])
@pytest.mark.parametrize("shared", [True, False])
def test_in_bfloat16_states_and_gradients_are_those_of_float32_but_for_rounding(
    form, shared, monkeypatch
):
    kind = "lstm" if form == "lstm" else "gru"
    if form == "fused":
        monkeypatch.setattr(fused, "_cell", cell)
        monkeypatch.setattr(fused, "_cell_backward", cell_backward)
        monkeypatch.setattr(recurrent, "_Gru", recurrent._FusedGru)
    inputs, parameters = inputs_of(7, torch.float32, shared), parameters_of(kind, torch.float32)
    plain, lesser = rounded(lambda x, p: ours(kind, x, p), inputs, parameters)
    assert lesser[0].dtype == torch.bfloat16
    assert all(gradient.dtype == torch.float32 for gradient in lesser[1:])
    for left, right in zip(plain, lesser, strict=True):
        gap = (left - right).norm() / left.norm()
        assert 0 < gap < 0.05  # bfloat16 keeps eight bits: 0.004 a rounding


def test_gradients_of_little_precision_are_added_up_in_float32():
    """256 + 1 is 256 in bfloat16, however often it is added."""
    like = torch.zeros(1, 1, 1, dtype=torch.bfloat16)
    total = fused.sums(like, (1, 1, 1))
    assert total.dtype == torch.float32
    one = torch.ones(1, 1, 1, dtype=torch.bfloat16)
    fused.add_product(total, 256 * one, one)
    for _ in range(100):
        fused.add_product(total, one, one)
    assert total.item() == 356
    assert fused.sums(like.double(), (2,)).dtype == torch.float64


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
