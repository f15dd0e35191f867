"""What a policy says of stays, how far that is supported, and the stays that can be looked at."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from etips.data.coded import Floats32
from etips.data.decisions import Bools, Floats, Ints
from etips.data.recipe import Component
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.policies.policy import FittedPolicy
from etips.policies.recommendations import describe
from etips.results.assembly import grid_of
from etips.results.results import Results
from etips.serve.fields import Field, Form, Value
from etips.serve.schemas import PolicyCard

USUAL_SUPPORT = 0.01
"""What counts as supported where the policy itself has no floor: one time in a hundred."""

CLOSE = 0.9
"""Doubt from which a decision is a close call: the second choice is within ten per cent."""

ORDERS = {
    "disagreement": "most disagreement first",
    "abstention": "most abstention first",
    "doubt": "most doubt first",
}
FILTERS = {
    "all": "all stays",
    "disagrees": "the policy disagrees somewhere",
    "abstains": "the policy abstains somewhere",
    "wavers": "a close call somewhere",
    "agrees": "the policy agrees throughout",
}


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
        return replace(
            self,
            probabilities=self.probabilities[places],
            abstained=self.abstained[places],
            clinicians=clinicians,
        )


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
        self.parts_by_action = [
            {part.name: part.levels[part.of_action[n]] for part in self.parts} or None
            for n in range(schema.n_actions)
        ]
        """The level of each part, an action each; None where actions are not made of parts."""

    def ask(self, stays: Trajectories) -> Advice:
        """What it says of every decision of some stays, in their order."""
        answer, clinicians = self.policy.consult(stays)
        return Advice(*answer, clinicians, self.support)


def parts_of(schema: Schema) -> tuple[Component, ...]:
    """What actions are made of: doses or columns, or the two doses that their names show."""
    if len(schema.components) > 1:
        return schema.components
    grid = grid_of(schema)
    if grid is None:
        return ()
    rows, columns = np.divmod(np.arange(schema.n_actions), grid.n_columns)
    parts = []
    for name, n, of_action, given in (
        (grid.row, grid.n_rows, rows, grid.row_levels),
        (grid.column, grid.n_columns, columns, grid.column_levels),
    ):
        levels = given or ("none", *(f"class {k}" for k in range(1, n)))
        parts.append(Component(name, levels, tuple(of_action.tolist()), levels))
    return tuple(parts)


@dataclass(frozen=True)
class StayRow:
    """A stay in the list, with shares of its decisions and its mean doubt.

    It disagrees where something else was done than recommended (None without a log); `close` says
    whether one of its decisions is a close call.
    """

    code: str
    n_decisions: int
    disagreement: float | None
    abstention: float
    doubt: float
    close: bool

    def is_shown(self, show: str) -> bool:
        """Whether one of `FILTERS` keeps it."""
        return {
            "disagrees": bool(self.disagreement),
            "abstains": self.abstention > 0,
            "wavers": self.close,
            "agrees": not self.disagreement and not self.abstention,
        }.get(show, True)


class StayList:
    """Stays by other names than their own, made with a key, with what the policy says of each."""

    def __init__(self, advisor: Advisor, data: Trajectories, key: bytes) -> None:
        self.advisor, self.data, self.advice = advisor, data, advisor.ask(data)
        codes = name_stays(data, key)
        self.place = {code: number for number, code in enumerate(codes)}
        """Number of each stay by its name: what is not in it does not exist."""
        stay, n = data.decisions().stay, data.n_stays
        self.first = np.searchsorted(stay, np.arange(n + 1))
        """Where the decisions of each stay begin, shape (n_stays + 1,)."""
        counts, silent = np.diff(self.first), self.advice.abstained
        decided = np.where(silent, 0.0, self.advice.doubt)
        totals = {
            "silent": np.bincount(stay, silent, n),
            "doubt": np.bincount(stay, decided, n),
            "close": np.bincount(stay, decided >= CLOSE, n),
        }
        if data.logged:
            differs = ~silent & (self.advice.advised != data.logged_action)
            totals["differs"] = np.bincount(stay, differs, n)
        self.rows = tuple(
            StayRow(
                codes[k],
                int(counts[k]),
                float(totals["differs"][k] / counts[k]) if data.logged else None,
                float(totals["silent"][k] / counts[k]),
                float(totals["doubt"][k] / max(counts[k] - totals["silent"][k], 1)),
                bool(totals["close"][k]),
            )
            for k in np.flatnonzero(counts)
        )
        """The stays that have decisions, in the order of the data."""

    def select(self, order: str, show: str, code: str = "") -> list[StayRow]:
        """Rows to list, by one of `ORDERS` and one of `FILTERS`."""
        wanted = code.strip().upper()
        rows = [row for row in self.rows if row.is_shown(show) and row.code.startswith(wanted)]
        return sorted(rows, key=lambda row: -(getattr(row, order) or 0.0))

    def view(self, code: str, at: int) -> "StayView | None":
        """A decision of a stay, the last one where there are not so many; None without any."""
        number = self.place.get(code)
        if number is None or self.first[number] == self.first[number + 1]:
            return None
        advice = self.advice.at(slice(int(self.first[number]), int(self.first[number + 1])))
        stay = self.data.subset(slice(number, number + 1))
        return StayView(self.advisor, code, stay, advice, min(at, len(advice.abstained) - 1))


def name_stays(data: Trajectories, key: bytes) -> tuple[str, ...]:
    """Names that say nothing without the key; the same for the same key and data."""
    names: dict[str, None] = {}
    for stay in data.stay.tolist():
        digest = hmac.new(key, repr(stay).encode(), hashlib.sha256).hexdigest().upper()
        size = 8
        while digest[:size] in names and size < len(digest):
            size += 1
        names[digest[:size]] = None
    return tuple(names)


@dataclass(frozen=True, eq=False)
class StayView:
    """One decision of one stay, the one numbered `at`: its history, what was done and advised."""

    advisor: Advisor
    code: str
    stay: Trajectories
    advice: Advice
    at: int

    @cached_property
    def steps(self) -> list[int]:
        """Step of each decision."""
        return [int(step) for step in self.stay.decisions().step]

    @property
    def step(self) -> int:
        """Step of the decision."""
        return self.steps[self.at]

    @property
    def row(self) -> int:
        """The last row that the decision sees."""
        return self.step - self.stay.lag

    @property
    def abstained(self) -> bool:
        """Whether the policy leaves the decision to the clinicians."""
        return bool(self.advice.abstained[self.at])

    @property
    def advised(self) -> int:
        """The likeliest action."""
        return int(self.advice.advised[self.at])

    @property
    def logged(self) -> int | None:
        """What was done, if that is known."""
        return None if not self.stay.logged else int(self.stay.logged_action[self.at])

    @cached_property
    def features(self) -> Floats32:
        """Features of every step of the stay."""
        return np.asarray(self.stay.sequence[:], np.float32)

    def value(self, field: Field) -> Value:
        """What the decision sees last of a field, of a step or of the stay."""
        return field.read(self.stay.static[0] if field.static else self.features[self.row])

    def changed(self, values: Mapping[Field, Value]) -> "StayView":
        """The same with other values at the last step that is seen, and the policy asked anew."""
        rows, fixed = self.features.copy(), np.array(self.stay.static, np.float32)
        for field, value in values.items():
            field.write(fixed[0] if field.static else rows[self.row], value)
        stay = replace(self.stay, sequence=rows, static=fixed, truth=None)
        return replace(self, stay=stay, advice=self.advisor.ask(stay))


@dataclass(frozen=True, eq=False)
class ServedRun:
    """A run folder that is served; `stays` are the data to look at, if there are any."""

    advisor: Advisor
    name: str
    card: PolicyCard
    results: Results | None = None
    stays: StayList | None = None
