"""The network of the paper's Fig. 3: encoder, static features beside its state, linear head."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from etips.models.encoders import Encoder, Parameters


@dataclass(frozen=True)
class Network:
    """A shape of network; its parameters live in a bundle.

    Args:
        encoder: Reads the steps.
        n_features: Sequential inputs a step.
        n_static: Static inputs a stay.
        n_outputs: One output an action.
        additive: Give every action the same history term, so that the ranking of the actions cannot
            depend on the history. That is the paper's direct method, and of no other use.
    """

    encoder: Encoder
    n_features: int
    n_static: int
    n_outputs: int
    additive: bool = False

    def start(self, seeds: Sequence[int]) -> Parameters:
        """Fresh parameters, one network a seed."""
        encoder = self.encoder.start(self.n_features, seeds)
        width = self.encoder.size(self.n_features) + self.n_static
        columns = 1 if self.additive else self.n_outputs
        weights = []
        for seed in seeds:
            generator = torch.Generator().manual_seed(seed + 2**31)
            weights.append(torch.randn(width, columns, generator=generator) / math.sqrt(width))
        return {
            **{f"encoder.{name}": value for name, value in encoder.items()},
            "head.weight": torch.stack(weights),
            "head.bias": torch.zeros(len(seeds), self.n_outputs),
        }

    def outputs(
        self,
        parameters: Mapping[str, Tensor],
        inputs: Tensor,
        static: Tensor,
        *,
        slots: Tensor | None = None,
        keep: Tensor | None = None,
    ) -> Tensor:
        """Outputs after every step, shape (J, T * B, n_outputs), or at some slots only.

        Args:
            parameters: Of J networks.
            inputs: Steps of the stays, shape (T, B, n_features).
            static: Static features, shape (B, n_static).
            slots: Which of the T * B places to answer, shape (n,); all if left out.
            keep: Dropout mask of the state, already scaled, shape (n, hidden).
        """
        start = "encoder."
        own = {name[len(start) :]: v for name, v in parameters.items() if name.startswith(start)}
        states = self.encoder.states(own, inputs).flatten(1, 2)
        beside = static.expand(len(inputs), *static.shape).flatten(0, 1)
        if slots is not None:
            states, beside = states[:, slots], beside[slots]
        if keep is not None:
            states = states * keep
        weight, bias = parameters["head.weight"], parameters["head.bias"][:, None]
        width = states.shape[2]
        found = torch.bmm(states, weight[:, :width]) + bias
        if self.n_static:
            found = found + beside @ weight[:, width:]
        return found
