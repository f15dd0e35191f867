"""A long short-term memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from etips.models.encoders.encoder import Parameters
from etips.models.encoders.recurrent_encoder import RecurrentEncoder, embedded
from etips.models.recurrences import lstm


@dataclass(frozen=True)
class LSTM(RecurrentEncoder):
    """A long short-term memory, one layer; for its arguments see `RecurrentEncoder`."""

    name: ClassVar[str] = "lstm"
    n_gates: ClassVar[int] = 4

    def start(self, n_features: int, seeds: Sequence[int]) -> Parameters:
        """As any recurrent layer, with forget gates open so that early steps count."""
        parameters = super().start(n_features, seeds)
        parameters["bias"][:, self.hidden : 2 * self.hidden] += 1.0
        return parameters

    def states(self, parameters: Mapping[str, Tensor], inputs: Tensor) -> Tensor:
        """States after every step."""
        p, inputs = parameters, embedded(parameters, inputs)
        return lstm(inputs, p["weight"], p["recurrent"], p["bias"])
