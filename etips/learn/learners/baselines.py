"""Learners with nothing or next to nothing to learn: what every other one is compared with."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError, require_seed
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.learner import Fit, Learner
from etips.learn.learners.policy_search import NetworkLearner
from etips.learn.nuisance.fitted_nuisances import fit_nuisances
from etips.policies.policy import FittedPolicy


@dataclass(kw_only=True, eq=False)
class RandomPolicy(Learner):
    """Every action equally likely, whoever the patient.

    Args:
        seed: Of the actions that `predict` draws; the same data get the same actions every time.
    """

    seed: int = 0

    def _learn(self, stays: Trajectories, trainer: Trainer) -> Fit:  # noqa: ARG002
        require_seed(self.seed)
        if not stays.logged:  # questions may not know all actions
            raise DataError("data", "must hold actions and losses to learn from")
        return Fit(FittedPolicy("uniform", stays.schema, seed=self.seed))


@dataclass(kw_only=True, eq=False)
class MostFrequent(Learner):
    """The action logged most often, for everyone; among equals the lowest."""

    def _learn(self, stays: Trajectories, trainer: Trainer) -> Fit:  # noqa: ARG002
        counts = np.bincount(stays.logged_action, minlength=stays.n_actions)
        if not counts.any():
            raise DataError("data", "must hold at least one decision")
        return Fit(FittedPolicy("constant", stays.schema, constant=int(counts.argmax())))


@dataclass(kw_only=True, eq=False)
class PredictiveModel(NetworkLearner):
    """Imitate the clinicians: the fitted propensities are the policy.

    Args:
        encoder: As in `EtIPS`.
        training: Folds, device, and settings of the networks.
        seed: Same seed, machine and versions, same policy.
    """

    def _learn(self, stays: Trajectories, trainer: Trainer) -> Fit:
        base = fit_nuisances(
            stays,
            trainer,
            encoder=self.encoder,
            training=self.training,
            seed=self.seed,
            support=0.0,
        )
        propensity = base.propensity
        return Fit(base.policy("imitation"), propensity=propensity, quality=propensity.quality)


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
