"""The GRU and Adam on a GPU, written in Triton; where it is absent torch does the same, slower.

A step of a small network is done in a microsecond; asking for it as several kernels takes ten. Here
a block of rows goes through all steps of the GRU by itself, its state and the recurrent weights at
hand. Products with the inputs need not wait for the state, and are done for all steps at once
outside, as are the gradients of the weights. Products with the state are of three products in TF32
each, which comes to float32. Adam is one kernel a parameter: as a dozen operations on each of eight
small parameters it took a GPU as long as the recurrence.
"""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS = 16
"""Of the batch in a block: the fewest that a tensor core takes, so that there are most blocks."""

PARTS = 8
"""Most parts of a sum over steps that are added up apart."""


class WholeGru(torch.autograd.Function):
    """States of a GRU after every step, and the way back; arguments as in `recurrences.gru`."""

    @staticmethod
    def forward(ctx: Any, *arguments: Tensor) -> Tensor:
        """States, shape (J, T, B, H)."""
        inputs, weight, recurrent, bias, new = arguments
        n_networks, (n_steps, n_batch) = len(weight), inputs.shape[-3:-1]
        products = torch.baddbmm(bias[:, None], _rows(inputs, n_networks), weight)
        products = products.view(n_networks, n_steps, n_batch, -1)
        kept = None
        if any(ctx.needs_input_grad):
            kept = products.new_empty(n_networks, n_steps, n_batch, 4 * new.shape[1])
        states = whole_forward(products, recurrent, new, kept)
        ctx.save_for_backward(inputs, weight, recurrent, states, kept)
        return states[:, 1:]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of all arguments."""
        inputs, weight, recurrent, states, kept = ctx.saved_tensors
        size = recurrent.shape[1]
        gates, totals = whole_backward(grad.contiguous(), recurrent, states, kept)
        each = inputs.expand(len(weight), *inputs.shape[-3:])
        d_weight = _sum_of_products(each, gates[..., : 3 * size]).roll(-size, 2)
        d_recurrent = _sum_of_products(states[:, :-1], gates[..., size:])
        d_inputs = None
        if ctx.needs_input_grad[0]:
            back = weight.roll(size, 2).transpose(1, 2)  # new, reset, update, as the gates
            d_inputs = torch.bmm(gates.flatten(1, 2)[..., : 3 * size], back).view(each.shape)
            d_inputs = d_inputs.sum(0) if inputs.dim() == 3 else d_inputs
        d_bias = totals.sum(1)
        d_gates = d_bias[:, : 3 * size].roll(-size, 1)
        return d_inputs, d_weight, d_recurrent, d_gates, d_bias[:, 3 * size :]


def _rows(inputs: Tensor, n_networks: int) -> Tensor:
    """Inputs of all steps and stays for every network, shape (J, T * B, d)."""
    return inputs.flatten(-3, -2).expand(n_networks, -1, -1)


def _sum_of_products(left: Tensor, right: Tensor) -> Tensor:
    """The sum over steps and stays of left (J, T, B, d) times right (J, T, B, e), (J, d, e).

    A few parts of the steps are summed apart: one long sum has too few places to fill a GPU.
    """
    n_networks, n_steps, n_batch, width = left.shape
    n_parts = next(n for n in range(min(n_steps, PARTS), 0, -1) if n_steps % n == 0)
    each = (n_networks, n_parts, n_steps // n_parts * n_batch)
    first, second = (part.reshape(*each, -1).flatten(0, 1) for part in (left, right))
    products = torch.bmm(first.transpose(1, 2), second)
    return products.view(n_networks, n_parts, width, -1).sum(1)


def whole_forward(products: Tensor, recurrent: Tensor, new: Tensor, kept: Tensor | None) -> Tensor:
    """States, zeros before the first step among them, shape (J, T + 1, B, H).

    Args:
        products: Of inputs and weights, with the bias, shape (J, T, B, 3H); contiguous.
        recurrent: Shape (J, H, 3H).
        new: Shape (J, H).
        kept: Filled for the way back: reset, update, candidate and the recurrent part of the
            latter, shape (J, T, B, 4H); None without a way back.
    """
    n_networks, n_steps, n_batch, _ = products.shape
    size = new.shape[1]
    states = products.new_empty(n_networks, n_steps + 1, n_batch, size)
    states[:, 0] = 0
    _gru_forward[n_networks, triton.cdiv(n_batch, ROWS)](
        products,
        recurrent.contiguous(),
        new.contiguous(),
        states,
        products if kept is None else kept,
        n_steps,
        n_batch,
        SIZE=size,
        ROWS=ROWS,
        KEEP=kept is not None,
    )
    return states


def whole_backward(
    grad: Tensor, recurrent: Tensor, states: Tensor, kept: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of the gates, shape (J, T, B, 4H), and what they sum to in each block of rows.

    They come in the order new, reset, update, recurrent part of new: the first three are those of
    the products with the inputs, the last three those of the products with the state. The sums have
    shape (J, blocks, 4H).

    Args:
        grad: Of the states but for the zeros, shape (J, T, B, H); contiguous.
        recurrent: As in the forward pass.
        states: As it returned them.
        kept: As it filled it.
    """
    n_networks, n_steps, n_batch, size = grad.shape
    n_blocks = triton.cdiv(n_batch, ROWS)
    gates = grad.new_empty(n_networks, n_steps, n_batch, 4 * size)
    totals = grad.new_empty(n_networks, n_blocks, 4 * size)
    _gru_backward[n_networks, n_blocks](
        grad,
        recurrent.contiguous(),
        states,
        kept,
        gates,
        totals,
        n_steps,
        n_batch,
        SIZE=size,
        ROWS=ROWS,
    )
    return gates, totals


