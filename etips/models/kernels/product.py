"""A matrix product that is rounded alike however many networks stand side by side.

On a CPU a product is rounded by where its matrices begin in memory, at a cache line or not. Of
arrays one after another that depends on how many come before. So here each begins at a line.
"""

from typing import Any

import torch
from torch import Tensor

LINE = 16
"""Numbers of a cache line at most."""


def product(left: Tensor, right: Tensor) -> Tensor:
    """Matrix product of every network, shape (J, n, m).

    Args:
        left: Shape (J, n, k), or (1, n, k) or (n, k) where all networks share it.
        right: Shape (J, k, m); what is picked of a parameter lies where it lies.
    """
    if left.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
        return left @ right
    each = left.expand(len(right), -1, -1)
    made: Tensor = _Product.apply(each, right)  # type: ignore[no-untyped-call]
    return made


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor) -> Tensor:  # noqa: ANN401  # torch's context
        ctx.save_for_backward(left, right)
        return _multiply(left, right)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:  # noqa: ANN401
        left, right = ctx.saved_tensors
        grad = _room(grad, grad.shape).copy_(grad)
        ask_left, ask_right = ctx.needs_input_grad
        return (
            _multiply(grad, right.transpose(1, 2)) if ask_left else None,
            _multiply(left.transpose(1, 2), grad) if ask_right else None,
        )


def _multiply(left: Tensor, right: Tensor) -> Tensor:
    n_networks, n_rows, _ = left.shape
    return torch.bmm(left, right, out=_room(left, (n_networks, n_rows, right.shape[2])))


def _room(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Room for numbers, shape (J, n, m), where each network's begin at a cache line."""
    n_networks, n_rows, width = shape
    apart = -(-n_rows * width // LINE) * LINE
    room = like.new_empty(n_networks, apart)
    return room[:, : n_rows * width].view(n_networks, n_rows, width)
