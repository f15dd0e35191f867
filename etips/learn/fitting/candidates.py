"""A policy that could be chosen, and what held-out decisions say of it."""

from dataclasses import dataclass

import numpy as np

from etips.data.decisions import Floats, Ints
from etips.evaluation.risk import matching_factor, snips

FACTOR_RANGE = (0.7, 1.4)
"""A candidate whose matching factor lies outside has left the log behind; its SNIPS says little."""

LEAST_SIZE = 30.0
"""Least effective number of decisions that a candidate's risk must rest on."""


@dataclass(frozen=True)
class Candidate:
    """One policy that could be chosen.

    Args:
        translation: It was trained with; NaN for a constant policy.
        action: The one action of a constant policy, else None.
        risk: SNIPS.
        std_error: Of the risk, by stay.
        matching_factor: Mean weight, 1 in expectation.
        effective_size: Effective number of decisions.
        chosen: Whether it became the policy.
    """

    translation: float
    action: int | None
    risk: float
    std_error: float
    matching_factor: float
    effective_size: float
    chosen: bool = False

    @property
    def sound(self) -> bool:
        """Whether its risk can be believed enough to choose by."""
        low, high = FACTOR_RANGE
        return low <= self.matching_factor <= high and self.effective_size >= LEAST_SIZE


def estimate_candidate(
    chosen: Floats,
    propensity: Floats,
    loss: Floats,
    stay: Ints,
    translation: float,
    action: int | None,
) -> Candidate:
    """What the log says of a policy.

    Args:
        chosen: Policy's probability of the logged action, shape (n,).
        propensity: Of the logged action, clipped, shape (n,).
        loss: Of the logged action, shape (n,).
        stay: Of each decision, shape (n,).
        translation: The policy was trained with.
        action: Of a constant policy.
    """
    weight = chosen / propensity
    if not weight.any():
        return Candidate(translation, action, np.inf, np.inf, 0.0, 0.0)
    estimate = snips(loss, weight, stay)
    share = weight / weight.max()  # squares of tiny weights would vanish
    return Candidate(
        translation,
        action,
        estimate.risk,
        estimate.std_error,
        matching_factor(weight, stay).risk,
        float(share.sum() ** 2 / (share**2).sum()),
    )
