"""RETAIN: attention over the past, written so that every feature's share can be read off."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import torch
from torch import Tensor

from etips.errors import require_whole
from etips.models.encoders.encoder import Parameters, Shapes, read_sizes
from etips.models.recurrences import gru

_PARTS = 4  # of the ends of a stay: early ones are not read as long as the last


class Attention(NamedTuple):
    """How much of each step goes into a state; steps count backwards from the newest, 0.

    Args:
        embedded: The steps, shape (J, T, N, hidden).
        visit: Share of each step, shape (J, T, N); they sum to one over the steps there are.
        variable: Of each unit of a step, shape (J, T, N, hidden).
    """

    embedded: Tensor
    visit: Tensor
    variable: Tensor

    @property
    def states(self) -> Tensor:
        """What is understood, shape (J, N, hidden)."""
        return (self.visit[..., None] * self.variable * self.embedded).sum(1)


@dataclass(frozen=True)
class RETAIN:
    """Reverse time attention (Choi et al. 2016).

    A step is a linear embedding. Two GRUs read the steps backwards from the newest, one to say how
    much each step counts, one how much each unit of it; the state is the sum of the embeddings so
    weighted. All that lies between a feature and an output is then a product, which
    `etips.policies.attention` reads off. Since the GRUs begin anew at every step, the cost grows
    with the square of a stay's length.

    Args:
        hidden: Width of the embedding, of both GRUs, and so of the state.
    """

    hidden: int = 64

    name: ClassVar[str] = "retain"

    def __post_init__(self) -> None:
        require_whole("hidden", self.hidden, least=1)

    def start(self, n_features: int, seeds: Sequence[int]) -> Parameters:
        """Uniform within 1/sqrt(inputs of a unit), as the layers of `torch.nn` start."""
        parts: dict[str, list[Tensor]] = {name: [] for name, _ in self.shapes(n_features)}
        for seed in seeds:
            generator = torch.Generator().manual_seed(seed)
            for name, shape in self.shapes(n_features):
                inputs = max(n_features, 1) if name == "embed" else self.hidden
                bound = 1 / math.sqrt(inputs)
                parts[name].append((torch.rand(shape, generator=generator) * 2 - 1) * bound)
        return {name: torch.stack(each) for name, each in parts.items()}

    def states(self, parameters: Mapping[str, Tensor], inputs: Tensor) -> Tensor:
        """States after every step."""
        size = -(-len(inputs) // _PARTS)
        firsts = range(0, len(inputs), size)
        parts = [self._ending(parameters, inputs[: first + size], first) for first in firsts]
        return torch.cat(parts, dim=1)

    def _ending(self, parameters: Mapping[str, Tensor], inputs: Tensor, first: int) -> Tensor:
        """States after the steps from `first` on; those before are read, and have none."""
        n_steps, n_batch = inputs.shape[:2]
        step = torch.arange(n_steps, device=inputs.device)
        back = step[None, first:] - step[:, None]  # (steps back, end): which step that is
        there = (back >= 0)[:, :, None].expand(-1, -1, n_batch).flatten(1)
        windows = inputs[back.clamp_min(0)].flatten(1, 2)  # (T, ends * B, d), newest first
        states = self.attend(parameters, windows, there).states
        return states.view(len(states), n_steps - first, n_batch, -1)

    def attend(self, parameters: Mapping[str, Tensor], windows: Tensor, there: Tensor) -> Attention:
        """How much of each step goes into the state after the newest.

        Args:
            parameters: Of J networks.
            windows: Steps from the newest backwards, shape (T, N, n_features).
            there: Which of them there are, shape (T, N).
        """
        p = parameters
        flat = windows.flatten(0, 1).expand(len(p["embed"]), -1, -1)
        embedded = (flat @ p["embed"]).view(len(p["embed"]), *windows.shape[:2], -1)
        embedded = embedded * there[..., None].to(embedded.dtype)
        by_visit, by_unit = (
            gru(embedded, *(p[f"{part}.{name}"] for name in ("weight", "recurrent", "bias", "new")))
            for part in ("visit", "variable")
        )
        score = torch.einsum("jtnh,jh->jtn", by_visit, p["visit.score"])
        share = score.masked_fill(~there, -torch.inf).softmax(1)
        unit = torch.einsum("jtnh,jhm->jtnm", by_unit, p["variable.score"])
        return Attention(embedded, share, (unit + p["variable.shift"][:, None, None]).tanh())

    def size(self, n_features: int) -> int:  # noqa: ARG002  # the interface
        """Width of the state."""
        return self.hidden

    def shapes(self, n_features: int) -> Shapes:
        """Shape of every parameter."""
        width = self.hidden
        yield "embed", (n_features, width)
        for part in ("visit", "variable"):
            yield f"{part}.weight", (width, 3 * width)
            yield f"{part}.recurrent", (width, 3 * width)
            yield f"{part}.bias", (3 * width,)
            yield f"{part}.new", (width,)
        yield "visit.score", (width,)
        yield "variable.score", (width, width)
        yield "variable.shift", (width,)

    def to_json(self) -> dict[str, object]:
        """Its name and its width."""
        return {"name": self.name, "hidden": self.hidden}

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> Self:
        """The encoder that `to_json` described."""
        return cls(**read_sizes(document, ("hidden",)))
