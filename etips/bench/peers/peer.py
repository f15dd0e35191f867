"""What a policy learner of another package is shown, and its policy among ours."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from etips.data.decisions import Bools, Floats, Ints
from etips.data.history_rows import summarise_history
from etips.data.trajectories import Trajectories
from etips.errors import DataError
from etips.models.row_model import standardise

FEWEST = 20
"""Decisions that an action must have before a model of it alone is asked for anything."""

FLOOR = 0.01
"""Estimated propensities below this are raised to it, as ours are."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """Logged decisions as tabular packages take them, stay by stay in the order of time.

    Args:
        rows: The documented summary of each history, standardised, 0 where missing, shape (n, d).
        propensity: Of the logged action where it is known by design, shape (n,); else None.
        last: Whether a decision is the last of its stay, shape (n,).
        quick: Whether to learn for a moment only.
    """

    rows: Floats
    action: Ints
    loss: Floats
    propensity: Floats | None
    last: Bools
    n_actions: int
    seed: int
    quick: bool = False

    @property
    def common(self) -> Ints:
        """Actions that were taken often enough to learn of them."""
        counts = np.bincount(self.action, minlength=self.n_actions)
        enough = np.flatnonzero(counts >= min(FEWEST, counts.max(initial=0)))
        return np.asarray(enough, np.int64)

    @property
    def reward(self) -> Floats:
        """What packages that maximise take: not below 0."""
        return np.asarray(self.loss.max() - self.loss)

    def take(self, kept: Bools) -> "Lesson":
        """Some of the decisions; what their stays were is not told any more."""
        return replace(
            self,
            rows=self.rows[kept],
            action=self.action[kept],
            loss=self.loss[kept],
            propensity=None if self.propensity is None else self.propensity[kept],
            last=self.last[kept],
        )


Choose = Callable[[Floats], Ints]
"""Of standardised rows (n, d) the recommended action of each, shape (n,)."""

Teach = Callable[[Lesson], Choose]
"""Learns from a lesson."""


@dataclass(frozen=True, eq=False)
class PeerPolicy:
    """A learned rule of another package, evaluated like any policy.

    Args:
        mean: Of each column of the summary.
        scale: What each is divided by.
    """

    choose: Choose
    mean: Floats
    scale: Floats
    n_actions: int

    @classmethod
    def learned(cls, teach: Teach, stays: Trajectories, *, seed: int, quick: bool = False) -> Self:
        """What a package learns from logged stays.

        Args:
            teach: Of the package.
            stays: With propensities where these are known by design.
            seed: Of the learner.
            quick: Whether to learn for a moment only.
        """
        rows = summarise_history(stays).astype(np.float64)
        mean, scale = _spread(rows)
        stay = stays.decisions().stay
        lesson = Lesson(
            rows=standardise(rows, mean, scale),
            action=stays.logged_action,
            loss=stays.logged_loss,
            propensity=None if stays.propensity is None else stays.logged_propensity,
            last=np.append(stay[1:] != stay[:-1], True),
            n_actions=stays.n_actions,
            seed=seed,
            quick=quick,
        )
        return cls(teach(lesson), mean, scale, stays.n_actions)

    def predict_proba(self, data: Trajectories) -> Floats:
        """One sure action a decision, shape (n_decisions, n_actions)."""
        rows = summarise_history(data).astype(np.float64)
        taken = np.asarray(self.choose(standardise(rows, self.mean, self.scale)))
        if taken.shape != (data.n_decisions,):
            raise DataError("peer", "must recommend one action a decision")
        return np.asarray(np.eye(self.n_actions)[taken.astype(np.int64)])


def _spread(rows: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of what is known of each column; 0 and 1 where nothing is."""
    known = ~np.isnan(rows)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, rows, 0).sum(axis=0) / count
    spread = np.sqrt((np.where(known, rows - mean, 0) ** 2).sum(axis=0) / count)
    return mean, np.where(spread > 1e-8, spread, 1.0)


def logged_chances(lesson: Lesson) -> Floats:
    """Probability of each logged action, shape (n,)."""
    if lesson.propensity is not None:
        return lesson.propensity
    present = np.unique(lesson.action)
    if present.size < 2:
        return np.ones(lesson.action.size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=50 if lesson.quick else 300)
        model.fit(lesson.rows, lesson.action)
    likely = model.predict_proba(lesson.rows)
    own = likely[np.arange(lesson.action.size), np.searchsorted(model.classes_, lesson.action)]
    return np.asarray(np.maximum(own, FLOOR), np.float64)
