"""Sizes of a data set that may be shown, and how many of its actions have no loss."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from etips.data.decisions import NO_ACTION, Bools, Ints, MissingLoss
from etips.data.trajectories import Trajectories
from etips.disclosure import FEW, any_few, hide_together, shown_apart


@dataclass(frozen=True)
class ShownSizes:
    """Sizes that may be told; None is hidden.

    Stays, steps and decisions count the same people, so that one tells of a few beside another:
    136 stays and 135 decisions are one stay without any.
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
    """What may be told of the size of logged data."""
    stay = np.unique(data.decisions().stay)
    people = stay.size if data.group is None else np.unique(data.group[stay]).size
    counts = (data.n_decisions, int(people), data.n_stays, int(stay.size), data.n_steps)
    return ShownSizes(*shown_apart(counts, known=known))


MOST_TOLD = 6  # actions named in a line


@dataclass(frozen=True)
class MissingLosses:
    """Counts of logged actions, by action; see `shown` before they are told to anybody.

    Args:
        missing: Actions that have no loss, shape (n_actions,).
        taken: All logged actions that have a history, shape (n_actions,).
        treatment: What becomes of those without a loss.
        names: Of the actions; their numbers if left out.
    """

    missing: Ints
    taken: Ints
    treatment: MissingLoss
    names: tuple[str, ...] = ()

    @property
    def total(self) -> tuple[int, int] | None:
        """How many have no loss, of how many; None if either they or the others are few."""
        missing, taken = int(self.missing.sum()), int(self.taken.sum())
        return None if any_few((missing, taken - missing)) else (missing, taken)

    @property
    def shown(self) -> Bools:
        """Which actions' counts may be told, shape (n_actions,)."""
        return ~hide_together(self.missing, self.taken - self.missing)

    def tell(self) -> str:
        """All of it in one line, the actions with the largest share first."""
        if self.total is None:
            return f"loss: {FEW} actions have none, or {FEW} have one; {self._fate}."
        missing, taken = self.total
        share = np.where(self.shown & (self.taken > 0), self.missing / np.maximum(self.taken, 1), 0)
        first = [int(action) for action in np.argsort(-share, kind="stable") if share[action] > 0]
        called = [str(self.names[a] if self.names else a) for a in first[:MOST_TOLD]]
        named = [
            f"{name}: {self.missing[a]:,} ({share[a]:.0%})"
            for name, a in zip(called, first, strict=False)
        ]
        parts = f" By action {', '.join(named)}." if named else ""
        return f"loss: {missing:,} of {taken:,} actions have none; {self._fate}.{parts}"

    @property
    def _fate(self) -> str:
        if self.treatment == "drop":
            return "they are left out, which is right if chance alone decides who is missing"
        return "decisions that look alike and have one speak for them"


def count_missing_losses(data: Trajectories) -> MissingLosses | None:
    """Count the actions of `data` without a loss; None where every action has one.

    Also None where no loss is known at all: then it is still to be computed.
    """
    if data.action is None or data.loss is None:
        return None
    stay = np.repeat(np.arange(data.n_stays), np.diff(data.offsets))
    candidate = (data.action != NO_ACTION) & (
        np.arange(data.n_steps) - data.offsets[stay] >= data.lag
    )
    if data.eligible is not None:
        candidate &= data.eligible
    lacks = candidate & np.isnan(data.loss)
    if not lacks.any() or bool(lacks[candidate].all()):
        return None
    k = data.n_actions
    return MissingLosses(
        missing=np.bincount(data.action[lacks], minlength=k),
        taken=np.bincount(data.action[candidate], minlength=k),
        treatment=data.missing_loss,
        names=data.schema.actions,
    )
