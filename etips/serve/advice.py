"""What a policy says of decisions, with how far it is supported, part by part of an action."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from etips.data.decisions import Bools, Floats, Ints
from etips.data.recipe import Component
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.policies.policy import FittedPolicy
from etips.policies.recommendations import describe
from etips.results.assembly import grid_of
from etips.serve.fields import Form

USUAL_SUPPORT = 0.01
"""What counts as supported where the policy itself has no floor: one time in a hundred."""


@dataclass(frozen=True, eq=False)
class Advice:
    """What a policy says at some decisions.

    Args:
        probabilities: Of each action, shape (n, K); the clinicians' where it abstains.
        abstained: Where no action has enough support, shape (n,).
        clinicians: What they do, as fitted with the policy, shape (n, K); None if it was fitted
            without.
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


class Advisor:
    """A policy that people ask: what its actions are called, and what may be filled in."""

    def __init__(self, policy: FittedPolicy) -> None:
        self.policy, schema = policy, policy.schema
        self.form = Form.of(schema, policy.scaler)
        self.parts = parts_of(schema)
        self.grid = grid_of(schema)
        self.names = tuple(describe(schema, n) for n in range(schema.n_actions))
        """Actions at length."""
        self.labels = tuple(schema.action_name(n) for n in range(schema.n_actions))
        """Actions as the data call them."""
        self.support = policy.support or USUAL_SUPPORT

    def ask(self, stays: Trajectories) -> Advice:
        """What it says of every decision of some stays, in their order."""
        answer, clinicians = self.policy.consult(stays)
        return Advice(*answer, clinicians, self.support)

    def parts_by_action(self) -> list[dict[str, str] | None]:
        """The level of each part, an action each; None where actions are not made of parts."""
        return [
            {part.name: part.levels[part.of_action[n]] for part in self.parts} or None
            for n in range(len(self.labels))
        ]


def parts_of(schema: Schema) -> tuple[Component, ...]:
    """What actions are made of: doses or columns, or the two doses that their names show."""
    if len(schema.components) > 1:
        return schema.components
    grid = grid_of(schema)
    if grid is None:
        return ()
    rows, columns = np.divmod(np.arange(schema.n_actions), grid.n_columns)
    made = []
    for name, n, of_action, given in (
        (grid.row, grid.n_rows, rows, grid.row_levels),
        (grid.column, grid.n_columns, columns, grid.column_levels),
    ):
        levels = given or ("none", *(f"class {k}" for k in range(1, n)))
        made.append(Component(name, levels, tuple(of_action.tolist()), levels))
    return tuple(made)
