"""Sets of networks that compete for one place: those that have lost train no further."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from etips.learn.training.objectives import Objective
from etips.models.bundle import Bundle

Heat = Callable[[Bundle, Sequence[int], int], Sequence[int]]
"""Which sets go on: of networks at their best so far, set by set, the numbers of these sets, and
the epochs that are done."""


@dataclass(frozen=True, eq=False)
class Race:
    """Sets of networks of which one is wanted.

    Args:
        set_size: Networks a set; they come set by set, and all of a set go on or none.
        heats: Epochs after which sets are judged.
        judge: Of those in the race, which go on, in their order.
        objective: What some of the sets minimise.
    """

    set_size: int
    heats: tuple[int, ...]
    judge: Heat
    objective: Callable[[Sequence[int]], Objective]

    def members(self, sets: Sequence[int]) -> list[int]:
        """The networks of some sets."""
        return [number * self.set_size + own for number in sets for own in range(self.set_size)]

    def sets(self, members: Sequence[int]) -> list[int]:
        """The sets that some networks make up."""
        return [number // self.set_size for number in members[:: self.set_size]]