@triton.jit(do_not_specialize=["n_steps", "n_batch"])  # type: ignore[untyped-decorator]
def _gru_forward(  # type: ignore[no-untyped-def]  # pointers, as Triton has them
    products,
    recurrent,
    new,
    states,
    kept,
    n_steps,
    n_batch,
    SIZE: tl.constexpr,
    ROWS: tl.constexpr,
    KEEP: tl.constexpr,
):
    network = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    unit = tl.arange(0, SIZE)[None, :]
    real = (rows < n_batch)[:, None]
    weights = recurrent + network * 3 * SIZE * SIZE + tl.arange(0, SIZE)[:, None] * 3 * SIZE + unit
    to_reset, to_update = tl.load(weights), tl.load(weights + SIZE)
    to_new = tl.load(weights + 2 * SIZE)
    beside = tl.load(new + network * SIZE + unit)
    before = tl.zeros((ROWS, SIZE), tl.float32)
    row = (network * n_steps * n_batch + rows)[:, None]
    place = ((network * (n_steps + 1) + 1) * n_batch + rows)[:, None]
    for _ in range(n_steps):
        product = products + row * 3 * SIZE + unit
        reset = tl.load(product, mask=real, other=0.0)
        update = tl.load(product + SIZE, mask=real, other=0.0)
        candidate = tl.load(product + 2 * SIZE, mask=real, other=0.0)
        reset = tl.sigmoid(reset + tl.dot(before, to_reset, input_precision="tf32x3"))
        update = tl.sigmoid(update + tl.dot(before, to_update, input_precision="tf32x3"))
        part = beside + tl.dot(before, to_new, input_precision="tf32x3")
        candidate = 2 * tl.sigmoid(2 * (candidate + reset * part)) - 1
        before = candidate + update * (before - candidate)
        tl.store(states + place * SIZE + unit, before, mask=real)
        if KEEP:
            own = kept + row * 4 * SIZE + unit
            tl.store(own, reset, mask=real)
            tl.store(own + SIZE, update, mask=real)
            tl.store(own + 2 * SIZE, candidate, mask=real)
            tl.store(own + 3 * SIZE, part, mask=real)
        row += n_batch
        place += n_batch


