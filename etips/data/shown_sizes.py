"""Sizes of a data set that may be told, the same wherever they stand: a check, results, a page."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from etips.data.trajectories import Trajectories
from etips.disclosure import shown_apart


@dataclass(frozen=True)
class ShownSizes:
    """Sizes that may be told; None is hidden.

    Stays, steps and decisions count the same people, so that one tells of a few beside another:
    136 stays and 135 decisions are one stay without any.

    Args:
        n_decisions: Decisions.
        n_people: Patients with a decision, or stays where patients are not known.
        n_stays: Stays.
        n_with_decision: Stays that have a decision.
        n_steps: Steps.
    """

    n_decisions: int | None
    n_people: int | None
    n_stays: int | None
    n_with_decision: int | None
    n_steps: int | None

    @property
    def counts(self) -> list[int]:
        """All that are shown."""
        return [count for count in vars(self).values() if count is not None]


def show_sizes(data: Trajectories, *, known: Iterable[int] = ()) -> ShownSizes:
    """What may be told of the size of logged data.

    Args:
        data: The stays.
        known: Counts of the same people that were told elsewhere.
    """
    stay = np.unique(data.decisions().stay)
    people = stay.size if data.group is None else np.unique(data.group[stay]).size
    counts = (data.n_decisions, int(people), data.n_stays, int(stay.size), data.n_steps)
    return ShownSizes(*shown_apart(counts, known=known))
