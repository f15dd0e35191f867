"""What a policy says of decisions, with how far it is supported, part by part of an action."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from etips.data.decisions import Bools, Floats, Ints
from etips.data.intake.components import Component
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.policies.policy import FittedPolicy
from etips.policies.recommendations import describe
from etips.results.exhibits import DoseGrid
from etips.results.overlap import grid_of

USUAL_SUPPORT = 0.01
"""What counts as supported where the policy itself has no floor."""


@dataclass(frozen=True, eq=False)
class Advice:
    """What a policy says at some decisions.

    Args:
        probabilities: Of each action, shape (n, K); the clinicians' where it abstains.
        abstained: Where no action has enough support, shape (n,).
        clinicians: What they do, as fitted with the policy, shape (n, K); None where nobody asked.
        support: Least probability under the clinicians of an action that counts as supported.
    """

    probabilities: Floats
    abstained: Bools
    clinicians: Floats | None
    support: float

    @cached_property
    def advised(self) -> Ints:
        """The likeliest action of each decision, shape (n,)."""
        return np.asarray(self.probabilities.argmax(axis=1))

    @cached_property
    def supported(self) -> Bools:
        """Which actions are supported, shape (n, K); all of them where nothing is known."""
        if self.clinicians is None:
            return np.ones(self.probabilities.shape, bool)
        return np.asarray(self.clinicians >= self.support)

    @cached_property
    def doubt(self) -> Floats:
        """How close the second choice comes to the first: 0 far, 1 as likely, shape (n,)."""
        if self.probabilities.shape[1] < 2:
            return np.zeros(len(self.probabilities))
        two = -np.partition(-self.probabilities, 1, axis=1)[:, :2]
        return np.asarray(1.0 - (two[:, 0] - two[:, 1]))

    def at(self, places: slice | Ints) -> "Advice":
        """The same at some of the decisions."""
        clinicians = None if self.clinicians is None else self.clinicians[places]
        own = self.probabilities[places], self.abstained[places]
        return Advice(*own, clinicians, self.support)


@dataclass(frozen=True)
class Share:
    """One level of a part of an action, added up over all actions that have it.

    Args:
        words: What it is called.
        policy: Probability under the policy.
        clinicians: Under the clinicians; None where that is not known.
    """

    words: str
    policy: float
    clinicians: float | None


class Advisor:
    """A policy that is asked by people.

    Args:
        policy: The policy.
    """

    def __init__(self, policy: FittedPolicy) -> None:
        self.policy = policy
        self.schema: Schema = policy.schema
        self.parts: tuple[Component, ...] = parts_of(policy.schema)
        self.grid: DoseGrid | None = grid_of(policy.schema)
        self.names = tuple(describe(self.schema, n) for n in range(self.schema.n_actions))
        """Actions at length."""
        self.labels = tuple(self.schema.action_name(n) for n in range(self.schema.n_actions))
        """Actions as the data call them."""

    def ask(self, stays: Trajectories) -> Advice:
        """What it says of every decision of some stays, in their order."""
        answer, clinicians = self.policy.consult(stays)
        return Advice(*answer, clinicians, self.support)

    @property
    def support(self) -> float:
        """The policy's own floor, or the report's where it has none: one time in a hundred."""
        return self.policy.support or USUAL_SUPPORT

    @property
    def draws(self) -> bool:
        """Whether it draws among actions and does not take the likeliest."""
        return self.policy.acts == "draws"

    def shares(self, part: Component, advice: Advice, place: int) -> list[Share]:
        """How likely each level of a part is at one decision, whatever the other parts are."""
        of_action = np.array(part.of_action)
        n = len(part.levels)
        policy = np.bincount(of_action, advice.probabilities[place], n)
        theirs = (
            None
            if advice.clinicians is None
            else np.bincount(of_action, advice.clinicians[place], n)
        )
        words = part.descriptions or part.levels
        return [
            Share(words[k], float(policy[k]), None if theirs is None else float(theirs[k]))
            for k in range(n)
        ]

    def combine(self, levels: Sequence[int]) -> int | None:
        """The action of these levels of its parts, if there is one."""
        wanted = tuple(levels)
        of_actions = zip(*(part.of_action for part in self.parts), strict=True)
        return next((n for n, own in enumerate(of_actions) if own == wanted), None)


def parts_of(schema: Schema) -> tuple[Component, ...]:
    """What actions are made of: doses or columns, or the two doses that their names tell."""
    if len(schema.components) > 1:
        return schema.components
    grid = grid_of(schema)
    if grid is None:
        return ()
    places = [divmod(n, grid.n_columns) for n in range(schema.n_actions)]
    rows, columns = zip(*places, strict=True)
    return (
        _graded(grid.row, grid.n_rows, rows, grid.row_levels),
        _graded(grid.column, grid.n_columns, columns, grid.column_levels),
    )


def _graded(name: str, n: int, of_action: tuple[int, ...], levels: tuple[str, ...]) -> Component:
    words = levels or ("none", *(f"class {k}" for k in range(1, n)))
    return Component(name, words, of_action, words)
