"""The GRU for many networks at once."""

from typing import Any

import torch
from torch import Tensor

from etips.models.kernels import recurrent as shared
from etips.models.kernels.compiling import takes
from etips.models.kernels.fused import fused_gru_backward, fused_gru_forward
from etips.models.kernels.recurrent import Block, add_product, inputs_each

SIZES = (16, 32, 64)
"""Of a state, that `kernels.whole_gru` takes: powers of two whose weights fit beside a block."""


def gru(inputs: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor, new: Tensor) -> Tensor:
    """States of a GRU after every step, shape (J, T, B, H); the equations of `torch.nn.GRU`.

    Args:
        inputs: Shape (T, B, d), the same for all networks, or (J, T, B, d).
        weight: From input to the gates (reset, update, new), shape (J, d, 3H).
        recurrent: From state to the gates, shape (J, H, 3H).
        bias: Of the gates; input and recurrent bias of the first two add up, shape (J, 3H).
        new: Recurrent bias of the new gate, which the reset gate multiplies, shape (J, H).
    """
    return shared.apply(_form(inputs, new.shape[1]), inputs, weight, recurrent, bias, new)


def _form(inputs: Tensor, size: int) -> type[torch.autograd.Function]:
    """What suits the device: on a GPU one kernel for all steps, or some a step where none can be.

    Args:
        inputs: Of the networks.
        size: Of their states.
    """
    if not inputs.is_cuda:
        return _Gru
    if size not in SIZES or torch.is_autocast_enabled("cuda") or not takes(inputs):
        return _FusedGru
    from etips.models.kernels.whole_gru import WholeGru  # noqa: PLC0415  # Triton may be absent

    return WholeGru


class _Gru(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Tensor) -> Tensor:  # noqa: ANN401  # torch's context
        inputs, weight, recurrent, bias, new = arguments
        size = new.shape[1]
        once = not any(ctx.needs_input_grad)
        gates = shared.empty(inputs, weight, 2 * size, once)  # reset and update
        candidates = shared.empty(inputs, weight, size, once)
        parts = shared.empty(inputs, weight, size, once)  # recurrent part of the new gate
        states = shared.empty(inputs, weight, size)
        for these in shared.blocks(states):
            _forward(
                shared.inputs_of(inputs, these),
                (weight[these], recurrent[these], bias[these, None], new[these, None]),
                (gates[:, these], candidates[:, these], parts[:, these], states[:, these]),
            )
        ctx.save_for_backward(inputs, weight, recurrent, gates, candidates, parts, states)
        return states.transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        _, weight, recurrent, *_ = ctx.saved_tensors
        return shared.go_back(ctx, grad, _backward, (weight.shape[::2], recurrent.shape[:2]))


def _forward(inputs: Tensor, parameters: tuple[Tensor, ...], kept: tuple[Tensor, ...]) -> None:
    """Fill what is kept of a block of networks: gates, candidates, recurrent parts, states."""
    weight, recurrent, bias, new = parameters
    size = new.shape[2]
    weight_two, weight_new = _split(weight, 2 * size)
    recurrent_two, recurrent_new = _split(recurrent, 2 * size)
    bias_two, bias_new = bias[..., : 2 * size], bias[..., 2 * size :]
    resets, updates = (part.unbind() for part in kept[0].chunk(2, dim=3))
    before: Tensor | None = None
    for now, reset, update, two, candidate, part, state in zip(
        inputs_each(inputs, len(weight)), resets, updates, *kept, strict=True
    ):
        torch.baddbmm(bias_two, now, weight_two, out=two)
        torch.baddbmm(bias_new, now, weight_new, out=candidate)
        if before is None:  # the state before the first step is zero
            part.copy_(new.expand_as(part))
        else:
            two.baddbmm_(before, recurrent_two)
            torch.baddbmm(new, before, recurrent_new, out=part)
        two.sigmoid_()
        shared.tanh_(candidate.addcmul_(reset, part))
        if before is None:
            torch.addcmul(candidate, candidate, update, value=-1, out=state)
        else:
            torch.lerp(candidate, before, update, out=state)
        before = state


def _backward(block: Block) -> None:
    """Add a block's gradients of weight, recurrent, bias and new."""
    gates, candidates, parts, states = block.kept
    _, d_recurrent, _, d_new = block.totals
    grads, back = block.grad.unbind(), block.recurrent.transpose(1, 2)
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
        shared.tanh_backward(
            torch.sub(d_state, carried, out=spare), candidate, grad_input=d_candidate
        )
        torch.mul(d_candidate, part, out=d_reset)
        d_two.mul_(torch.addcmul(two, two, two, value=-1, out=slope))
        block.add_step(step, d_gates)
        d_candidate.mul_(reset)  # now the gradient of its recurrent part
        d_new.add_(d_candidate.sum(1, dtype=d_new.dtype))
        if step:
            add_product(d_recurrent, turned[step - 1], d_gates)
            d_state = carried.baddbmm_(d_gates, back).add_(grads[step - 1])


class _FusedGru(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Tensor) -> Tensor:  # noqa: ANN401
        inputs, weight, recurrent, _, _ = arguments
        states, *kept = fused_gru_forward(*arguments)
        ctx.save_for_backward(inputs, weight, recurrent, *kept)
        return states.transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        inputs, weight, recurrent, states, *workspaces = ctx.saved_tensors
        d_inputs = torch.zeros_like(inputs) if ctx.needs_input_grad[0] else None
        gradients = fused_gru_backward(
            grad.transpose(0, 1), inputs, weight, recurrent, states, workspaces, d_inputs
        )
        return d_inputs, *gradients


def _split(values: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The first columns and the others, each contiguous."""
    return values[..., :width].contiguous(), values[..., width:].contiguous()
