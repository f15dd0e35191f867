"""The course of a stay: its decisions in order, and what each adds to the outcome of the stay."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from etips.errors import SettingError, require
from etips.evaluation.inference.checks import Bools, Floats, Ints, check_numbers, totals

Outcome = Literal["sum", "last"]
"""Of a stay: the sum of its losses, or the loss of its last decision (death, say)."""


@dataclass(frozen=True, eq=False)
class Course:
    """The decisions of stays, stay after stay, in the order in which they were made.

    Steps without a decision do not count: the next decision of the same stay is the one that
    follows.

    Args:
        stay: Of each decision, numbered 0..k-1 and never falling, shape (n,).
        charge: What each decision adds to the outcome of its stay, shape (n,).
    """

    stay: Ints
    charge: Floats

    @classmethod
    def of(cls, stay: ArrayLike, loss: ArrayLike, outcome: Outcome) -> "Course":
        """The course of decisions that come stay by stay.

        Args:
            stay: Of each decision, shape (n,); equal for neighbours of one stay.
            loss: Of each logged action, shape (n,).
            outcome: Of a stay.
        """
        require_outcome(outcome)
        label, charge = np.asarray(stay), check_numbers("loss", loss)
        new = np.concatenate([[True], label[1:] != label[:-1]])
        together = _first_time(label[new])
        require("stay", "must hold all its decisions one after the other", together)
        if outcome == "last":
            charge = np.where(np.append(new[1:], True), charge, 0.0)
        return cls(np.cumsum(new) - 1, charge)

    @property
    def n_stays(self) -> int:
        """Stays with a decision."""
        return int(self.stay[-1]) + 1

    @cached_property
    def first(self) -> Ints:
        """Position of the first decision of each stay, shape (k,)."""
        return np.searchsorted(self.stay, np.arange(self.n_stays))

    @cached_property
    def lengths(self) -> Ints:
        """Decisions of each stay, shape (k,)."""
        return np.bincount(self.stay, minlength=self.n_stays)

    @cached_property
    def number(self) -> Ints:
        """How many decisions of the stay come before each, shape (n,)."""
        return np.arange(self.stay.size) - self.first[self.stay]

    @cached_property
    def ends(self) -> Bools:
        """Whether a decision is the last of its stay, shape (n,)."""
        return np.asarray(self.number == self.lengths[self.stay] - 1, dtype=np.bool_)

    @cached_property
    def to_go(self) -> Floats:
        """What each decision and those after it add to the outcome, shape (n,)."""
        after = np.cumsum(self.charge[::-1])[::-1]
        beyond = np.append(after, 0.0)[np.append(self.first[1:], self.stay.size)]
        return np.asarray(after - beyond[self.stay])

    @property
    def outcomes(self) -> Floats:
        """Outcome of each stay, shape (k,)."""
        return totals(self.stay, self.charge, self.n_stays)

    @property
    def is_share(self) -> bool:
        """Whether every outcome, and all of it that is still to come, lies in [0, 1]."""
        return bool((self.charge >= 0).all() and (self.outcomes <= 1).all())


def require_outcome(outcome: str) -> None:
    """Refuse an outcome that is none of ours."""
    if outcome not in get_args(Outcome):
        raise SettingError("outcome", f"must be {' or '.join(get_args(Outcome))}")


def _first_time(labels: np.ndarray) -> Bools:
    """Whether a label has not come before, shape (k,)."""
    seen = np.zeros(labels.size, bool)
    seen[np.unique(labels, return_index=True)[1]] = True
    return seen
