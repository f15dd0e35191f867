"""GRU and LSTM for many networks at once: parameters carry a leading axis, one a network.

Each recurrence is one autograd function with its backward pass written out, so that a step is a
handful of operations on all networks together, and the gradients of the weights are matrix products
over all steps at once. Layout everywhere: (networks J, steps T, batch B, width).
"""

from typing import Any

import torch
from torch import Tensor

_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward.grad_input


def gru(inputs: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor, new: Tensor) -> Tensor:
    """States of a GRU after every step, shape (J, T, B, H); the equations of `torch.nn.GRU`.

    Args:
        inputs: Shape (T, B, d), the same for all networks, or (J, T, B, d).
        weight: From input to the gates (reset, update, new), shape (J, d, 3H).
        recurrent: From state to the gates, shape (J, H, 3H).
        bias: Of the gates; input and recurrent bias of the first two add up, shape (J, 3H).
        new: Recurrent bias of the new gate, which the reset gate multiplies, shape (J, H).
    """
    states: Tensor = _Gru.apply(inputs, weight, recurrent, bias, new)  # type: ignore[no-untyped-call]
    return states


def lstm(inputs: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor) -> Tensor:
    """States of an LSTM after every step, shape (J, T, B, H); the equations of `torch.nn.LSTM`.

    Mind the order of the gates (input, forget, output, cell): torch has the cell third.

    Args:
        inputs: Shape (T, B, d), the same for all networks, or (J, T, B, d).
        weight: From input to the gates, shape (J, d, 4H).
        recurrent: From state to the gates, shape (J, H, 4H).
        bias: Of the gates, input and recurrent added up, shape (J, 4H).
    """
    states: Tensor = _Lstm.apply(inputs, weight, recurrent, bias)  # type: ignore[no-untyped-call]
    return states


class _Gru(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401  # torch's context
        inputs: Tensor,
        weight: Tensor,
        recurrent: Tensor,
        bias: Tensor,
        new: Tensor,
    ) -> Tensor:
        gates = _project(inputs, weight, bias)  # becomes reset, update, new in place
        n_networks, n_steps, n_batch, width = gates.shape
        size = width // 3
        states = gates.new_empty(n_networks, n_steps, n_batch, size)
        from_state = torch.empty_like(states)  # recurrent part of the new gate
        for step in range(n_steps):
            two, candidate = gates[:, step, :, : 2 * size], gates[:, step, :, 2 * size :]
            reset, update = two[..., :size], two[..., size:]
            if step == 0:  # the state before the first step is zero
                from_state[:, 0] = new[:, None]
                candidate.addcmul_(two.sigmoid_()[..., :size], from_state[:, 0]).tanh_()
                torch.addcmul(candidate, candidate, update, value=-1, out=states[:, 0])
                continue
            before = states[:, step - 1]
            two.baddbmm_(before, recurrent[..., : 2 * size]).sigmoid_()
            torch.baddbmm(new[:, None], before, recurrent[..., 2 * size :], out=from_state[:, step])
            candidate.addcmul_(reset, from_state[:, step]).tanh_()
            torch.lerp(candidate, before, update, out=states[:, step])
        ctx.save_for_backward(inputs, weight, recurrent, gates, states, from_state)
        return states

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        inputs, weight, recurrent, gates, states, from_state = ctx.saved_tensors
        size = states.shape[3]
        d_gates, d_from = torch.empty_like(gates), torch.empty_like(states)
        back = recurrent.transpose(1, 2)
        carried: Tensor | None = None
        for step in range(states.shape[1] - 1, -1, -1):
            reset, update, candidate = gates[:, step].chunk(3, dim=2)
            d_reset, d_update, d_candidate = d_gates[:, step].chunk(3, dim=2)
            d_state = grad[:, step] if carried is None else carried.add_(grad[:, step])
            kept = d_state * update
            gap = states[:, step - 1] - candidate if step else candidate.neg()
            _sigmoid_backward(gap.mul_(d_state), update, grad_input=d_update)
            _tanh_backward(d_state - kept, candidate, grad_input=d_candidate)
            _sigmoid_backward(d_candidate * from_state[:, step], reset, grad_input=d_reset)
            torch.mul(d_candidate, reset, out=d_from[:, step])
            if step:
                kept.baddbmm_(d_gates[:, step, :, : 2 * size], back[:, : 2 * size])
                carried = kept.baddbmm_(d_from[:, step], back[:, 2 * size :])
        d_recurrent = torch.cat(
            [_over_steps(states, d_gates[..., : 2 * size]), _over_steps(states, d_from)], dim=2
        )
        d_inputs, d_weight, d_bias = _project_backward(inputs, weight, d_gates, ctx)
        return d_inputs, d_weight, d_recurrent, d_bias, d_from.sum((1, 2))


