"""GRU and LSTM for many networks at once: parameters carry a leading axis, one a network.

Each recurrence is one autograd function with its backward pass written out. Everything that belongs
to a step (input part, state part, gates, gradients of the weights) is done while that step is in
the cache: on one core its matrix products run at nearly the machine's rate, twice that of products
over all steps at once. Steps are stored as (T, J, B, width), so that a step is contiguous; what
comes out is a view of shape (networks J, steps T, batch B, width).
"""

from collections.abc import Iterator
from itertools import pairwise, starmap
from typing import Any

import torch
from torch import Tensor

from etips.models.kernels.fused import add_product, fused_gru_backward, fused_gru_forward, sums

_tanh_backward = torch.ops.aten.tanh_backward.grad_input

_BLOCK = 2**19
"""Numbers a step may hold in one array, so that its dozen arrays stay near the core: J * B * H."""


def gru(inputs: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor, new: Tensor) -> Tensor:
    """States of a GRU after every step, shape (J, T, B, H); the equations of `torch.nn.GRU`.

    Args:
        inputs: Shape (T, B, d), the same for all networks, or (J, T, B, d).
        weight: From input to the gates (reset, update, new), shape (J, d, 3H).
        recurrent: From state to the gates, shape (J, H, 3H).
        bias: Of the gates; input and recurrent bias of the first two add up, shape (J, 3H).
        new: Recurrent bias of the new gate, which the reset gate multiplies, shape (J, H).
    """
    return _run(_FusedGru if inputs.is_cuda else _Gru, inputs, weight, recurrent, bias, new)


def lstm(inputs: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor) -> Tensor:
    """States of an LSTM after every step, shape (J, T, B, H); the equations of `torch.nn.LSTM`.

    Mind the order of the gates (input, forget, output, cell): torch has the cell third.

    Args:
        inputs: Shape (T, B, d), the same for all networks, or (J, T, B, d).
        weight: From input to the gates, shape (J, d, 4H).
        recurrent: From state to the gates, shape (J, H, 4H).
        bias: Of the gates, input and recurrent added up, shape (J, 4H).
    """
    return _run(_Lstm, inputs, weight, recurrent, bias)


def _run(form: type[torch.autograd.Function], *arguments: Tensor) -> Tensor:
    """States by a recurrence; under autocast all of it, states too, is in the lesser precision."""
    kind = arguments[0].device.type
    if not torch.is_autocast_enabled(kind):
        plain: Tensor = form.apply(*arguments)  # type: ignore[no-untyped-call]
        return plain
    lesser = [value.to(torch.get_autocast_dtype(kind)) for value in arguments]
    with torch.autocast(kind, enabled=False):
        states: Tensor = form.apply(*lesser)  # type: ignore[no-untyped-call]
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
        size = new.shape[1]
        once = not any(ctx.needs_input_grad)
        gates = _empty(inputs, weight, 2 * size, once)  # reset and update
        candidates = _empty(inputs, weight, size, once)
        parts = _empty(inputs, weight, size, once)  # recurrent part of the new gate
        states = _empty(inputs, weight, size)
        for these in _blocks(states):
            _gru_forward(
                _of(inputs, these),
                (weight[these], recurrent[these], bias[these, None], new[these, None]),
                (gates[:, these], candidates[:, these], parts[:, these], states[:, these]),
            )
        ctx.save_for_backward(inputs, weight, recurrent, gates, candidates, parts, states)
        return states.transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        inputs, weight, recurrent, *kept = ctx.saved_tensors
        d_weight, d_recurrent = sums(weight, weight.shape), sums(weight, recurrent.shape)
        d_bias, d_new = sums(weight, weight.shape[::2]), sums(weight, recurrent.shape[:2])
        d_inputs = torch.zeros_like(inputs) if ctx.needs_input_grad[0] else None
        for these in _blocks(kept[-1]):
            _gru_backward(
                grad[these].transpose(0, 1),
                _of(inputs, these),
                (weight[these], recurrent[these]),
                tuple(array[:, these] for array in kept),
                (d_weight[these], d_recurrent[these], d_bias[these], d_new[these]),
                None if d_inputs is None else _of(d_inputs, these),
            )
        return d_inputs, d_weight, d_recurrent, d_bias, d_new


def _gru_forward(inputs: Tensor, parameters: tuple[Tensor, ...], kept: tuple[Tensor, ...]) -> None:
    """Fill what is kept of a block of networks: gates, candidates, recurrent parts, states."""
    weight, recurrent, bias, new = parameters
    size = new.shape[2]
    weight_two, weight_new = _split(weight, 2 * size)
    recurrent_two, recurrent_new = _split(recurrent, 2 * size)
    before: Tensor | None = None
    for step, (two, candidate, part, state) in enumerate(zip(*kept, strict=True)):
        now = _step(inputs, step, len(weight))
        torch.baddbmm(bias[..., : 2 * size], now, weight_two, out=two)
        torch.baddbmm(bias[..., 2 * size :], now, weight_new, out=candidate)
        if before is None:  # the state before the first step is zero
            part.copy_(new.expand_as(part))
        else:
            two.baddbmm_(before, recurrent_two)
            torch.baddbmm(new, before, recurrent_new, out=part)
        reset, update = two.sigmoid_().chunk(2, dim=2)
        _tanh(candidate.addcmul_(reset, part))
        if before is None:
            torch.addcmul(candidate, candidate, update, value=-1, out=state)
        else:
            torch.lerp(candidate, before, update, out=state)
        before = state