@triton.jit(do_not_specialize=["n_steps", "n_batch"])  # type: ignore[untyped-decorator]
def _gru_backward(  # type: ignore[no-untyped-def]
    grad,
    recurrent,
    states,
    kept,
    gates,
    totals,
    n_steps,
    n_batch,
    SIZE: tl.constexpr,
    ROWS: tl.constexpr,
):
    network = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    unit = tl.arange(0, SIZE)[None, :]
    real = (rows < n_batch)[:, None]
    weights = recurrent + network * 3 * SIZE * SIZE + tl.arange(0, SIZE)[:, None]
    weights += unit * 3 * SIZE  # turned round: gates by state
    from_reset, from_update = tl.load(weights), tl.load(weights + SIZE)
    from_new = tl.load(weights + 2 * SIZE)
    carried = tl.zeros((ROWS, SIZE), tl.float32)
    all_new, all_reset, all_update, all_part = carried, carried, carried, carried
    row = ((network * n_steps + n_steps - 1) * n_batch + rows)[:, None]
    place = ((network * (n_steps + 1) + n_steps - 1) * n_batch + rows)[:, None]
    for _ in range(n_steps):
        own = kept + row * 4 * SIZE + unit
        reset, update = tl.load(own, real, 0.0), tl.load(own + SIZE, real, 0.0)
        candidate, part = tl.load(own + 2 * SIZE, real, 0.0), tl.load(own + 3 * SIZE, real, 0.0)
        before = tl.load(states + place * SIZE + unit, real, 0.0)
        d_state = carried + tl.load(grad + row * SIZE + unit, real, 0.0)
        d_update = d_state * (before - candidate) * update * (1 - update)
        d_new = d_state * (1 - update) * (1 - candidate * candidate)
        d_reset = d_new * part * reset * (1 - reset)
        d_part = d_new * reset
        carried = d_state * update
        carried += tl.dot(d_reset, from_reset, input_precision="tf32x3")
        carried += tl.dot(d_update, from_update, input_precision="tf32x3")
        carried += tl.dot(d_part, from_new, input_precision="tf32x3")
        to = gates + row * 4 * SIZE + unit
        each = (d_new, d_reset, d_update, d_part)
        for number in tl.static_range(4):
            tl.store(to + number * SIZE, each[number], mask=real)
        all_new, all_reset = all_new + d_new, all_reset + d_reset
        all_update, all_part = all_update + d_update, all_part + d_part
        row, place = row - n_batch, place - n_batch
    to = totals + (network * tl.num_programs(1) + tl.program_id(1)) * 4 * SIZE + tl.arange(0, SIZE)
    each = (all_new, all_reset, all_update, all_part)
    for number in tl.static_range(4):
        tl.store(to + number * SIZE, tl.sum(each[number], 0))


BLOCK = 1024
"""Numbers of one network that are moved together."""


class Adam(NamedTuple):
    """What of the running mean and of the running square a step keeps, and the least spread."""

    first: float = 0.9
    second: float = 0.999
    least: float = 1e-8


def adam_step(
    value: Tensor,
    gradient: Tensor,
    first: Tensor,
    second: Tensor,
    each: Tensor,
    every: Tensor,
    usual: Adam,
    *,
    decays: bool,
) -> None:
    """Move a parameter of J networks, and Adam's two moments of it, in place; all in float32.

    Args:
        value: The parameter, shape (J, ...); contiguous, as the moments.
        gradient: Alike.
        first: Running mean of the gradient.
        second: Running mean of its square.
        each: What the gradient of each network is multiplied by, its learning rate, and what decay
            leaves of its weights, shape (3, J); contiguous.
        every: What the running mean and the running square are divided by, shape (2,).
        usual: Numbers that stay the same.
        decays: Whether the parameter decays.
    """
    n_networks = len(value)
    size = value.numel() // n_networks
    _adam[n_networks, triton.cdiv(size, BLOCK)](
        value,
        gradient.contiguous(),
        first,
        second,
        each,
        every,
        n_networks,
        size,
        FIRST=usual.first,
        SECOND=usual.second,
        LEAST=usual.least,
        DECAYS=decays,
        BLOCK=BLOCK,
    )


def try_out() -> None:
    """Compile it and move one number, so that what cannot be compiled shows."""
    one = torch.zeros(1, 1, device="cuda")
    each, every = torch.ones(3, 1, device="cuda"), torch.ones(2, device="cuda")
    adam_step(one, one.clone(), one.clone(), one.clone(), each, every, Adam(), decays=True)


@triton.jit(do_not_specialize=["n_networks", "size"])  # type: ignore[untyped-decorator]
def _adam(  # type: ignore[no-untyped-def]
    value,
    gradient,
    first,
    second,
    each,
    every,
    n_networks,
    size,
    FIRST: tl.constexpr,
    SECOND: tl.constexpr,
    LEAST: tl.constexpr,
    DECAYS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    network = tl.program_id(0).to(tl.int64)
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    real = place < size
    place += network * size
    shrink, rate = tl.load(each + network), tl.load(each + n_networks + network)
    slope = tl.load(gradient + place, real, 0.0) * shrink
    mean, square = tl.load(first + place, real, 0.0), tl.load(second + place, real, 0.0)
    mean += (slope - mean) * (1 - FIRST)
    square = square * SECOND + slope * slope * (1 - SECOND)
    tl.store(first + place, mean, mask=real)
    tl.store(second + place, square, mask=real)
    now = tl.load(value + place, real, 0.0)
    if DECAYS:
        now *= tl.load(each + 2 * n_networks + network)
    spread = tl.sqrt(square / tl.load(every + 1)) + LEAST
    now -= mean * (rate / tl.load(every)) / spread
    tl.store(value + place, now, mask=real)