class _Lstm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401  # torch's context
        inputs: Tensor,
        weight: Tensor,
        recurrent: Tensor,
        bias: Tensor,
    ) -> Tensor:
        gates = _project(inputs, weight, bias)  # becomes input, forget, output, cell in place
        n_networks, n_steps, n_batch, width = gates.shape
        size = width // 4
        states = gates.new_empty(n_networks, n_steps, n_batch, size)
        cells, bent = torch.empty_like(states), torch.empty_like(states)  # memory, and its tanh
        for step in range(n_steps):
            gate = gates[:, step]
            if step:
                gate.baddbmm_(states[:, step - 1], recurrent)
            three, candidate = gate[..., : 3 * size].sigmoid_(), gate[..., 3 * size :].tanh_()
            entry, forget, output = three.chunk(3, dim=2)
            torch.mul(entry, candidate, out=cells[:, step])
            if step:
                cells[:, step].addcmul_(forget, cells[:, step - 1])
            torch.tanh(cells[:, step], out=bent[:, step])
            torch.mul(output, bent[:, step], out=states[:, step])
        ctx.save_for_backward(inputs, weight, recurrent, gates, states, cells, bent)
        return states

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        inputs, weight, recurrent, gates, states, cells, bent = ctx.saved_tensors
        d_gates, back = torch.empty_like(gates), recurrent.transpose(1, 2)
        d_state, d_cell = grad[:, -1], torch.zeros_like(grad[:, 0])
        for step in range(states.shape[1] - 1, -1, -1):
            entry, forget, output, candidate = gates[:, step].chunk(4, dim=2)
            d_entry, d_forget, d_output, d_candidate = d_gates[:, step].chunk(4, dim=2)
            _sigmoid_backward(d_state * bent[:, step], output, grad_input=d_output)
            d_cell = d_cell + torch.ops.aten.tanh_backward(d_state * output, bent[:, step])
            _sigmoid_backward(d_cell * candidate, entry, grad_input=d_entry)
            _tanh_backward(d_cell * entry, candidate, grad_input=d_candidate)
            if step == 0:
                d_forget.zero_()
                break
            _sigmoid_backward(d_cell * cells[:, step - 1], forget, grad_input=d_forget)
            d_state = torch.baddbmm(grad[:, step - 1], d_gates[:, step], back)
            d_cell.mul_(forget)
        d_inputs, d_weight, d_bias = _project_backward(inputs, weight, d_gates, ctx)
        return d_inputs, d_weight, _over_steps(states, d_gates), d_bias


def _project(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Input part of the gates of all steps, shape (J, T, B, width)."""
    flat = _flat(inputs, len(weight))
    return torch.baddbmm(bias[:, None], flat, weight).view(len(weight), *inputs.shape[-3:-1], -1)


def _project_backward(
    inputs: Tensor,
    weight: Tensor,
    d_gates: Tensor,
    ctx: Any,  # noqa: ANN401
) -> tuple[Tensor | None, Tensor, Tensor]:
    n_networks = len(weight)
    flat = d_gates.view(n_networks, -1, d_gates.shape[3])
    d_weight = torch.bmm(_flat(inputs, n_networks).transpose(1, 2), flat)
    d_inputs = None
    if ctx.needs_input_grad[0]:
        each = torch.bmm(flat, weight.transpose(1, 2)).view(*d_gates.shape[:3], -1)
        d_inputs = each if inputs.dim() == 4 else each.sum(0)
    return d_inputs, d_weight, flat.sum(1)


def _flat(inputs: Tensor, n_networks: int) -> Tensor:
    """Steps and batch in one axis, shape (J, T * B, d); shared inputs are not copied."""
    if inputs.dim() == 4:
        return inputs.flatten(1, 2)
    return inputs.flatten(0, 1).expand(n_networks, -1, -1)


def _over_steps(states: Tensor, d_gates: Tensor) -> Tensor:
    """Gradient of recurrent weights, shape (J, H, width): a state meets the next step's gates."""
    before = states[:, :-1].flatten(1, 2).transpose(1, 2)
    return torch.bmm(before, d_gates[:, 1:].flatten(1, 2))
