"""The recurrences, GRU and LSTM, of many networks at once: parameters have a leading axis.

Each recurrence is one autograd function with its backward pass written out. Everything that belongs
to a step (input part, state part, gates, gradients of the weights) is done while that step is in
the cache: on one core its matrix products run at nearly the machine's rate, twice that of products
over all steps at once. Steps are stored as (T, J, B, width), so that a step is contiguous; what
comes out is a view of shape (networks J, steps T, batch B, width).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from etips.models.gpu import takes

_tanh_backward = torch.ops.aten.tanh_backward.grad_input


SIZES = (16, 32, 64)
"""Of a state, that `gpu_kernels.WholeGru` takes: powers of two whose weights fit beside a block."""


def gru(inputs: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor, new: Tensor) -> Tensor:
    """States of a GRU after every step, shape (J, T, B, H); the equations of `torch.nn.GRU`.

    Args:
        inputs: Shape (T, B, d), the same for all networks, or (J, T, B, d).
        weight: From input to the gates (reset, update, new), shape (J, d, 3H).
        recurrent: From state to the gates, shape (J, H, 3H).
        bias: Of the gates; input and recurrent bias of the first two add up, shape (J, 3H).
        new: Recurrent bias of the new gate, which the reset gate multiplies, shape (J, H).
    """
    form: type[torch.autograd.Function] = _Gru
    if new.shape[1] in SIZES and not torch.is_autocast_enabled("cuda") and takes(inputs):
        from etips.models.gpu_kernels import WholeGru  # noqa: PLC0415  # Triton may be absent

        form = WholeGru  # all steps in one kernel
    return _apply(form, inputs, weight, recurrent, bias, new)


def lstm(inputs: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor) -> Tensor:
    """States of an LSTM after every step, shape (J, T, B, H); the equations of `torch.nn.LSTM`.

    Mind the order of the gates (input, forget, output, cell): torch has the cell third.

    Args:
        inputs: Shape (T, B, d), the same for all networks, or (J, T, B, d).
        weight: From input to the gates, shape (J, d, 4H).
        recurrent: From state to the gates, shape (J, H, 4H).
        bias: Of the gates, input and recurrent added up, shape (J, 4H).
    """
    return _apply(_Lstm, inputs, weight, recurrent, bias)


class _Pass(NamedTuple):
    """A pass back through the steps.

    Args:
        grad: Of the states, shape (T, J, B, H).
        inputs: Shape (T, B, d) or (J, T, B, d).
        weight: From input to the gates.
        recurrent: From state to the gates.
        kept: What the forward pass kept, the states last; each of shape (T, J, B, width).
        totals: Where gradients are added up: of weight, recurrent, bias, and of what else there is.
        d_inputs: Where the gradient of the inputs goes: added up where all networks share them;
            None if nobody asked.
    """

    grad: Tensor
    inputs: Tensor
    weight: Tensor
    recurrent: Tensor
    kept: tuple[Tensor, ...]
    totals: tuple[Tensor, ...]
    d_inputs: Tensor | None

    def add_step(self, step: int, d_gates: Tensor) -> None:
        """Add one step's gradients of weight, bias and inputs."""
        d_weight, _, d_bias = self.totals[:3]
        now = _inputs_at(self.inputs, step, len(self.weight))
        _add_product(d_weight, now.transpose(1, 2), d_gates)
        d_bias.add_(d_gates.sum(1, dtype=d_bias.dtype))
        if self.d_inputs is None:
            return
        back = self.weight.transpose(1, 2)
        if self.d_inputs.dim() == 3:
            self.d_inputs[step].add_(torch.bmm(d_gates, back).sum(0))
        else:
            torch.bmm(d_gates, back, out=self.d_inputs[:, step])


def _apply(form: type[torch.autograd.Function], *arguments: Tensor) -> Tensor:
    """States by a recurrence; under autocast all of it, states too, is in its precision."""
    kind = arguments[0].device.type
    if not torch.is_autocast_enabled(kind):
        plain: Tensor = form.apply(*arguments)  # type: ignore[no-untyped-call]
        return plain
    rounded = [value.to(torch.get_autocast_dtype(kind)) for value in arguments]
    with torch.autocast(kind, enabled=False):
        states: Tensor = form.apply(*rounded)  # type: ignore[no-untyped-call]
    return states


