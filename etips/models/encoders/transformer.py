"""A small causal transformer, to be used as any module: `encoder=CausalTransformer`."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from etips.errors import SettingError, require_whole

_LONGEST_WAVE = 1000.0
"""Positions are sines of wavelengths up to this many steps; stays are tens of steps long."""


class CausalTransformer(nn.Module):
    """Maps (batch, steps, features) to (batch, steps, hidden); a step attends to those before it.

    Layers are normalised before attention and before the two-layer network, as trains steadily
    without a warm-up.

    Args:
        n_features: Inputs a step.
        hidden: Width; even, and a multiple of `n_heads`.
        n_heads: Heads of the attention.
        n_layers: Layers.
    """

    def __init__(
        self, n_features: int, hidden: int = 64, n_heads: int = 4, n_layers: int = 2
    ) -> None:
        super().__init__()
        for name, value in (("hidden", hidden), ("n_heads", n_heads), ("n_layers", n_layers)):
            require_whole(name, value, least=1)
        if hidden % 2 or hidden % n_heads:
            raise SettingError("hidden", "must be even and a multiple of n_heads")
        self.hidden = hidden
        self.entry = nn.Linear(n_features, hidden)
        self.layers = nn.ModuleList([_Layer(hidden, n_heads) for _ in range(n_layers)])
        self.last = nn.LayerNorm(hidden)

    def forward(self, batch: Tensor) -> Tensor:
        """States after every step."""
        states = self.entry(batch) + _positions(batch, self.hidden)
        for layer in self.layers:
            states = layer(states)
        found: Tensor = self.last(states)
        return found


class _Layer(nn.Module):
    def __init__(self, hidden: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.before, self.between = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.ask, self.answer = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.wide, self.narrow = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, states: Tensor) -> Tensor:
        states = states + self.answer(self._attend(self.before(states)))
        found: Tensor = states + self.narrow(functional.gelu(self.wide(self.between(states))))
        return found

    def _attend(self, states: Tensor) -> Tensor:
        """What each step takes from itself and the steps before it."""
        heads = self.ask(states).unflatten(-1, (3, self.n_heads, -1)).transpose(1, 3)
        query, key, value = heads.unbind(2)  # each (batch, heads, steps, width)
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        share = scores.masked_fill(later, -torch.inf).softmax(-1)
        found: Tensor = share @ value
        return found.transpose(1, 2).flatten(2)


def _positions(batch: Tensor, hidden: int) -> Tensor:
    """Sines and cosines of the step's number, shape (steps, hidden)."""
    step = torch.arange(batch.shape[1], device=batch.device, dtype=batch.dtype)[:, None]
    power = torch.arange(0, hidden, 2, device=batch.device, dtype=batch.dtype) / hidden
    angle = step / _LONGEST_WAVE**power
    return torch.cat([angle.sin(), angle.cos()], dim=1)