def _gru_backward(
    grad: Tensor,
    inputs: Tensor,
    parameters: tuple[Tensor, ...],
    kept: tuple[Tensor, ...],
    found: tuple[Tensor, ...],
    d_inputs: Tensor | None,
) -> None:
    """Add a block's gradients to those `found`: of weight, recurrent, bias and new."""
    weight, recurrent = parameters
    gates, candidates, parts, states = kept
    d_weight, d_recurrent, d_bias, d_new = found
    n_steps, *shape, size = states.shape
    d_gates = states.new_empty(*shape, 3 * size)
    d_reset, d_update, d_candidate = d_gates.chunk(3, dim=2)
    slope, spare = torch.empty_like(gates[0]), torch.empty_like(states[0])
    back = recurrent.transpose(1, 2)
    d_state = grad[n_steps - 1]
    for step in range(n_steps - 1, -1, -1):
        two, candidate, now = gates[step], candidates[step], _step(inputs, step, len(weight))
        carried = d_state * two[..., size:]
        if step:
            torch.sub(states[step - 1], candidate, out=spare)
        else:
            torch.neg(candidate, out=spare)
        torch.mul(spare, d_state, out=d_update)
        _tanh_backward(torch.sub(d_state, carried, out=spare), candidate, grad_input=d_candidate)
        torch.mul(d_candidate, parts[step], out=d_reset)
        d_gates[..., : 2 * size].mul_(torch.addcmul(two, two, two, value=-1, out=slope))
        add_product(d_weight, now.transpose(1, 2), d_gates)
        d_bias.add_(d_gates.sum(1, dtype=d_bias.dtype))
        _add_inputs(d_inputs, step, d_gates, weight)
        d_candidate.mul_(two[..., :size])  # now the gradient of its recurrent part
        d_new.add_(d_candidate.sum(1, dtype=d_new.dtype))
        if step:
            add_product(d_recurrent, states[step - 1].transpose(1, 2), d_gates)
            d_state = carried.baddbmm_(d_gates, back).add_(grad[step - 1])


class _FusedGru(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        inputs: Tensor,
        weight: Tensor,
        recurrent: Tensor,
        bias: Tensor,
        new: Tensor,
    ) -> Tensor:
        states, *kept = fused_gru_forward(inputs, weight, recurrent, bias, new)
        ctx.save_for_backward(inputs, weight, recurrent, *kept)
        return states.transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        inputs, weight, recurrent, states, *workspaces = ctx.saved_tensors
        d_inputs = torch.zeros_like(inputs) if ctx.needs_input_grad[0] else None
        found = fused_gru_backward(
            grad.transpose(0, 1), inputs, weight, recurrent, states, workspaces, d_inputs
        )
        return d_inputs, *found


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
        gates = _empty(inputs, weight, 4 * size, once)  # input, forget, output, cell
        bent = _empty(inputs, weight, size, once)  # tanh of the memory
        cells, states = _empty(inputs, weight, size), _empty(inputs, weight, size)
        for these in _blocks(states):
            _lstm_forward(
                _of(inputs, these),
                (weight[these], recurrent[these], bias[these, None]),
                (gates[:, these], cells[:, these], bent[:, these], states[:, these]),
            )
        ctx.save_for_backward(inputs, weight, recurrent, gates, cells, bent, states)
        return states.transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        inputs, weight, recurrent, *kept = ctx.saved_tensors
        d_weight, d_recurrent = sums(weight, weight.shape), sums(weight, recurrent.shape)
        d_bias = sums(weight, weight.shape[::2])
        d_inputs = torch.zeros_like(inputs) if ctx.needs_input_grad[0] else None
        for these in _blocks(kept[-1]):
            _lstm_backward(
                grad[these].transpose(0, 1),
                _of(inputs, these),
                (weight[these], recurrent[these]),
                tuple(array[:, these] for array in kept),
                (d_weight[these], d_recurrent[these], d_bias[these]),
                None if d_inputs is None else _of(d_inputs, these),
            )
        return d_inputs, d_weight, d_recurrent, d_bias


