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
from etips.models.row_model import Reads, RowModel, rows_of
from etips.models.stack import OwnModel, Stack
from etips.models.tree_ensemble import TreeEnsemble

ReadsRows = OwnModel | RowModel | TreeEnsemble
"""What is asked about all decisions at once."""

Member = Bundle | ReadsRows | Stack
"""What a policy can be made of."""


@dataclass(frozen=True, eq=False)
class Asked:
    """Stays that are asked about, by their scaled features.

    Args:
        answers: Outputs of trees and models of rows for every decision, by their id, shape
            (J, n_decisions, K).
        place: Number of the decision that each row answers, shape (n_steps,).
    """

    steps: StepTensors
    answers: dict[int, Tensor]
    place: Tensor

    @classmethod
    def of(
        cls,
        data: Trajectories,
        steps: StepTensors,
        members: Sequence[Member | None],
        like: Schema | None = None,
    ) -> "Asked":
        """Stays before the members that are to be asked; what reads rows is asked at once.

        Args:
            like: Schema that the members were fitted on; that of the stays if left out.
        """
        place = np.zeros(data.n_steps, np.int64)
        place[data.seen_rows] = np.arange(data.n_decisions)
        answers: dict[int, Tensor] = {}
        rows: dict[Reads, NDArray[Any]] = {}
        for single in singles(members):
            if isinstance(single, Bundle):
                continue
            if isinstance(single, OwnModel):
                answers[id(single)] = torch.from_numpy(single.answer(data))[None].to(steps.device)
                continue
            reads = read_by(single)
            if reads not in rows:
                rows[reads] = rows_of(data, reads, like)
            outputs = torch.from_numpy(single.outputs(rows[reads]))
            answers[id(single)] = outputs.to(steps.device)
        return cls(steps, answers, torch.from_numpy(place).to(steps.device))

    def outputs(self, member: Member, batch: Batch) -> Tensor:
        """Outputs at the decisions of a batch, shape (J, n, K)."""
        if isinstance(member, Stack):
            return member.mix([self.outputs(part.member, batch) for part in member.members])
        if isinstance(member, Bundle):
            return outputs_at(member, batch, self.steps)
        return self.answers[id(member)][:, self.place[batch.seen]]


def singles(members: Sequence[Member | None]) -> list[Bundle | ReadsRows]:
    """The members one by one, those of a stack in its place."""
    split: list[Bundle | ReadsRows] = []
    for member in members:
        if isinstance(member, Stack):
            split += [part.member for part in member.members]
        elif member is not None:
            split.append(member)
    return split


def read_by(member: ReadsRows) -> Reads:
    """The rows that a member reads."""
    if isinstance(member, OwnModel):
        member.refuse()
    return member.reads


def arrays_of(member: Member) -> dict[str, NDArray[Any]]:
    """What a file holds of networks or trees, by name; of a stack by its place and name."""
    if isinstance(member, Stack):
        own = {
            f"{place}.{name}": value
            for place, part in enumerate(member.members)
            for name, value in arrays_of(part.member).items()
        }
        return own | {"weight": np.array([part.weight for part in member.members])}
    if not isinstance(member, Bundle):
        return dict(member.arrays())
    return {
        name: value.detach().cpu().contiguous().numpy() for name, value in member.parameters.items()
    }
