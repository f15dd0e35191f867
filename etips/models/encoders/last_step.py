"""No memory at all: rectified units that read the last visible step."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from etips.errors import require_whole
from etips.models.encoders.encoder import Parameters, Shapes, read_sizes


@dataclass(frozen=True)
class LastStep:
    """Rectified units on the step itself; what came before is not seen.

    For data without a past: one row a patient.

    Args:
        hidden: How many units.
    """

    hidden: int = 32

    name: ClassVar[str] = "last"

    def __post_init__(self) -> None:
        require_whole("hidden", self.hidden, least=1)

    def start(self, n_features: int, seeds: Sequence[int]) -> Parameters:
        """Uniform within 1/sqrt(features), as the layers of `torch.nn` start."""
        bound = 1 / math.sqrt(max(n_features, 1))
        parts: dict[str, list[Tensor]] = {name: [] for name, _ in self.shapes(n_features)}
        for seed in seeds:
            generator = torch.Generator().manual_seed(seed)
            for name, shape in self.shapes(n_features):
                parts[name].append((torch.rand(shape, generator=generator) * 2 - 1) * bound)
        return {name: torch.stack(each) for name, each in parts.items()}

    def states(self, parameters: Mapping[str, Tensor], inputs: Tensor) -> Tensor:
        """States after every step."""
        weight, bias = parameters["weight"], parameters["bias"][:, None]
        flat = inputs.flatten(0, 1).expand(len(weight), -1, -1)
        units = torch.baddbmm(bias, flat, weight).relu()
        return units.view(len(weight), *inputs.shape[:2], -1)

    def size(self, n_features: int) -> int:  # noqa: ARG002  # the interface
        """Width of the state."""
        return self.hidden

    def shapes(self, n_features: int) -> Shapes:
        """Shape of every parameter."""
        yield "weight", (n_features, self.hidden)
        yield "bias", (self.hidden,)

    def to_json(self) -> dict[str, object]:
        """Its name and its width."""
        return {"name": self.name, "hidden": self.hidden}

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> Self:
        """The encoder that `to_json` described."""
        return cls(**read_sizes(document, ("hidden",)))
