"""Networks, trees and models of rows asked about decisions, in one way."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.models.answers import outputs_at
from etips.models.batches import Batch, StepTensors
from etips.models.bundle import Bundle
from etips.models.forest import Forest
from etips.models.row_model import RowModel, rows_of

Member = Bundle | Forest | RowModel
"""What a policy can be made of."""


@dataclass(frozen=True, eq=False)
class Asked:
    """Stays that are asked about.

    Args:
        steps: Their scaled features.
        said: What trees and models of rows say of every decision, by their id, shape
            (J, n_decisions, K).
        place: Number of the decision that each row answers, shape (n_steps,).
    """

    steps: StepTensors
    said: dict[int, Tensor]
    place: Tensor

    @classmethod
    def of(
        cls,
        data: Trajectories,
        steps: StepTensors,
        members: Sequence[Member | None],
        like: Schema | None = None,
    ) -> "Asked":
        """Stays before those that are to be asked; what reads rows is asked at once.

        Args:
            data: The stays.
            steps: Their scaled features.
            members: Who is to be asked.
            like: Schema that those were fitted on; that of the stays if left out.
        """
        place = np.zeros(data.n_steps, np.int64)
        place[data.seen_rows] = np.arange(data.n_decisions)
        said: dict[int, Tensor] = {}
        rows: dict[str, NDArray[Any]] = {}
        for member in members:
            if member is None or isinstance(member, Bundle):
                continue
            reads = member.reads if isinstance(member, RowModel) else "last"
            if reads not in rows:
                rows[reads] = rows_of(data, reads, like)
            said[id(member)] = torch.from_numpy(member.outputs(rows[reads])).to(steps.device)
        return cls(steps, said, torch.from_numpy(place).to(steps.device))

    def outputs(self, member: Member, batch: Batch) -> Tensor:
        """Outputs at the decisions of a batch, shape (J, n, K)."""
        if isinstance(member, Bundle):
            return outputs_at(member, batch, self.steps)
        return self.said[id(member)][:, self.place[batch.seen]]


def arrays_of(member: Member) -> dict[str, NDArray[Any]]:
    """What a file holds of networks or trees, by name."""
    if not isinstance(member, Bundle):
        return member.arrays()
    return {
        name: value.detach().cpu().contiguous().numpy() for name, value in member.parameters.items()
    }
