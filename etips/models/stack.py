"""Models of several kinds as one: their predicted losses or propensities, added up by weight."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn, get_args

import torch
from torch import Tensor

from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.errors import SettingError
from etips.models.bundle import Bundle
from etips.models.row_model import RowModel
from etips.models.tree_ensemble import TreeEnsemble

Link = Literal["amount", "logit", "softmax"]
"""How outputs become what is mixed: as they are, as the logit of a share, as logits of actions."""

Mixes = Literal["losses", "propensities"]

FLOOR = 1e-9
"""Least propensity before a logarithm is taken."""

_LINKS: Mapping[Mixes, tuple[Link, ...]] = {
    "losses": ("amount", "logit"),
    "propensities": ("amount", "softmax"),
}


@dataclass(frozen=True, eq=False)
class OwnModel:
    """Answers of a fitted object.

    Args:
        answer: Losses of every action at the decisions of stays, shape (n_decisions, n_actions).
    """

    answer: Callable[[Trajectories], Floats]

    @property
    def n_members(self) -> int:
        """One."""
        return 1

    def arrays(self) -> Mapping[str, Floats]:
        """Nothing that we know of."""
        return {}

    def outputs(self, _: object) -> NoReturn:
        """Refused: it reads stays, not rows."""
        self.refuse()

    def refuse(self) -> NoReturn:
        """What cannot be done with it: to write it, to look into it."""
        rule = "holds a model of your own, which can be neither written nor looked into"
        fix = "Leave it out of candidates, or keep this process."
        raise SettingError("policy", rule, fix=fix)


@dataclass(frozen=True, eq=False)
class Part:
    """One model of a stack.

    Args:
        member: What answers.
        weight: Its share of the sum.
        link: How its outputs become predicted losses or propensities.
    """

    member: Bundle | OwnModel | RowModel | TreeEnsemble
    weight: float
    link: Link


@dataclass(frozen=True, eq=False)
class Stack:
    """Models whose answers are added up by weight, as one member.

    Args:
        members: Their weights are not negative and sum to 1.
        mixes: Whether parts predict losses or propensities.
        temperature: Of propensities: they are raised to 1 / temperature and sum to 1 again.
    """

    members: tuple[Part, ...]
    mixes: Mixes
    temperature: float = 1.0

    def __post_init__(self) -> None:
        weights = [part.weight for part in self.members]
        fit = self.mixes in get_args(Mixes) and self.temperature > 0
        if not fit or any(part.link not in _LINKS[self.mixes] for part in self.members):
            raise ValueError("a stack cannot mix answers like that")
        if not all(weight >= 0 for weight in weights) or abs(sum(weights) - 1) > 1e-6:
            raise ValueError("weights of a stack must not be negative and must sum to 1")

    @property
    def n_members(self) -> int:
        """Answers that it gives: one."""
        return 1

    def mix(self, said: Sequence[Tensor]) -> Tensor:
        """Predicted losses, about their mean over the actions, or logarithms of propensities.

        Args:
            said: Outputs of each part, shape (J, n, K) each.

        Returns:
            Shape (1, n, K), in float64.
        """
        total = torch.zeros(())
        for part, outputs in zip(self.members, said, strict=True):
            table = _table(outputs.double(), part.link)
            if self.mixes == "losses":
                table = table - table.mean(-1, keepdim=True)
            total = total + part.weight * table
        if self.mixes == "losses":
            return total[None]
        logits = total.clamp(min=FLOOR).log() / self.temperature
        return logits.log_softmax(-1)[None]


def _table(outputs: Tensor, link: Link) -> Tensor:
    """What one part predicts, the mean over its members, shape (n, K)."""
    if link == "logit":
        outputs = outputs.sigmoid()
    elif link == "softmax":
        outputs = outputs.softmax(-1)
    return outputs.mean(0)