def _go_back(
    ctx: Any,  # noqa: ANN401  # torch's context
    grad: Tensor,
    backward: Callable[[_Pass], None],
    shapes: Sequence[Sequence[int]],
) -> tuple[Tensor | None, ...]:
    """Gradients of the inputs and of all parameters.

    Args:
        ctx: Holds inputs, weight, recurrent, and what the forward pass kept.
        grad: Of the states, shape (J, T, B, H).
        backward: Adds the gradients.
        shapes: Of the parameters that come after weight and recurrent.
    """
    inputs, weight, recurrent, *kept = ctx.saved_tensors
    totals = tuple(_sums(weight, shape) for shape in (weight.shape, recurrent.shape, *shapes))
    d_inputs = None
    if ctx.needs_input_grad[0]:
        d_inputs = torch.zeros_like(inputs) if inputs.dim() == 3 else torch.empty_like(inputs)
    backward(_Pass(grad.transpose(0, 1), inputs, weight, recurrent, tuple(kept), totals, d_inputs))
    return d_inputs, *totals


def _empty(inputs: Tensor, weight: Tensor, width: int, once: bool = False) -> Tensor:
    """Room for every step, shape (T, J, B, width); all steps in one place if `once`."""
    n_steps, n_batch = inputs.shape[-3:-1]
    room = weight.new_empty(1 if once else n_steps, len(weight), n_batch, width)
    return room.expand(n_steps, -1, -1, -1)


def _inputs_at(inputs: Tensor, step: int, n_networks: int) -> Tensor:
    """Inputs of one step, shape (J, B, d); shared inputs are not copied."""
    return inputs[step].expand(n_networks, -1, -1) if inputs.dim() == 3 else inputs[:, step]


def _inputs_each(inputs: Tensor, n_networks: int) -> tuple[Tensor, ...]:
    """Inputs of every step; see `_inputs_at`."""
    every = inputs.expand(n_networks, -1, -1, -1) if inputs.dim() == 3 else inputs
    return every.unbind(1)


def _tanh_(values: Tensor) -> Tensor:
    """Hyperbolic tangent in place, by the sigmoid: torch's own is seven times as slow on a CPU."""
    return values.mul_(2).sigmoid_().mul_(2).sub_(1)


