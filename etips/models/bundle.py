"""Networks of one shape, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from etips.models.encoders.encoder import Parameters
from etips.models.network import Network


@dataclass(frozen=True, eq=False)
class Bundle:
    """J networks of one shape; every parameter has a leading axis of length J.

    Args:
        network: The shape.
        parameters: By name.
    """

    network: Network
    parameters: Parameters

    @classmethod
    def start(cls, network: Network, seeds: Sequence[int]) -> Self:
        """Fresh networks, one a seed."""
        return cls(network, network.start(seeds))

    @property
    def n_members(self) -> int:
        """Number of networks."""
        return len(self.parameters["head.bias"])

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.parameters["head.bias"].device

    def select(self, members: Sequence[int] | Tensor) -> Self:
        """Some of the networks, in the order given; one may be taken more than once."""
        index = torch.as_tensor(members, dtype=torch.long, device=self.device)
        chosen = {name: value.detach()[index].clone() for name, value in self.parameters.items()}
        return replace(self, parameters=chosen)

    def to(
        self, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> Self:
        """The same networks elsewhere, or in another precision."""
        moved = {name: v.detach().to(device, dtype) for name, v in self.parameters.items()}
        return replace(self, parameters=moved)

    @classmethod
    def join(cls, bundles: Sequence["Bundle"]) -> Self:
        """Bundles of one shape as one."""
        first = bundles[0]
        joined = {
            name: torch.cat([bundle.parameters[name].detach() for bundle in bundles])
            for name in first.parameters
        }
        return cls(first.network, joined)
