"""Small recurrences, ours and torch's own."""

import torch
from torch import nn

from etips.models.kernels.gru_kernel import gru
from etips.models.kernels.lstm_kernel import lstm

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
