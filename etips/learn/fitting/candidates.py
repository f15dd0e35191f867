"""A policy that could be chosen, and what held-out decisions say of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from etips.data.decisions import Bools, Floats, Ints
from etips.learn.fitting.risk_totals import Totals, Weighing

FACTOR_RANGE = (0.7, 1.4)
"""A candidate whose matching factor lies outside has left the log behind; its SNIPS says little."""

LEAST_SIZE = 30.0
"""Least effective number of decisions that a candidate's risk must rest on."""


@dataclass(frozen=True)
class Candidate:
    """One policy that could be chosen.

    Args:
        translation: It was trained with; NaN for one that was trained without, or not at all.
        risk: SNIPS, or its doubly robust form where losses are predicted.
        std_error: Of the risk, by patient.
        matching_factor: Mean weight, 1 in expectation.
        effective_size: Effective number of decisions.
        chosen: Whether it became the policy.
        clinicians: Whether it is the clinicians themselves.
        corrected: Of the chosen one: risk of what choosing comes to, each fold judged by a choice
            that did not look at it. The risk above is after selection, so the luckiest's. None of
            others, and where there are no folds.
        corrected_error: Standard error of that.
        epochs: Most that one of its networks learned for; None where nothing was trained, or nobody
            counted.
        form: What it was trained by; see `etips.learn.learners.policy_objectives`.
        strength: How much that smooths or fears; NaN where it has no such number.
    """

    translation: float
    risk: float
    std_error: float
    matching_factor: float
    effective_size: float
    chosen: bool = False
    clinicians: bool = False
    corrected: float | None = None
    corrected_error: float | None = None
    epochs: int | None = None
    form: str = "translated"
    strength: float = math.nan

    @property
    def sound(self) -> bool:
        """Whether its risk can be believed enough to choose by."""
        low, high = FACTOR_RANGE
        return low <= self.matching_factor <= high and self.effective_size >= LEAST_SIZE


@dataclass(frozen=True, eq=False)
class Judged:
    """Candidates, and what their risks are made of.

    Args:
        candidates: In the order of the columns of `totals`.
        totals: By patient.
    """

    candidates: tuple[Candidate, ...]
    totals: Totals

    def on(self, patients: Bools) -> "Judged":
        """The same as some patients alone would judge them; `patients` has shape (k,)."""
        return judge(self.candidates, self.totals.of(patients))


def judge(candidates: Sequence[Candidate], totals: Totals) -> Judged:
    """Candidates with the figures that follow from totals, one column a candidate."""
    each = zip(candidates, range(len(candidates)), strict=True)
    return Judged(tuple(_measured(own, totals, place) for own, place in each), totals)


def blank(translation: float = math.nan) -> Candidate:
    """A candidate that is not judged yet."""
    return Candidate(translation, np.inf, np.inf, 0.0, 0.0)


def estimate_candidate(
    chosen: Floats, propensity: Floats, loss: Floats, cluster: Ints
) -> Candidate:
    """What the log says of a policy.

    Args:
        chosen: Policy's probability of the logged action, shape (n,).
        propensity: Of the logged action, clipped, shape (n,).
        loss: Of the logged action, shape (n,).
        cluster: Patient (or stay) of each decision, shape (n,).
    """
    totals = Weighing(propensity, loss, cluster).totals([chosen])
    return _measured(blank(), totals, 0)


def _measured(candidate: Candidate, totals: Totals, place: int) -> Candidate:
    if not totals.weight[:, place].any():
        nothing = blank()
        return replace(
            candidate,
            risk=nothing.risk,
            std_error=nothing.std_error,
            matching_factor=nothing.matching_factor,
            effective_size=nothing.effective_size,
        )
    evidence = totals.evidence(place)
    return replace(
        candidate,
        risk=evidence.value,
        std_error=evidence.std_error,
        matching_factor=totals.matching_factor(place),
        effective_size=totals.effective_size(place),
    )
