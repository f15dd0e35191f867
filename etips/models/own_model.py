"""A model of a user's own inside a stack: it is asked about stays, and no file can hold it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.errors import SettingError


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