def _lstm_forward(inputs: Tensor, parameters: tuple[Tensor, ...], kept: tuple[Tensor, ...]) -> None:
    """Fill what is kept of a block of networks: gates, cells, their tanh, states."""
    weight, recurrent, bias = parameters
    size = recurrent.shape[1]
    before: Tensor | None = None
    memory: Tensor | None = None
    for step, (gate, cell, bent, state) in enumerate(zip(*kept, strict=True)):
        torch.baddbmm(bias, _step(inputs, step, len(weight)), weight, out=gate)
        if before is not None:
            gate.baddbmm_(before, recurrent)
        entry, forget, output = gate[..., : 3 * size].sigmoid_().chunk(3, dim=2)
        torch.mul(entry, _tanh(gate[..., 3 * size :]), out=cell)
        if memory is not None:
            cell.addcmul_(forget, memory)
        torch.mul(output, _tanh(bent.copy_(cell)), out=state)
        before, memory = state, cell


def _lstm_backward(
    grad: Tensor,
    inputs: Tensor,
    parameters: tuple[Tensor, ...],
    kept: tuple[Tensor, ...],
    found: tuple[Tensor, ...],
    d_inputs: Tensor | None,
) -> None:
    """Add a block's gradients to those `found`: of weight, recurrent and bias."""
    weight, recurrent = parameters
    gates, cells, bents, states = kept
    d_weight, d_recurrent, d_bias = found
    n_steps, *_, size = states.shape
    d_gates, spare = torch.empty_like(gates[0]), torch.empty_like(states[0])
    d_entry, d_forget, d_output, d_candidate = d_gates.chunk(4, dim=2)
    slope = torch.empty_like(gates[0, ..., : 3 * size])
    back = recurrent.transpose(1, 2)
    d_state, d_cell = grad[n_steps - 1], torch.zeros_like(states[0])
    for step in range(n_steps - 1, -1, -1):
        three, bent = gates[step, ..., : 3 * size], bents[step]
        entry, forget, output, candidate = gates[step].chunk(4, dim=2)
        torch.mul(d_state, bent, out=d_output)
        spare = torch.mul(d_state, output, out=spare)
        d_cell.add_(torch.ops.aten.tanh_backward(spare, bent))
        torch.mul(d_cell, candidate, out=d_entry)
        _tanh_backward(torch.mul(d_cell, entry, out=spare), candidate, grad_input=d_candidate)
        if step:
            torch.mul(d_cell, cells[step - 1], out=d_forget)
        else:
            d_forget.zero_()
        d_gates[..., : 3 * size].mul_(torch.addcmul(three, three, three, value=-1, out=slope))
        add_product(d_weight, _step(inputs, step, len(weight)).transpose(1, 2), d_gates)
        d_bias.add_(d_gates.sum(1, dtype=d_bias.dtype))
        _add_inputs(d_inputs, step, d_gates, weight)
        if step:
            add_product(d_recurrent, states[step - 1].transpose(1, 2), d_gates)
            d_state = torch.baddbmm(grad[step - 1], d_gates, back)
            d_cell.mul_(forget)


def _tanh(values: Tensor) -> Tensor:
    """Hyperbolic tangent in place, by the sigmoid: torch's own is seven times as slow on a CPU."""
    return values.mul_(2).sigmoid_().mul_(2).sub_(1)


def _empty(inputs: Tensor, weight: Tensor, width: int, once: bool = False) -> Tensor:
    """Room for every step, shape (T, J, B, width); all steps in one place if `once`."""
    n_steps, n_batch = inputs.shape[-3:-1]
    found = weight.new_empty(1 if once else n_steps, len(weight), n_batch, width)
    return found.expand(n_steps, -1, -1, -1)


def _blocks(states: Tensor) -> Iterator[slice]:
    """Networks that run together; on the GPU all of them do."""
    n_networks = states.shape[1]
    n_blocks = 1 if states.is_cuda else min(-(-states[0].numel() // _BLOCK), n_networks)
    edges = [n_networks * number // n_blocks for number in range(n_blocks + 1)]
    return starmap(slice, pairwise(edges))


def _of(inputs: Tensor, these: slice) -> Tensor:
    """Inputs of some networks."""
    return inputs if inputs.dim() == 3 else inputs[these]


def _step(inputs: Tensor, step: int, n_networks: int) -> Tensor:
    """Inputs of one step, shape (J, B, d); shared inputs are not copied."""
    return inputs[step].expand(n_networks, -1, -1) if inputs.dim() == 3 else inputs[:, step]


def _split(values: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The first columns and the others, each contiguous."""
    return values[..., :width].contiguous(), values[..., width:].contiguous()


def _add_inputs(d_inputs: Tensor | None, step: int, d_gates: Tensor, weight: Tensor) -> None:
    """Add one step's gradient of the inputs, if anybody asked for it."""
    if d_inputs is None:
        return
    each = torch.bmm(d_gates, weight.transpose(1, 2))
    if d_inputs.dim() == 3:
        d_inputs[step].add_(each.sum(0))
    else:
        d_inputs[:, step].add_(each)
