"""Candidates of a user's own: anything with `fit` and `predict_proba`, stacked where it can be."""

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError
from etips.models.stack import OwnModel, Part


@runtime_checkable
class OwnCandidate(Protocol):
    """A learner of a user's own; judged as it would do alone, by its likeliest actions."""

    def fit(self, data: Trajectories) -> object:
        """Learn from logged stays."""

    def predict_proba(self, data: Trajectories) -> Floats:
        """Probability of every action, shape (n_decisions, n_actions), in decision order."""


@runtime_checkable
class PredictsLoss(OwnCandidate, Protocol):
    """One that is stacked, since it says what each action would lead to."""

    def predict_loss(self, data: Trajectories) -> Floats:
        """Loss of every action, in the units of the data, shape (n_decisions, n_actions)."""


class OwnAnswers(NamedTuple):
    """What copies of a candidate say of stays that they did not learn from.

    Args:
        name: What it is called.
        candidate: Not fitted.
        table: Losses, or minus probabilities, shape (n_decisions, n_actions).
        seconds: That the copies took.
    """

    name: str
    candidate: OwnCandidate
    table: Floats
    seconds: float

    @property
    def is_stacked(self) -> bool:
        """Whether it says what each action would lead to."""
        return isinstance(self.candidate, PredictsLoss)

    def part(self, weight: float, *, data: Trajectories) -> Part:
        """A copy fitted to all stays, as part of a stack."""
        candidate = copy.deepcopy(self.candidate)
        candidate.fit(data)
        return Part(OwnModel(partial(losses_of, candidate)), weight, "amount")


def losses_of(candidate: OwnCandidate, data: Trajectories) -> Floats:
    """Predicted losses; minus probabilities, of which the likeliest is least, where it has none."""
    name = type(candidate).__name__
    if isinstance(candidate, PredictsLoss):
        table = np.asarray(candidate.predict_loss(data), np.float64)
    else:
        table = -np.asarray(candidate.predict_proba(data), np.float64)
    if table.shape != (data.n_decisions, data.n_actions) or not np.isfinite(table).all():
        rule = "must give one finite number a decision and action"
        raise DataError(f"candidates, {name}", rule)
    return table


@dataclass(frozen=True)
class Candidates:
    """What a user wants tried.

    Args:
        names: Of our models; the first of them where there are objects alone, since all are weighed
            by propensities.
        objects: Learners, by what they are called.
    """

    names: tuple[str, ...]
    objects: dict[str, OwnCandidate]

    @classmethod
    def of(cls, asked: Sequence[object] | None, known: Sequence[str]) -> "Candidates":
        """Refuse what is neither a name nor a learner; all our models where nothing is asked."""
        if asked is None:
            return cls(tuple(known), {})
        rule = f"must be some of {', '.join(known)}"
        fix = "Objects need fit(trajectories) and predict_proba(trajectories)."
        names = tuple(item for item in asked if isinstance(item, str))
        others = [item for item in asked if isinstance(item, OwnCandidate)]
        if isinstance(asked, str) or not asked or not set(names) <= set(known):
            raise SettingError("candidates", rule, fix=fix)
        classes = any(isinstance(item, type) for item in asked)
        if classes or len(names) + len(others) < len(asked):
            raise SettingError("candidates", rule, fix=fix)
        called: dict[str, OwnCandidate] = {}
        for candidate in others:
            name = type(candidate).__name__
            called[name if name not in called else f"{name} {len(called) + 1}"] = candidate
        return cls(names or tuple(known[:1]), called)

    def cross_fit(self, data: Trajectories, fold: Ints) -> list[OwnAnswers]:
        """What each says of stays that it did not learn from; `fold` is of each stay."""
        each = []
        for name, candidate in self.objects.items():
            started = time.thread_time()
            table = np.zeros((data.n_decisions, data.n_actions))
            for number in np.unique(fold):
                inside = fold == number
                fitted = copy.deepcopy(candidate)
                fitted.fit(data if inside.all() else data.subset(~inside))
                table[inside[data.decisions().stay]] = losses_of(fitted, data.subset(inside))
            each.append(OwnAnswers(name, candidate, table, time.thread_time() - started))
        return each
