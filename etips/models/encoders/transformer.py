"""A small causal transformer."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from etips.errors import SettingError, require_whole
from etips.models.encoders.encoder import Parameters, Shapes, read_sizes
from etips.models.encoders.module import ModuleEncoder

LONGEST_WAVE = 1000.0
"""Positions are sines of wavelengths up to this many steps; stays are tens of steps long."""


@dataclass(frozen=True)
class CausalTransformer:
    """A small causal transformer: a step attends to those before it.

    Layers are normalised before attention and before the two-layer network, as trains steadily
    without a warm-up.

    Args:
        hidden: Width; even, and a multiple of `n_heads`.
        n_heads: Heads of the attention.
        n_layers: Layers.
    """

    hidden: int = 64
    n_heads: int = 4
    n_layers: int = 2

    name: ClassVar[str] = "transformer"

    def __post_init__(self) -> None:
        for name in ("hidden", "n_heads", "n_layers"):
            require_whole(name, getattr(self, name), least=1)
        if self.hidden % 2 or self.hidden % self.n_heads:
            raise SettingError("hidden", "must be even and a multiple of n_heads")

    def module(self, n_features: int) -> nn.Module:
        """One network, which maps (batch, steps, features) to (batch, steps, hidden)."""
        return _Transformer(n_features, self.hidden, self.n_heads, self.n_layers)

    def start(self, n_features: int, seeds: Sequence[int]) -> Parameters:
        """As the layers of torch start."""
        return self._networks.start(n_features, seeds)

    def states(self, parameters: Mapping[str, Tensor], inputs: Tensor) -> Tensor:
        """States after every step."""
        return self._networks.states(parameters, inputs)

    def size(self, n_features: int) -> int:  # noqa: ARG002  # the interface
        """Width of the state."""
        return self.hidden

    def shapes(self, n_features: int) -> Shapes:
        """Shape of every parameter."""
        wide, narrow = (4 * self.hidden, self.hidden), (self.hidden, 4 * self.hidden)
        yield from _linear("entry", (self.hidden, n_features))
        for layer in range(self.n_layers):
            inside = f"layers.{layer}"
            yield from _normalised(f"{inside}.before", self.hidden)
            yield from _normalised(f"{inside}.between", self.hidden)
            yield from _linear(f"{inside}.ask", (3 * self.hidden, self.hidden))
            yield from _linear(f"{inside}.answer", (self.hidden, self.hidden))
            yield from _linear(f"{inside}.wide", wide)
            yield from _linear(f"{inside}.narrow", narrow)
        yield from _normalised("last", self.hidden)

    def to_json(self) -> dict[str, object]:
        """Its name and its sizes."""
        sizes = {"hidden": self.hidden, "n_heads": self.n_heads, "n_layers": self.n_layers}
        return {"name": self.name, **sizes}

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> Self:
        """The encoder that `to_json` described."""
        return cls(**read_sizes(document, ("hidden", "n_heads", "n_layers")))

    @cached_property
    def _networks(self) -> ModuleEncoder:
        return ModuleEncoder(self.module)


def _linear(name: str, shape: tuple[int, int]) -> Shapes:
    yield f"{name}.weight", shape
    yield f"{name}.bias", shape[:1]


def _normalised(name: str, width: int) -> Shapes:
    yield f"{name}.weight", (width,)
    yield f"{name}.bias", (width,)


class _Transformer(nn.Module):
    def __init__(self, n_features: int, hidden: int, n_heads: int, n_layers: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.entry = nn.Linear(n_features, hidden) if n_features else _no_entry(hidden)
        self.layers = nn.ModuleList([_Layer(hidden, n_heads) for _ in range(n_layers)])
        self.last = nn.LayerNorm(hidden)

    def forward(self, batch: Tensor) -> Tensor:
        """States after every step."""
        states = self.entry(batch) + _positions(batch, self.hidden)
        for layer in self.layers:
            states = layer(states)
        normalised: Tensor = self.last(states)
        return normalised


def _no_entry(hidden: int) -> nn.Module:
    """The layer of stays without sequential features; torch warns of starting weights of none."""
    layer = nn.Linear(1, hidden)
    layer.weight = nn.Parameter(layer.weight[:, :0].detach().clone())
    layer.in_features = 0
    return layer


class _Layer(nn.Module):
    def __init__(self, hidden: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.before, self.between = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.ask, self.answer = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.wide, self.narrow = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, states: Tensor) -> Tensor:
        states = states + self.answer(self._attend(self.before(states)))
        after: Tensor = states + self.narrow(functional.gelu(self.wide(self.between(states))))
        return after

    def _attend(self, states: Tensor) -> Tensor:
        """What each step takes from itself and the steps before it."""
        heads = self.ask(states).unflatten(-1, (3, self.n_heads, -1)).transpose(1, 3)
        query, key, value = heads.unbind(2)  # each (batch, heads, steps, width)
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        share = scores.masked_fill(later, -torch.inf).softmax(-1)
        taken: Tensor = share @ value
        return taken.transpose(1, 2).flatten(2)


def _positions(batch: Tensor, hidden: int) -> Tensor:
    """Sines and cosines of the step's number, shape (steps, hidden)."""
    step = torch.arange(batch.shape[1], device=batch.device, dtype=batch.dtype)[:, None]
    power = torch.arange(0, hidden, 2, device=batch.device, dtype=batch.dtype) / hidden
    angle = step / LONGEST_WAVE**power
    return torch.cat([angle.sin(), angle.cos()], dim=1)
