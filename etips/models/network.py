"""The network of the paper's Fig. 3: encoder, static features beside its state, linear head."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
            keep: Dropout mask of the state, already scaled, shape (T * B, hidden).
        """
        start = "encoder."
        own = {name[len(start) :]: v for name, v in parameters.items() if name.startswith(start)}
        states = self.encoder.states(own, inputs).transpose(0, 1)  # (T, J, B, hidden)
        width = states.shape[3]
        if keep is not None:
            states = states * keep.view(len(inputs), 1, -1, width).to(states.dtype)
        weight, beside = parameters["head.weight"], parameters["head.bias"][:, None]
        if self.n_static:
            beside = beside + static @ weight[:, width:]
        found = (states @ weight[:, :width] + beside).transpose(0, 1)
        return found.flatten(1, 2) if slots is None else _pick(found, slots)


def _pick(values: Tensor, slots: Tensor) -> Tensor:
    """Values (J, T, B, K) at places t * B + b, each named once, shape (J, n, K)."""
    found: Tensor = _Pick.apply(values, slots // values.shape[2], slots % values.shape[2])  # type: ignore[no-untyped-call]
    return found


class _Pick(torch.autograd.Function):
    """Indexing whose way back writes instead of adding up, since no place comes twice."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, step: Tensor, place: Tensor) -> Tensor:  # noqa: ANN401
        ctx.save_for_backward(step, place)
        ctx.like = torch.empty_like(values, device="meta")
        return values[:, step, place]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:  # noqa: ANN401
        step, place = ctx.saved_tensors
        found = torch.zeros_like(ctx.like, device=grad.device)
        found[:, step, place] = grad
        return found, None, None
