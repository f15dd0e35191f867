"""Networks of one shape, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple, Self

import torch
from torch import Tensor

from etips.models.encoders.encoder import Parameters
from etips.models.network import Network


class Trained(NamedTuple):
    """How the training of a network ended.

    Args:
        epochs: How many it learned for.
    """

    epochs: int


@dataclass(frozen=True, eq=False)
class Bundle:
    """J networks of one shape; every parameter has a leading axis of length J.

    Args:
        network: The shape.
        parameters: By name.
        trained: How the training of each ended; empty where nobody wrote it down.
    """

    network: Network
    parameters: Parameters
    trained: tuple[Trained, ...] = ()

    @classmethod
    def start(cls, network: Network, seeds: Sequence[int], *, bias: Tensor | None = None) -> Self:
        """Fresh networks, one a seed; see `Network.start`."""
        return cls(network, network.start(seeds, bias=bias))

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
        trained = tuple(self.trained[number] for number in index.tolist()) if self.trained else ()
        return replace(self, parameters=chosen, trained=trained)

    def to(
        self, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> Self:
        """The same networks elsewhere, or in another precision."""
        moved = {name: v.detach().to(device, dtype) for name, v in self.parameters.items()}
        return replace(self, parameters=moved)

    def shrink(self, start: Tensor, share: float, centre: Tensor) -> Self:
        """Networks whose outputs are `centre + share * (output - start)`.

        The head is linear, so that is a change of its parameters alone.

        Args:
            start: Outputs that stand for knowing nothing, shape (J, n_outputs).
            share: Of what a network learned beyond them that is kept.
            centre: What takes their place, shape (n_outputs,) or (J, n_outputs).
        """
        own = {name: value.detach() for name, value in self.parameters.items()}
        start, centre = (value.to(self.device, torch.float64) for value in (start, centre))
        weight, bias = own["head.weight"], own["head.bias"]
        moved = centre + share * (bias.double() - start)
        own |= {"head.weight": weight * share, "head.bias": moved.to(bias.dtype)}
        return replace(self, parameters=own)

    @classmethod
    def join(cls, bundles: Sequence["Bundle"]) -> Self:
        """Bundles of one shape as one."""
        first = bundles[0]
        joined = {
            name: torch.cat([bundle.parameters[name].detach() for bundle in bundles])
            for name in first.parameters
        }
        known = all(bundle.trained for bundle in bundles)
        trained = tuple(chain(*(bundle.trained for bundle in bundles))) if known else ()
        return cls(first.network, joined, trained)
