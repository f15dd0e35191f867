"""Policies that know the truth of a simulated world: what every learner is compared with.

Each has `fit(data)`, `predict_proba(data)` of shape (n_decisions, n_actions) in decision order, and
`predict(data)` of shape (n_decisions,).
"""

from typing import Self

import numpy as np

from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError


class _Oracle:
    """What both have."""

    n_actions_: int | None = None

    def _check(self, data: Trajectories) -> None:
        """Refuse data that do not fit what was learned; questions do not say how many actions."""
        if self.n_actions_ is None:
            raise SettingError(type(self).__name__, "is not fitted", fix="Call fit first.")
        if data.logged and self.n_actions_ != data.n_actions:
            rule = f"must have the {self.n_actions_} actions the policy was fitted with"
            raise DataError("data", rule)


class LoggingPolicy(_Oracle):
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
        self._check(data)
        return data.true_logging()

    def predict(self, data: Trajectories) -> Ints:
        """Its likeliest action, shape (n_decisions,)."""
        return np.asarray(self.predict_proba(data).argmax(axis=1))


class BestPossible(_Oracle):
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
        return np.eye(data.n_actions)[self.predict(data)]

    def predict(self, data: Trajectories) -> Ints:
        """The best action, among equals the lowest, shape (n_decisions,)."""
        self._check(data)
        return np.asarray(data.true_expected_loss().argmin(axis=1))
