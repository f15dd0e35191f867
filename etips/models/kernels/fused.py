"""The GRU on a GPU, with torch's fused cell: there the traffic of small operations is what costs.

Biases travel as one more column: of ones in the inputs and in the states, and of the bias in the
weights. So no product has to read a bias, and the bias's gradient falls out of the weights'. The
columns are filled up with zeros to a multiple of eight, which the fast matrix products want.

Products that need not wait for the step before are done for a span of steps at once: those of the
inputs, and all gradients but that of the state.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from etips.models.kernels.recurrent import add_product, sums

_cell = torch.ops.aten._thnn_fused_gru_cell
_cell_backward = torch.ops.aten._thnn_fused_gru_cell_backward

_SPAN = 16
"""Steps of a span: enough to fill a GPU, few enough for its memory."""


def fused_gru_forward(
    inputs: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor, new: Tensor
) -> tuple[Tensor, ...]:
    """States (T, J, B, H), and what the way back needs: states with ones, every cell's workspace.

    Args:
        inputs: Shape (T, B, d) or (J, T, B, d).
        weight: Shape (J, d, 3H).
        recurrent: Shape (J, H, 3H).
        bias: Shape (J, 3H).
        new: Shape (J, H).
    """
    n_networks, size = new.shape
    n_steps, n_batch = inputs.shape[-3:-1]
    shape = (n_networks * n_batch, -1)
    inputs, weight = with_ones(inputs), _with_bias(weight, bias)
    recurrent = _with_bias(recurrent, functional.pad(new, (2 * size, 0)))
    states = with_ones(weight.new_zeros(n_steps + 1, n_networks, n_batch, size))
    workspaces: list[Tensor] = []
    state = weight.new_zeros(n_networks * n_batch, size)
    for span in _spans(n_steps):
        products = torch.bmm(_rows(inputs, span, n_networks), weight)
        products = products.view(n_networks, -1, n_batch, 3 * size).transpose(0, 1).contiguous()
        for step, product in zip(range(n_steps)[span], products, strict=True):
            from_state = torch.bmm(states[step], recurrent).view(shape)
            state, workspace = _cell(product.view(shape), from_state, state)
            workspaces.append(workspace)
            states[step + 1, ..., :size] = state.view(n_networks, n_batch, size)
    return states[1:, ..., :size], states, *workspaces


def fused_gru_backward(
    grad: Tensor,
    inputs: Tensor,
    weight: Tensor,
    recurrent: Tensor,
    states: Tensor,
    workspaces: Sequence[Tensor],
    d_inputs: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of weight, recurrent, bias and new; that of the inputs is added to `d_inputs`.

    Args:
        grad: Of the states, shape (T, J, B, H).
        inputs: As in the forward pass.
        weight: As in the forward pass.
        recurrent: As in the forward pass.
        states: With ones, shape (T + 1, J, B, at least H + 1).
        workspaces: Of the cells, one a step.
        d_inputs: Like the inputs, or None.
    """
    n_steps, n_networks, n_batch, size = grad.shape
    n_features, ones = inputs.shape[-1], with_ones(inputs)
    d_weight = sums(weight, (n_networks, ones.shape[-1], 3 * size))
    d_recurrent = sums(weight, (n_networks, states.shape[-1], 3 * size))
    back, shape = recurrent.transpose(1, 2), (n_networks, n_batch, -1)
    d_state = grad[n_steps - 1].contiguous()
    for span in reversed(_spans(n_steps)):
        from_inputs, from_states = [], []  # gradients of what the cells were given, last step first
        for step in reversed(range(n_steps)[span]):
            flat = d_state.view(n_networks * n_batch, size)
            d_input, d_part, carried, *_ = _cell_backward(flat, workspaces[step], False)
            from_inputs.append(d_input.view(shape))
            from_states.append(d_part.view(shape))
            if step:
                d_state = carried.view(shape).baddbmm_(from_states[-1], back).add_(grad[step - 1])
        d_input, d_part = _join(from_inputs), _join(from_states)
        add_product(d_weight, _rows(ones, span, n_networks).transpose(1, 2), d_input)
        before = states[span].transpose(0, 1).reshape(n_networks, -1, states.shape[-1])
        add_product(d_recurrent, before.transpose(1, 2), d_part)
        if d_inputs is not None:
            _add_to_inputs(d_inputs, span, torch.bmm(d_input, weight.transpose(1, 2)))
    return (
        d_weight[:, :n_features],
        d_recurrent[:, :size],
        d_weight[:, n_features],
        d_recurrent[:, size, 2 * size :],
    )


def with_ones(values: Tensor) -> Tensor:
    """The same with a column of ones, and zeros up to a multiple of eight columns."""
    width = values.shape[-1]
    padded = functional.pad(values, (0, 8 - width % 8))
    padded[..., width] = 1.0
    return padded


def _with_bias(weight: Tensor, bias: Tensor) -> Tensor:
    """Weights with the bias as the row that meets the ones."""
    padded = functional.pad(weight, (0, 0, 0, 8 - weight.shape[1] % 8))
    padded[:, weight.shape[1]] = bias
    return padded


def _spans(n_steps: int) -> list[slice]:
    return [slice(at, min(at + _SPAN, n_steps)) for at in range(0, n_steps, _SPAN)]


def _rows(inputs: Tensor, span: slice, n_networks: int) -> Tensor:
    """All rows of some steps, for every network, shape (J, steps * B, d)."""
    if inputs.dim() == 3:
        return inputs[span].flatten(0, 1).expand(n_networks, -1, -1)
    return inputs[:, span].flatten(1, 2)


def _join(last_first: Sequence[Tensor]) -> Tensor:
    """Gradients of some steps, last step first, as rows from the first on, (J, steps * B, 3H)."""
    return torch.stack(tuple(reversed(last_first)), 1).flatten(1, 2)


def _add_to_inputs(d_inputs: Tensor, span: slice, rows: Tensor) -> None:
    """Add what the rows of some steps say to the gradient of the inputs."""
    if d_inputs.dim() == 3:
        d_inputs[span] += rows.sum(0).view_as(d_inputs[span])
    else:
        d_inputs[:, span] += rows.view_as(d_inputs[:, span])
