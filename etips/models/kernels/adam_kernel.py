"""A step of Adam for many networks on a GPU, one kernel a parameter, written in Triton.

As a dozen operations on each of eight small parameters it took a GPU as long as the recurrence.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

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
