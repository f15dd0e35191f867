"""Which steps are decisions, what each may see, and losses as functions of a stay."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from etips.errors import DataError, SettingError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MissingLoss = Literal["drop", "weight"]
"""What becomes of an action whose loss is not known."""


def require_missing_loss(value: str) -> None:
    """Refuse any other word."""
    if value not in get_args(MissingLoss):
        raise SettingError("missing_loss", 'must be "drop" or "weight"')


PER_STEP = ("action", "loss", "propensity", "eligible", "negative_control")
"""Roles that have a value a step where they are known."""

NO_ACTION = -1
"""Stands in `action` at a step where no action is known."""


class Decisions(NamedTuple):
    """Decisions in the order every `predict_proba` uses: by stay, then by step.

    `stay` counts stays from 0; `step` counts the steps of that stay from 0. The step after the last
    one (`step == number of steps`) occurs only in data without a log, with `lag=1`.
    """

    stay: Ints
    step: Ints


def find_decisions(offsets: Ints, lag: int, known: Bools | None) -> Decisions:
    """List the decisions.

    A step is a decision when it is `known` and its history is not empty. Without a log (`known` is
    None) every step is one, and with `lag=1` so is the step after the last: what to do next.

    Args:
        offsets: Where each stay starts, shape (n_stays + 1,).
        lag: 1 if a decision sees only earlier steps, 0 if also its own.
        known: Whether action and loss are known at each step, shape (total_steps,).
    """
    lengths = np.diff(offsets)
    if known is None:
        counts = lengths  # lag 0: steps 0..T-1; lag 1: steps 1..T
        stay = np.repeat(np.arange(counts.size), counts)
        return Decisions(stay, np.arange(stay.size) - offsets[stay] + lag)
    stay = np.repeat(np.arange(lengths.size), lengths)
    step = np.arange(stay.size) - offsets[stay]
    chosen = known & (step >= lag)
    return Decisions(stay[chosen], step[chosen])


@dataclass(frozen=True, eq=False, repr=False)
class Stay:
    """One stay as a loss sees it: its step labels and its sequential features by name."""

    step: NDArray[Any]
    sequence: NDArray[np.float32]
    names: tuple[str, ...]

    def __getitem__(self, name: str) -> Floats:
        if name not in self.names:
            raise DataError("loss", f"needs the sequential feature {name!r}, which is not there")
        return self.sequence[:, self.names.index(name)].astype(np.float64)


Loss = Callable[[Stay], Floats]
"""Loss of the action at each step, shape (steps,); NaN where it is not known."""


def sofa_change(stay: Stay, *, column: str = "SOFA") -> Floats:
    """The paper's loss: 0 if SOFA falls by the next step, or stays at 5 or below; else 1.

    "Next" means the next step number. Where that step or one of the two scores is missing, and at
    the end, the loss is not known (NaN), so no decision is made of a gap.
    """
    if not np.issubdtype(stay.step.dtype, np.integer):
        raise DataError(
            "step", "must be whole numbers, so that a gap can be told", fix="Count blocks."
        )
    sofa = stay[column]
    following = np.full(sofa.size, np.nan)
    following[:-1] = np.where(np.diff(stay.step) == 1, sofa[1:], np.nan)
    return sofa_change_loss(sofa, following)


def sofa_change_loss(sofa: Floats, following: Floats) -> Floats:
    """0 if SOFA falls, or stays at 5 or below; 1 if it rises or stays above 5; NaN if unknown."""
    worse = (following > sofa) | ((following == sofa) & (sofa > 5))
    return np.where(np.isnan(sofa) | np.isnan(following), np.nan, worse)


def final_value(column: str) -> Loss:
    """A loss that charges every decision with the last value of `column`, say death."""

    def loss(stay: Stay) -> Floats:
        values = stay[column]
        return np.full(values.size, values[-1])

    return loss
