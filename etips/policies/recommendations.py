"""What a policy recommends, as a table: for the command line, and for a service."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from etips.data.decisions import Ints
from etips.data.trajectories import Trajectories
from etips.policies.policy import Answer, FittedPolicy


@dataclass(frozen=True, eq=False)
class Recommendations:
    """What a policy would do at every decision of some stays.

    Args:
        stays: The data.
        answer: The policy's.
        advised: The action that it recommends, shape (n_decisions,).
    """

    stays: Trajectories
    answer: Answer
    advised: Ints

    @classmethod
    def of(cls, policy: FittedPolicy, stays: Trajectories) -> Self:
        """Ask a policy."""
        answer = policy.answer(stays)
        return cls(stays, answer, policy.recommend(answer))

    @property
    def n_abstained(self) -> int:
        """Decisions at which no action has enough support."""
        return int(self.answer.abstained.sum())

    @property
    def agreement(self) -> float | None:
        """Share of decisions at which the logged action is recommended; None without a log."""
        if not self.stays.logged:
            return None
        return float((self.advised == self.stays.logged_action).mean())

    def table(self) -> pa.Table:
        """One row a decision, in decision order: stay, step, actions, probabilities."""
        stays, stay = self.stays, self.stays.decisions().stay
        unknown = pa.nulls(len(stay), pa.int64())
        columns = {
            "stay": pa.array(stays.stay[stay]),
            "step": pa.array(_step_labels(stays)),
            "logged_action": pa.array(stays.logged_action) if stays.logged else unknown,
            "recommended_action": pa.array(self.advised),
        }
        for number, column in enumerate(self.answer.probabilities.T):
            columns[f"p_{number}"] = pa.array(np.ascontiguousarray(column))
        columns["abstained"] = pa.array(self.answer.abstained)
        return pa.table(columns)


def _step_labels(stays: Trajectories) -> NDArray[np.generic]:
    """The decision's own step label; past the end one more than the last, if it is a number."""
    stay, step = stays.decisions()
    rows = stays.decision_rows
    past = step == np.diff(stays.offsets)[stay]
    labels = stays.step[np.where(past, rows - 1, rows)].copy()
    if np.issubdtype(labels.dtype, np.number):
        labels[past] += 1
    return labels
