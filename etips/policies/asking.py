"""Networks and trees asked about decisions, in one way."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from etips.data.history_rows import last_step
from etips.data.trajectories import Trajectories
from etips.models.answers import outputs_at
from etips.models.batches import Batch, StepTensors
from etips.models.bundle import Bundle
from etips.models.forest import Forest


@dataclass(frozen=True, eq=False)
class Asked:
    """Stays that are asked about.

    Args:
        steps: Their scaled features.
        said: What trees say of every decision, by their forest's id, shape (J, n_decisions, K).
        place: Number of the decision that each row answers, shape (n_steps,).
    """

    steps: StepTensors
    said: dict[int, Tensor]
    place: Tensor

    @classmethod
    def of(
        cls, data: Trajectories, steps: StepTensors, members: Sequence[Bundle | Forest | None]
    ) -> "Asked":
        """Stays before those that are to be asked; trees are asked at once."""
        forests = [own for own in members if isinstance(own, Forest)]
        place = np.zeros(data.n_steps, np.int64)
        place[data.seen_rows] = np.arange(data.n_decisions)
        said: dict[int, Tensor] = {}
        if forests:
            rows = last_step(data)
            for forest in forests:
                said[id(forest)] = torch.from_numpy(forest.outputs(rows)).to(steps.device)
        return cls(steps, said, torch.from_numpy(place).to(steps.device))

    def outputs(self, member: Bundle | Forest, batch: Batch) -> Tensor:
        """Outputs at the decisions of a batch, shape (J, n, K)."""
        if isinstance(member, Bundle):
            return outputs_at(member, batch, self.steps)
        return self.said[id(member)][:, self.place[batch.seen]]


def arrays_of(member: Bundle | Forest) -> dict[str, NDArray[Any]]:
    """What a file holds of networks or trees, by name."""
    if isinstance(member, Forest):
        return member.arrays()
    return {
        name: value.detach().cpu().contiguous().numpy() for name, value in member.parameters.items()
    }
