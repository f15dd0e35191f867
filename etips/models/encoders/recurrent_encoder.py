"""What the recurrent encoders share: their widths, how they start, units that read steps first."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from etips.errors import require_whole
from etips.models.encoders.encoder import Parameters, Shapes, read_sizes

_EMBED = "embed."
_OTHER_SEEDS = 2**33  # added to a seed, it keeps the embedding's numbers apart from the rest


@dataclass(frozen=True)
class RecurrentEncoder:
    """A recurrent layer.

    Args:
        hidden: Width of the state.
        embed: Rectified units that read each step first; 0 reads the features themselves. Wide
            steps, such as images, are learned better and faster through some.
    """

    hidden: int = 64
    embed: int = 0

    name: ClassVar[str]
    n_gates: ClassVar[int]

    def __post_init__(self) -> None:
        require_whole("hidden", self.hidden, least=1)
        require_whole("embed", self.embed, least=0)

    def start(self, n_features: int, seeds: Sequence[int]) -> Parameters:
        """Uniform within 1/sqrt(inputs of a unit), as the layers of `torch.nn` start."""
        shapes = dict(self.shapes(n_features))
        embedding = {name: s for name, s in shapes.items() if name.startswith(_EMBED)}
        layer = {name: s for name, s in shapes.items() if name not in embedding}
        others = [seed + _OTHER_SEEDS for seed in seeds]
        return {
            **_uniform(embedding, 1 / math.sqrt(max(n_features, 1)), others),
            **_uniform(layer, 1 / math.sqrt(self.hidden), seeds),
        }

    def size(self, n_features: int) -> int:  # noqa: ARG002  # the interface
        """Width of the state."""
        return self.hidden

    def shapes(self, n_features: int) -> Shapes:
        """Shape of every parameter."""
        if self.embed:
            yield f"{_EMBED}weight", (n_features, self.embed)
            yield f"{_EMBED}bias", (self.embed,)
        yield "weight", (self.embed or n_features, self.n_gates * self.hidden)
        yield "recurrent", (self.hidden, self.n_gates * self.hidden)
        yield "bias", (self.n_gates * self.hidden,)

    def to_json(self) -> dict[str, object]:
        """Its name and its widths."""
        return {"name": self.name, "hidden": self.hidden, "embed": self.embed}

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> Self:
        """The encoder that `to_json` described."""
        return cls(**read_sizes(document, ("hidden", "embed")))


def embedded(parameters: Mapping[str, Tensor], inputs: Tensor) -> Tensor:
    """Inputs (T, B, d) as the first units see them, shape (J, T, B, embed); as they are if none."""
    if f"{_EMBED}weight" not in parameters:
        return inputs
    weight, bias = parameters[f"{_EMBED}weight"], parameters[f"{_EMBED}bias"][:, None]
    flat = inputs.flatten(0, 1).expand(len(weight), -1, -1)
    units = torch.baddbmm(bias, flat, weight).relu()
    return units.view(len(weight), *inputs.shape[:2], -1)


def _uniform(
    shapes: Mapping[str, tuple[int, ...]], bound: float, seeds: Sequence[int]
) -> Parameters:
    """Parameters uniform in +-bound; every network draws from its own generator."""
    each = []
    for seed in seeds:
        generator = torch.Generator().manual_seed(seed)
        each.append(
            {
                name: (torch.rand(shape, generator=generator) * 2 - 1) * bound
                for name, shape in shapes.items()
            }
        )
    return {name: torch.stack([one[name] for one in each]) for name in shapes}
