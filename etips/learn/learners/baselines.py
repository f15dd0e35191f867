"""Policies with nothing or next to nothing to learn: what every learner is compared with.

Each has `fit(data)`, `predict_proba(data)` of shape (n_decisions, n_actions) in decision order, and
`predict(data)` of shape (n_decisions,). The first two are learners like any other: they also take
arrays and can be saved. The others know the truth of a simulated world.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from etips.data.decisions import Bools, Floats, Ints
from etips.data.schema import Schema
from etips.data.tables.arrays import as_trajectories
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError
from etips.learn.learners import inputs, params
from etips.policies.uniform import draw_actions


@dataclass(kw_only=True, eq=False)
class RandomPolicy:
    """Every action equally likely, whoever the patient.

    Args:
        seed: Of the actions that `predict` draws; the same data get the same actions every time.
    """

    seed: int = 0

    fit = inputs.fit
    get_params = params.get_params
    set_params = params.set_params
    classes_ = property(params.classes)
    n_features_in_ = property(params.n_features)

    def _learn(self, stays: Trajectories, *_: object) -> None:
        params.check_seed(self.seed)
        if not stays.logged:  # questions may not know all actions
            raise DataError("data", "must hold actions and losses to learn from")
        self.schema_ = stays.schema
        self.n_actions_ = stays.n_actions

    def predict_proba(self, data: Trajectories | ArrayLike, **arrays: Any) -> Floats:  # noqa: ANN401
        """1/K everywhere, shape (n_decisions, n_actions)."""
        n = _check_fitted(self, as_trajectories(data, **arrays)).n_decisions
        return np.full((n, self.n_actions_), 1 / self.n_actions_)

    def predict(self, data: Trajectories | ArrayLike, **arrays: Any) -> Ints:  # noqa: ANN401
        """Draw an action for each decision, shape (n_decisions,)."""
        n = _check_fitted(self, as_trajectories(data, **arrays)).n_decisions
        return draw_actions(self.seed, self.n_actions_, n)

    def abstains(self, data: Trajectories | ArrayLike, **arrays: Any) -> Bools:  # noqa: ANN401
        """Nowhere, shape (n_decisions,)."""
        return np.zeros(_check_fitted(self, as_trajectories(data, **arrays)).n_decisions, bool)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the fitted policy; `etips.load` reads it back."""
        _save(self, folder, overwrite=overwrite, kind="uniform", seed=self.seed)


@dataclass(kw_only=True, eq=False)
class MostFrequent:
    """The action logged most often, for everyone; among equals the lowest."""

    fit = inputs.fit
    get_params = params.get_params
    set_params = params.set_params
    classes_ = property(params.classes)
    n_features_in_ = property(params.n_features)

    def _learn(self, stays: Trajectories, *_: object) -> None:
        counts = np.bincount(stays.logged_action, minlength=stays.n_actions)
        if not counts.any():
            raise DataError("data", "must hold at least one decision")
        self.schema_ = stays.schema
        self.n_actions_ = stays.n_actions
        self.action_ = int(counts.argmax())

    def predict_proba(self, data: Trajectories | ArrayLike, **arrays: Any) -> Floats:  # noqa: ANN401
        """1 for the one action, shape (n_decisions, n_actions)."""
        return _one_hot(self.predict(data, **arrays), self.n_actions_)

    def predict(self, data: Trajectories | ArrayLike, **arrays: Any) -> Ints:  # noqa: ANN401
        """The one action, shape (n_decisions,)."""
        n = _check_fitted(self, as_trajectories(data, **arrays)).n_decisions
        return np.full(n, self.action_)

    def abstains(self, data: Trajectories | ArrayLike, **arrays: Any) -> Bools:  # noqa: ANN401
        """Nowhere, shape (n_decisions,)."""
        return np.zeros(_check_fitted(self, as_trajectories(data, **arrays)).n_decisions, bool)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the fitted policy; `etips.load` reads it back."""
        constant = getattr(self, "action_", None)
        _save(self, folder, overwrite=overwrite, kind="constant", constant=constant)


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


def _check_fitted(policy: object, data: Trajectories) -> Trajectories:
    """The data, once policy and data fit together; questions do not say how many actions exist."""
    learnt = getattr(policy, "n_actions_", None)
    if learnt is None:
        raise SettingError(type(policy).__name__, "is not fitted", fix="Call fit first.")
    if data.logged and learnt != data.n_actions:
        raise DataError("data", f"must have the {learnt} actions the policy was fitted with")
    return data


def _save(policy: object, folder: str | Path, *, overwrite: bool, **parts: Any) -> None:  # noqa: ANN401
    """Write a policy of these parts; see `FittedPolicy`."""
    schema = getattr(policy, "schema_", None)
    if not isinstance(schema, Schema):
        raise SettingError(type(policy).__name__, "is not fitted", fix="Call fit first.")
    # Policy files need torch, which takes a second to import; these policies do not.
    from etips.policies.policy import FittedPolicy  # noqa: PLC0415
    from etips.policies.policy_files import save_policy  # noqa: PLC0415

    save_policy(FittedPolicy(schema=schema, **parts), folder, overwrite=overwrite)


def _one_hot(action: Ints, n_actions: int) -> Floats:
    return np.eye(n_actions)[action]
