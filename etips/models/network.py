"""The network of the paper's Fig. 3: encoder, static features beside its state, linear head."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from etips.models.encoders.encoder import Encoder, Parameters, Shapes

FORBIDDEN = -1e9
"""Logit of an action that must not be taken: its probability is zero in any precision."""


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

    def start(self, seeds: Sequence[int], *, bias: Tensor | None = None) -> Parameters:
        """Fresh parameters, one network a seed.

        Args:
            seeds: One a network.
            bias: What every network says of anybody before it has learned anything, shape
                (J, n_outputs); the head then starts there with weights of zero. Left out, outputs
                start at random.
        """
        encoder = self.encoder.start(self.n_features, seeds)
        width = self.encoder.size(self.n_features) + self.n_static
        columns = 1 if self.additive else self.n_outputs
        weights = []
        for seed in seeds:
            generator = torch.Generator().manual_seed(seed + 2**31)
            weights.append(torch.randn(width, columns, generator=generator) / math.sqrt(width))
        weight = torch.stack(weights)
        return {
            **{f"encoder.{name}": value for name, value in encoder.items()},
            "head.weight": weight if bias is None else torch.zeros_like(weight),
            "head.bias": torch.zeros(len(seeds), self.n_outputs) if bias is None else bias.clone(),
        }

    def shapes(self) -> Shapes:
        """Shape of every parameter in one network, one after another and without making any."""
        for name, shape in self.encoder.shapes(self.n_features):
            yield f"encoder.{name}", shape
        width = self.encoder.size(self.n_features) + self.n_static
        yield "head.weight", (width, 1 if self.additive else self.n_outputs)
        yield "head.bias", (self.n_outputs,)

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
            keep: Dropout mask of the state at those places, already scaled, shape (n, hidden).
        """
        start = "encoder."
        own = {name[len(start) :]: v for name, v in parameters.items() if name.startswith(start)}
        states = self.encoder.states(own, inputs)  # (J, T, B, hidden)
        n_steps, n_batch, width = states.shape[1:]
        weight, beside = parameters["head.weight"], parameters["head.bias"][:, None]
        if slots is None or len(slots) == n_steps * n_batch:  # in order then: nothing to pick
            states = states.flatten(1, 2)
        else:
            states = _pick(states.transpose(0, 1), slots)
        if keep is not None:
            states = states * keep.to(states.dtype)
        if self.n_static:
            known = static if slots is None else static[slots % n_batch]
            always = known @ weight[:, width:]
            beside = beside + (always.repeat(1, n_steps, 1) if slots is None else always)
        return states @ weight[:, :width] + beside


def _pick(values: Tensor, slots: Tensor) -> Tensor:
    """Values (T, J, B, H) at places t * B + b, each named once, shape (J, n, H)."""
    picked: Tensor = _Pick.apply(values, slots)  # type: ignore[no-untyped-call]
    return picked


class _Pick(torch.autograd.Function):
    """Rows of every network; the way back writes instead of adding up: no place comes twice."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, slots: Tensor) -> Tensor:  # noqa: ANN401
        n_networks, n_batch = values.shape[1:3]
        first = slots + slots // n_batch * ((n_networks - 1) * n_batch)  # as row of network 0
        rows = first + n_batch * torch.arange(n_networks, device=slots.device)[:, None]
        ctx.save_for_backward(rows)
        ctx.shape = values.shape
        return values.reshape(-1, values.shape[3])[rows]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        (rows,) = ctx.saved_tensors
        spread = grad.new_empty(ctx.shape).flatten(0, 2)
        if rows.numel() < len(spread):
            spread.zero_()
        spread.index_copy_(0, rows.flatten(), grad.flatten(0, 1))
        return spread.view(ctx.shape), None


def forbid(logits: Tensor, allowed: Tensor) -> Tensor:
    """Logits in which an action that is not allowed has no probability.

    Args:
        logits: Shape (J, n, K).
        allowed: Shape (n, K).
    """
    return logits.masked_fill(~allowed, FORBIDDEN)
