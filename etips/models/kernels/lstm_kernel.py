"""The LSTM for many networks at once."""

from typing import Any

import torch
from torch import Tensor

from etips.models.kernels import recurrent as shared
from etips.models.kernels.recurrent import Block, add_product, inputs_at


def lstm(inputs: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor) -> Tensor:
    """States of an LSTM after every step, shape (J, T, B, H); the equations of `torch.nn.LSTM`.

    Mind the order of the gates (input, forget, output, cell): torch has the cell third.

    Args:
        inputs: Shape (T, B, d), the same for all networks, or (J, T, B, d).
        weight: From input to the gates, shape (J, d, 4H).
        recurrent: From state to the gates, shape (J, H, 4H).
        bias: Of the gates, input and recurrent added up, shape (J, 4H).
    """
    return shared.apply(_Lstm, inputs, weight, recurrent, bias)


class _Lstm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        inputs: Tensor,
        weight: Tensor,
        recurrent: Tensor,
        bias: Tensor,
    ) -> Tensor:
        size = recurrent.shape[1]
        once = not any(ctx.needs_input_grad)
        gates = shared.empty(inputs, weight, 4 * size, once)  # input, forget, output, cell
        bent = shared.empty(inputs, weight, size, once)  # tanh of the memory
        cells, states = shared.empty(inputs, weight, size), shared.empty(inputs, weight, size)
        for these in shared.blocks(states):
            _forward(
                shared.inputs_of(inputs, these),
                (weight[these], recurrent[these], bias[these, None]),
                (gates[:, these], cells[:, these], bent[:, these], states[:, these]),
            )
        ctx.save_for_backward(inputs, weight, recurrent, gates, cells, bent, states)
        return states.transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        _, weight, *_ = ctx.saved_tensors
        return shared.go_back(ctx, grad, _backward, (weight.shape[::2],))


def _forward(inputs: Tensor, parameters: tuple[Tensor, ...], kept: tuple[Tensor, ...]) -> None:
    """Fill what is kept of a block of networks: gates, cells, their tanh, states."""
    weight, recurrent, bias = parameters
    size = recurrent.shape[1]
    before: Tensor | None = None
    memory: Tensor | None = None
    for step, (gate, cell, bent, state) in enumerate(zip(*kept, strict=True)):
        torch.baddbmm(bias, inputs_at(inputs, step, len(weight)), weight, out=gate)
        if before is not None:
            gate.baddbmm_(before, recurrent)
        entry, forget, output = gate[..., : 3 * size].sigmoid_().chunk(3, dim=2)
        torch.mul(entry, shared.tanh_(gate[..., 3 * size :]), out=cell)
        if memory is not None:
            cell.addcmul_(forget, memory)
        torch.mul(output, shared.tanh_(bent.copy_(cell)), out=state)
        before, memory = state, cell


def _backward(block: Block) -> None:
    """Add a block's gradients of weight, recurrent and bias."""
    gates, cells, bents, states = block.kept
    d_recurrent = block.totals[1]
    grad, back = block.grad, block.recurrent.transpose(1, 2)
    n_steps, *_, size = states.shape
    d_gates, spare = torch.empty_like(gates[0]), torch.empty_like(states[0])
    d_entry, d_forget, d_output, d_candidate = d_gates.chunk(4, dim=2)
    slope = torch.empty_like(gates[0, ..., : 3 * size])
    d_state, d_cell = grad[n_steps - 1], torch.zeros_like(states[0])
    for step in range(n_steps - 1, -1, -1):
        three, bent = gates[step, ..., : 3 * size], bents[step]
        entry, forget, output, candidate = gates[step].chunk(4, dim=2)
        torch.mul(d_state, bent, out=d_output)
        spare = torch.mul(d_state, output, out=spare)
        d_cell.add_(torch.ops.aten.tanh_backward(spare, bent))
        torch.mul(d_cell, candidate, out=d_entry)
        shared.tanh_backward(torch.mul(d_cell, entry, out=spare), candidate, grad_input=d_candidate)
        if step:
            torch.mul(d_cell, cells[step - 1], out=d_forget)
        else:
            d_forget.zero_()
        d_gates[..., : 3 * size].mul_(torch.addcmul(three, three, three, value=-1, out=slope))
        block.add_step(step, d_gates)
        if step:
            add_product(d_recurrent, states[step - 1].transpose(1, 2), d_gates)
            d_state = torch.baddbmm(grad[step - 1], d_gates, back)
            d_cell.mul_(forget)
