"""A gated recurrent unit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from etips.models.encoders.encoder import Shapes
from etips.models.encoders.recurrent_encoder import RecurrentEncoder, embedded
from etips.models.recurrences import gru


@dataclass(frozen=True)
class GRU(RecurrentEncoder):
    """A gated recurrent unit, one layer; for its arguments see `RecurrentEncoder`."""

    name: ClassVar[str] = "gru"
    n_gates: ClassVar[int] = 3

    def shapes(self, n_features: int) -> Shapes:
        """Those of any recurrent layer, and a second bias of the new state, as `torch.nn.GRU`."""
        yield from super().shapes(n_features)
        yield "new", (self.hidden,)

    def states(self, parameters: Mapping[str, Tensor], inputs: Tensor) -> Tensor:
        """States after every step."""
        p, inputs = parameters, embedded(parameters, inputs)
        return gru(inputs, p["weight"], p["recurrent"], p["bias"], p["new"])
