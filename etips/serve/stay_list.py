"""The stays that can be looked at: under other names, sorted by what is worth a look."""

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories
from etips.serve.advice import Advice, Advisor

Order = Literal["disagreement", "abstention", "doubt"]

ORDERS: dict[Order, str] = {
    "disagreement": "most disagreement first",
    "abstention": "most abstention first",
    "doubt": "most doubt first",
}

Show = Literal["all", "disagrees", "abstains", "wavers", "agrees"]

SHOWN: dict[Show, str] = {
    "all": "all stays",
    "disagrees": "the policy disagrees somewhere",
    "abstains": "the policy abstains somewhere",
    "wavers": "a close call somewhere",
    "agrees": "the policy agrees throughout",
}

CLOSE = 0.9
"""Doubt from which a decision is a close call: the second choice is within ten per cent."""


@dataclass(frozen=True)
class StayRow:
    """A stay in the list.

    Args:
        code: What it is called here.
        n_decisions: Its decisions.
        disagreement: Share of them at which something else was done than recommended; None without
            a log.
        abstention: Share of them at which the policy abstains.
        doubt: Mean doubt where it does not abstain.
        close: Whether one of them is a close call.
    """

    code: str
    n_decisions: int
    disagreement: float | None
    abstention: float
    doubt: float
    close: bool


@dataclass(frozen=True, eq=False)
class StayList:
    """Stays with what the policy says of them.

    Args:
        data: The stays.
        advice: At every decision.
        codes: Name of each stay here.
    """

    data: Trajectories
    advice: Advice
    codes: tuple[str, ...]

    @classmethod
    def of(cls, advisor: Advisor, data: Trajectories, key: bytes) -> "StayList":
        """Ask about every stay, once."""
        return cls(data, advisor.ask(data), name_stays(data, key))

    @cached_property
    def place(self) -> dict[str, int]:
        """Number of each stay by its name here: what is not in it does not exist."""
        return {code: number for number, code in enumerate(self.codes)}

    @cached_property
    def first(self) -> Ints:
        """Where the decisions of each stay begin, shape (n_stays + 1,)."""
        stay = self.data.decisions().stay
        return np.searchsorted(stay, np.arange(self.data.n_stays + 1))

    @cached_property
    def rows(self) -> tuple[StayRow, ...]:
        """The stays that have decisions, in the order of the data."""
        stay, n = self.data.decisions().stay, self.data.n_stays
        silent = self.advice.abstained
        counts = np.bincount(stay, minlength=n)

        def mean(values: Floats, over: Ints = counts) -> list[float]:
            return list(np.bincount(stay, values, n) / np.maximum(over, 1))

        spoken = np.bincount(stay, ~silent, n).astype(np.int64)
        doubt = mean(np.where(silent, 0.0, self.advice.doubt), spoken)
        close = np.bincount(stay, ~silent & (self.advice.doubt >= CLOSE), n) > 0
        differs: list[float] | list[None] = [None] * n
        if self.data.logged:
            other = ~silent & (self.advice.advised != self.data.logged_action)
            differs = mean(other.astype(float))
        abstains = mean(silent.astype(float))
        return tuple(
            StayRow(
                self.codes[k], int(counts[k]), differs[k], abstains[k], doubt[k], bool(close[k])
            )
            for k in range(n)
            if counts[k]
        )

    def select(self, order: Order, show: Show, code: str = "") -> list[StayRow]:
        """Rows to list, what is most worth a look first."""
        keep, height = _FILTERS[show], _HEIGHTS[order]
        wanted = code.strip().upper()
        rows = [row for row in self.rows if keep(row) and row.code.startswith(wanted)]
        return sorted(rows, key=lambda row: -height(row))

    def decisions(self, code: str) -> slice:
        """Places of a stay's decisions among all."""
        number = self.place[code]
        return slice(int(self.first[number]), int(self.first[number + 1]))


_HEIGHTS: dict[Order, Callable[[StayRow], float]] = {
    "disagreement": lambda row: row.disagreement or 0.0,
    "abstention": lambda row: row.abstention,
    "doubt": lambda row: row.doubt,
}
_FILTERS: dict[Show, Callable[[StayRow], bool]] = {
    "all": lambda _: True,
    "disagrees": lambda row: bool(row.disagreement),
    "abstains": lambda row: row.abstention > 0,
    "wavers": lambda row: row.close,
    "agrees": lambda row: not row.disagreement and not row.abstention,
}


def name_stays(data: Trajectories, key: bytes) -> tuple[str, ...]:
    """Names that tell nothing to whoever lacks the key; the same for the same key and data."""
    made: dict[str, None] = {}
    for stay in data.stay.tolist():
        digest = hmac.new(key, repr(stay).encode(), hashlib.sha256).hexdigest().upper()
        size = 8
        while digest[:size] in made and size < len(digest):
            size += 1
        made[digest[:size]] = None
    return tuple(made)