def _sums(like: Tensor, shape: Sequence[int]) -> Tensor:
    """Zeros to add gradients up in: in float32 at least, however little precision they have."""
    kind = torch.promote_types(like.dtype, torch.float32)
    return torch.zeros(tuple(shape), dtype=kind, device=like.device)


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add the matrix product to the total, which may have more precision."""
    if total.dtype == left.dtype:
        total.baddbmm_(left, right)
    else:
        total.add_(torch.bmm(left, right))


class _Gru(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Tensor) -> Tensor:  # noqa: ANN401  # torch's context
        inputs, weight, recurrent, bias, new = arguments
        size = new.shape[1]
        once = not any(ctx.needs_input_grad)
        gates = _empty(inputs, weight, 2 * size, once)  # reset and update
        candidates = _empty(inputs, weight, size, once)
        parts = _empty(inputs, weight, size, once)  # recurrent part of the new gate
        states = _empty(inputs, weight, size)
        parameters = (weight, recurrent, bias[:, None], new[:, None])
        _gru_forward(inputs, parameters, (gates, candidates, parts, states))
        ctx.save_for_backward(inputs, weight, recurrent, gates, candidates, parts, states)
        return states.transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        _, weight, recurrent, *_ = ctx.saved_tensors
        return _go_back(ctx, grad, _gru_backward, (weight.shape[::2], recurrent.shape[:2]))


def _gru_forward(inputs: Tensor, parameters: tuple[Tensor, ...], kept: tuple[Tensor, ...]) -> None:
    """Fill what is kept of a pass: gates, candidates, recurrent parts, states."""
    weight, recurrent, bias, new = parameters
    size = new.shape[2]
    weight_two, weight_new = _split(weight, 2 * size)
    recurrent_two, recurrent_new = _split(recurrent, 2 * size)
    bias_two, bias_new = bias[..., : 2 * size], bias[..., 2 * size :]
    resets, updates = (part.unbind() for part in kept[0].chunk(2, dim=3))
    before: Tensor | None = None
    for now, reset, update, two, candidate, part, state in zip(
        _inputs_each(inputs, len(weight)), resets, updates, *kept, strict=True
    ):
        torch.baddbmm(bias_two, now, weight_two, out=two)
        torch.baddbmm(bias_new, now, weight_new, out=candidate)
        if before is None:  # the state before the first step is zero
            part.copy_(new.expand_as(part))
        else:
            two.baddbmm_(before, recurrent_two)
            torch.baddbmm(new, before, recurrent_new, out=part)
        two.sigmoid_()
        _tanh_(candidate.addcmul_(reset, part))
        if before is None:
            torch.addcmul(candidate, candidate, update, value=-1, out=state)
        else:
            torch.lerp(candidate, before, update, out=state)
        before = state


def _gru_backward(back_pass: _Pass) -> None:
    """Add the gradients of weight, recurrent, bias and new."""
    gates, candidates, parts, states = back_pass.kept
    _, d_recurrent, _, d_new = back_pass.totals
    grads, back = back_pass.grad.unbind(), back_pass.recurrent.transpose(1, 2)
    n_steps, *shape, size = states.shape
    d_gates = states.new_empty(*shape, 3 * size)
    d_two, (d_reset, d_update, d_candidate) = d_gates[..., : 2 * size], d_gates.chunk(3, dim=2)
    slope, spare = torch.empty_like(gates[0]), torch.empty_like(states[0])
    resets, updates = (part.unbind() for part in gates.chunk(2, dim=3))
    befores, turned = states.unbind(), states.transpose(2, 3).unbind()
    d_state = grads[n_steps - 1]
    kept = list(zip(gates, resets, updates, candidates, parts, strict=True))
    for step in range(n_steps - 1, -1, -1):
        two, reset, update, candidate, part = kept[step]
        carried = d_state * update
        if step:
            torch.sub(befores[step - 1], candidate, out=spare)
        else:
            torch.neg(candidate, out=spare)
        torch.mul(spare, d_state, out=d_update)
        _tanh_backward(torch.sub(d_state, carried, out=spare), candidate, grad_input=d_candidate)
        torch.mul(d_candidate, part, out=d_reset)
        d_two.mul_(torch.addcmul(two, two, two, value=-1, out=slope))
        back_pass.add_step(step, d_gates)
        d_candidate.mul_(reset)  # now the gradient of its recurrent part
        d_new.add_(d_candidate.sum(1, dtype=d_new.dtype))
        if step:
            _add_product(d_recurrent, turned[step - 1], d_gates)
            d_state = carried.baddbmm_(d_gates, back).add_(grads[step - 1])


def _split(values: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The first columns and the others, each contiguous."""
    return values[..., :width].contiguous(), values[..., width:].contiguous()


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
        _lstm_forward(inputs, (weight, recurrent, bias[:, None]), (gates, cells, bent, states))
        ctx.save_for_backward(inputs, weight, recurrent, gates, cells, bent, states)
        return states.transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        _, weight, *_ = ctx.saved_tensors
        return _go_back(ctx, grad, _lstm_backward, (weight.shape[::2],))


def _lstm_forward(inputs: Tensor, parameters: tuple[Tensor, ...], kept: tuple[Tensor, ...]) -> None:
    """Fill what is kept of a pass: gates, cells, their tanh, states."""
    weight, recurrent, bias = parameters
    size = recurrent.shape[1]
    before: Tensor | None = None
    memory: Tensor | None = None
    for step, (gate, cell, bent, state) in enumerate(zip(*kept, strict=True)):
        torch.baddbmm(bias, _inputs_at(inputs, step, len(weight)), weight, out=gate)
        if before is not None:
            gate.baddbmm_(before, recurrent)
        entry, forget, output = gate[..., : 3 * size].sigmoid_().chunk(3, dim=2)
        torch.mul(entry, _tanh_(gate[..., 3 * size :]), out=cell)
        if memory is not None:
            cell.addcmul_(forget, memory)
        torch.mul(output, _tanh_(bent.copy_(cell)), out=state)
        before, memory = state, cell


def _lstm_backward(back_pass: _Pass) -> None:
    """Add the gradients of weight, recurrent and bias."""
    gates, cells, bents, states = back_pass.kept
    d_recurrent = back_pass.totals[1]
    grad, back = back_pass.grad, back_pass.recurrent.transpose(1, 2)
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
        _tanh_backward(torch.mul(d_cell, entry, out=spare), candidate, grad_input=d_candidate)
        if step:
            torch.mul(d_cell, cells[step - 1], out=d_forget)
        else:
            d_forget.zero_()
        d_gates[..., : 3 * size].mul_(torch.addcmul(three, three, three, value=-1, out=slope))
        back_pass.add_step(step, d_gates)
        if step:
            _add_product(d_recurrent, states[step - 1].transpose(1, 2), d_gates)
            d_state = torch.baddbmm(grad[step - 1], d_gates, back)
            d_cell.mul_(forget)
