"""Losses that were not observed: how many, what became of them, what they could have been."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class MissingAction:
    """One action: how often it was taken, and how often without a loss."""

    action: int
    n_missing: int
    n_taken: int


@dataclass(frozen=True)
class MissingLossResult:
    """Logged actions without a loss.

    Args:
        treatment: "drop": they are no decisions. "weight": others that look alike speak for them.
        n_missing: How many; None if they, or the others, are too few to be told.
        n_taken: Of how many.
        by_action: Those that may be told.
        raised_share: With weights: decisions whose chance of being observed was raised to 0.05.
        sentence: All of it in a line.
    """

    treatment: Literal["drop", "weight"]
    n_missing: int | None
    n_taken: int | None
    by_action: tuple[MissingAction, ...]
    raised_share: float | None
    sentence: str


@dataclass(frozen=True)
class MissingBound:
    """What is possible if who lacks a loss depends on the loss; limits allow for chance.

    Args:
        gamma: By how much the odds of a missing loss may; None for any amount.
        risk_low: Least risk of the policy.
        risk_high: Most.
        gain_low: Least difference from the clinicians; below zero is better.
        gain_high: Most.
    """

    gamma: float | None
    risk_low: float | None
    risk_high: float | None
    gain_low: float | None
    gain_high: float | None


@dataclass(frozen=True)
class MissingBoundsResult:
    """Bounds of one policy.

    Args:
        gamma_point: Least gamma at which the gain may be gone; None for none up to 1000.
        bounds: By rising gamma, "any amount" last.
    """

    gamma_point: float | None
    bounds: tuple[MissingBound, ...]
