"""What is hidden while a network learns, so that it does not come to rely on it."""

from typing import NamedTuple

import torch
from torch import Tensor

INPUTS = 0x51ED27
"""Added to the key of a learning step, it keeps the inputs' mask apart from the states'."""


class Masks(NamedTuple):
    """What is hidden while learning, None for nothing.

    Args:
        state: Of the states where a decision is asked, shape (n, hidden).
        inputs: Of the features, shape (T * B, n_features).
    """

    state: Tensor | None = None
    inputs: Tensor | None = None


def hide(rows: Tensor, width: int, key: Tensor, share: float) -> Tensor | None:
    """Zeros and scaled ones, shape (n_rows, width), a hash of learning step, row and unit.

    It is the same for all networks, so that none depends on its neighbours; and it depends on
    nothing else, so that a batch may be laid out in any way.
    """
    if share == 0:
        return None
    unit = mix(torch.arange(width, dtype=torch.int32, device=key.device))
    row = mix(rows ^ mix(key))
    hidden = (mix(row[:, None] ^ unit) & 0xFFFFFF) < int(share * 2**24)
    return hidden.logical_not().to(torch.float32).div_(1 - share)


def mix(values: Tensor) -> Tensor:
    """Scatter 32-bit whole numbers, by the finaliser of MurmurHash3."""
    values = values.bitwise_xor(values >> 16).mul_(-2048144789)
    values = values.bitwise_xor_(values >> 13).mul_(-1028477387)
    return values.bitwise_xor_(values >> 16)
