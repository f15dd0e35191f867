"""Policies with nothing or next to nothing to learn: what every learner is compared with.

Each has `fit(data)`, `predict_proba(data)` of shape (n_decisions, n_actions) in decision order, and
`predict(data)` of shape (n_decisions,).
"""

from typing import Self

import numpy as np

from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError


class RandomPolicy:
    """Every action equally likely, whoever the patient.

    Args:
        seed: Of the actions that `predict` draws; the same data get the same actions every time.
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, data: Trajectories) -> Self:
        """Learn how many actions there are."""
        self.n_actions_ = data.n_actions
        return self

    def predict_proba(self, data: Trajectories) -> Floats:
        """1/K everywhere, shape (n_decisions, n_actions)."""
        _check_fitted(self, data)
        return np.full((data.n_decisions, self.n_actions_), 1 / self.n_actions_)

    def predict(self, data: Trajectories) -> Ints:
        """Draw an action for each decision, shape (n_decisions,)."""
        _check_fitted(self, data)
        return np.random.default_rng(self.seed).integers(self.n_actions_, size=data.n_decisions)


class MostFrequent:
    """The action logged most often, for everyone; among equals the lowest."""

    def fit(self, data: Trajectories) -> Self:
        """Count the logged actions."""
        counts = np.bincount(data.logged_action, minlength=data.n_actions)
        if not counts.any():
            raise DataError("data", "must hold at least one decision")
        self.n_actions_ = data.n_actions
        self.action_ = int(counts.argmax())
        return self

    def predict_proba(self, data: Trajectories) -> Floats:
        """1 for the one action, shape (n_decisions, n_actions)."""
        return _one_hot(self.predict(data), data.n_actions)

    def predict(self, data: Trajectories) -> Ints:
        """The one action, shape (n_decisions,)."""
        _check_fitted(self, data)
        return np.full(data.n_decisions, self.action_)


class LoggingPolicy:
    """The true logging policy of a simulated world; refused where the truth is not known.

    It may see more than a decision's history: with `lag=1` the clinicians of ICU-Sepsis act on the
    state that is hidden from every learner.
    """

    def fit(self, data: Trajectories) -> Self:
        """Learn how many actions there are; `data` must come from a simulated world."""
        data.true_logging()
        self.n_actions_ = data.n_actions
        return self

    def predict_proba(self, data: Trajectories) -> Floats:
        """What the logged actions were drawn from, shape (n_decisions, n_actions)."""
        _check_fitted(self, data)
        return data.true_logging()

    def predict(self, data: Trajectories) -> Ints:
        """Its likeliest action, shape (n_decisions,)."""
        return np.asarray(self.predict_proba(data).argmax(axis=1))


class BestPossible:
    """The action of least true expected loss; refused where the truth is not known.

    No learner can do better. With `lag=1` none may get near: it sees the state of the decision.
    """

    def fit(self, data: Trajectories) -> Self:
        """Learn how many actions there are; `data` must come from a simulated world."""
        data.true_expected_loss()
        self.n_actions_ = data.n_actions
        return self

    def predict_proba(self, data: Trajectories) -> Floats:
        """1 for the best action, shape (n_decisions, n_actions)."""
        return _one_hot(self.predict(data), data.n_actions)

    def predict(self, data: Trajectories) -> Ints:
        """The best action, among equals the lowest, shape (n_decisions,)."""
        _check_fitted(self, data)
        return np.asarray(data.true_expected_loss().argmin(axis=1))


def _check_fitted(policy: object, data: Trajectories) -> None:
    learnt = getattr(policy, "n_actions_", None)
    if learnt is None:
        raise SettingError(type(policy).__name__, "is not fitted", fix="Call fit first.")
    if learnt != data.n_actions:
        raise DataError("data", f"must have the {learnt} actions the policy was fitted with")


def _one_hot(action: Ints, n_actions: int) -> Floats:
    return np.eye(n_actions)[action]
