"""The GRU with torch's fused cell, on a CPU with a stand-in for it."""

import pytest
import torch
from recurrences import inputs_of, ours, parameters_of

from etips.models.kernels import fused, gru_kernel


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
    for form in (gru_kernel._Gru, gru_kernel._FusedGru):
        states = form.apply(inputs, *parameters)
        found.append([states, *torch.autograd.grad(states.cos().sum(), [inputs, *parameters])])
    for left, right in zip(*found, strict=True):
        torch.testing.assert_close(left, right, atol=1e-12, rtol=1e-12)


def rounded(run, inputs, parameters):
    """States and gradients, once in float32 and once with products in bfloat16."""
    found = []
    for rough in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=rough):
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
        monkeypatch.setattr(gru_kernel, "_Gru", gru_kernel._FusedGru)
    inputs, parameters = inputs_of(7, torch.float32, shared), parameters_of(kind, torch.float32)
    plain, rough = rounded(lambda x, p: ours(kind, x, p), inputs, parameters)
    assert rough[0].dtype == torch.bfloat16
    assert all(gradient.dtype == torch.float32 for gradient in rough[1:])
    for left, right in zip(plain, rough, strict=True):
        gap = (left - right).norm() / left.norm()
        assert 0 < gap < 0.05  # bfloat16 keeps eight bits: 0.004 a rounding


@pytest.mark.parametrize("width", [1, 7, 8])
def test_a_column_of_ones_is_followed_by_zeros_up_to_a_multiple_of_eight(width):
    filled = fused.with_ones(torch.full((2, 3, width), 5.0))
    assert filled.shape[2] % 8 == 0
    assert (filled[..., :width] == 5).all()
    assert (filled[..., width] == 1).all()
    assert (filled[..., width + 1 :] == 0).all()
