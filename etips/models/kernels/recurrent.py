"""What the recurrences for many networks share: parameters carry a leading axis, one a network.

Each recurrence is one autograd function with its backward pass written out. Everything that belongs
to a step (input part, state part, gates, gradients of the weights) is done while that step is in
the cache: on one core its matrix products run at nearly the machine's rate, twice that of products
over all steps at once. Steps are stored as (T, J, B, width), so that a step is contiguous; what
comes out is a view of shape (networks J, steps T, batch B, width).
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, starmap
from typing import Any, NamedTuple

import torch
from torch import Tensor

tanh_backward = torch.ops.aten.tanh_backward.grad_input

_BLOCK = 2**19
"""Numbers a step may hold in one array, so that its dozen arrays stay near the core: J * B * H."""


class Block(NamedTuple):
    """Networks that go back through the steps together.

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
        now = inputs_at(self.inputs, step, len(self.weight))
        add_product(d_weight, now.transpose(1, 2), d_gates)
        d_bias.add_(d_gates.sum(1, dtype=d_bias.dtype))
        if self.d_inputs is None:
            return
        back = self.weight.transpose(1, 2)
        if self.d_inputs.dim() == 3:
            self.d_inputs[step].add_(torch.bmm(d_gates, back).sum(0))
        else:
            torch.bmm(d_gates, back, out=self.d_inputs[:, step])


def apply(form: type[torch.autograd.Function], *arguments: Tensor) -> Tensor:
    """States by a recurrence; under autocast all of it, states too, is in its precision."""
    kind = arguments[0].device.type
    if not torch.is_autocast_enabled(kind):
        plain: Tensor = form.apply(*arguments)  # type: ignore[no-untyped-call]
        return plain
    rounded = [value.to(torch.get_autocast_dtype(kind)) for value in arguments]
    with torch.autocast(kind, enabled=False):
        states: Tensor = form.apply(*rounded)  # type: ignore[no-untyped-call]
    return states


def go_back(
    ctx: Any,  # noqa: ANN401  # torch's context
    grad: Tensor,
    backward: Callable[[Block], None],
    shapes: Sequence[Sequence[int]],
) -> tuple[Tensor | None, ...]:
    """Gradients of the inputs and of all parameters, block by block.

    Args:
        ctx: Holds inputs, weight, recurrent, and what the forward pass kept.
        grad: Of the states, shape (J, T, B, H).
        backward: Adds a block's gradients.
        shapes: Of the parameters that come after weight and recurrent.
    """
    inputs, weight, recurrent, *kept = ctx.saved_tensors
    totals = [sums(weight, shape) for shape in (weight.shape, recurrent.shape, *shapes)]
    d_inputs = None
    if ctx.needs_input_grad[0]:
        d_inputs = torch.zeros_like(inputs) if inputs.dim() == 3 else torch.empty_like(inputs)
    for these in blocks(kept[-1]):
        backward(
            Block(
                grad[these].transpose(0, 1),
                inputs_of(inputs, these),
                weight[these],
                recurrent[these],
                tuple(array[:, these] for array in kept),
                tuple(total[these] for total in totals),
                None if d_inputs is None else inputs_of(d_inputs, these),
            )
        )
    return d_inputs, *totals


def empty(inputs: Tensor, weight: Tensor, width: int, once: bool = False) -> Tensor:
    """Room for every step, shape (T, J, B, width); all steps in one place if `once`."""
    n_steps, n_batch = inputs.shape[-3:-1]
    room = weight.new_empty(1 if once else n_steps, len(weight), n_batch, width)
    return room.expand(n_steps, -1, -1, -1)


def blocks(states: Tensor) -> Iterator[slice]:
    """Networks that run together; on the GPU all of them do."""
    n_networks = states.shape[1]
    n_blocks = 1 if states.is_cuda else min(-(-states[0].numel() // _BLOCK), n_networks)
    edges = [n_networks * number // n_blocks for number in range(n_blocks + 1)]
    return starmap(slice, pairwise(edges))


def inputs_of(inputs: Tensor, these: slice) -> Tensor:
    """Inputs of some networks."""
    return inputs if inputs.dim() == 3 else inputs[these]


def inputs_at(inputs: Tensor, step: int, n_networks: int) -> Tensor:
    """Inputs of one step, shape (J, B, d); shared inputs are not copied."""
    return inputs[step].expand(n_networks, -1, -1) if inputs.dim() == 3 else inputs[:, step]


def inputs_each(inputs: Tensor, n_networks: int) -> tuple[Tensor, ...]:
    """Inputs of every step; see `inputs_at`."""
    every = inputs.expand(n_networks, -1, -1, -1) if inputs.dim() == 3 else inputs
    return every.unbind(1)


def tanh_(values: Tensor) -> Tensor:
    """Hyperbolic tangent in place, by the sigmoid: torch's own is seven times as slow on a CPU."""
    return values.mul_(2).sigmoid_().mul_(2).sub_(1)


def sums(like: Tensor, shape: Sequence[int]) -> Tensor:
    """Zeros to add gradients up in: in float32 at least, however little precision they have."""
    kind = torch.promote_types(like.dtype, torch.float32)
    return torch.zeros(tuple(shape), dtype=kind, device=like.device)


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add the matrix product to the total, which may have more precision."""
    if total.dtype == left.dtype:
        total.baddbmm_(left, right)
    else:
        total.add_(torch.bmm(left, right))
