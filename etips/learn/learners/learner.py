"""What every learner can do; a learner of its own adds how it learns."""

from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from etips.choice_record import ChoiceRecord
from etips.data.decisions import Bools, Floats, Ints
from etips.data.schema import Schema
from etips.data.tables.arrays import as_trajectories, numeric
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError
from etips.evaluation.censoring import complete_losses
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.learn.fitting.candidates import Candidate
from etips.learn.fitting.checkpoints import Checkpoints
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.fit import Fit, SelectedRisk
from etips.learn.learners.sklearn_estimator import SklearnEstimator, self_normalised_risk
from etips.learn.nuisance.propensity import Quality
from etips.learn.training.epoch_report import Report
from etips.machine import still_products
from etips.policies.deployed import Deployed
from etips.policies.policy import FittedPolicy
from etips.policies.policy_files import save_policy


class Learner(SklearnEstimator, ABC):
    """Learns a policy from logged decisions.

    A learner is a dataclass whose keyword-only fields are its settings, with a method `_learn`
    that has networks trained and returns a `Fit`. It is a scikit-learn estimator too: see
    `SklearnEstimator`.
    """

    fit_: Fit
    policy_: FittedPolicy
    path_: tuple[Candidate, ...]
    selected_risk_: SelectedRisk | None
    quality_: Quality | None
    support_: float | None
    clipped_share_: float | None
    choice_: ChoiceRecord | None

    @abstractmethod
    def _learn(self, stays: Trajectories, trainer: Trainer) -> Fit:
        """Learn from logged stays; `trainer` trains networks."""

    def fit(
        self,
        data: Trajectories | ArrayLike,
        action: ArrayLike | None = None,
        loss: ArrayLike | None = None,
        *,
        report: Report | None = None,
        run: Checkpoints | None = None,
        **arrays: Any,  # noqa: ANN401
    ) -> Self:
        """Learn from logged stays, or from arrays as `from_arrays` takes them; return self.

        Args:
            data: Logged stays, or features.
            action: Logged actions, where `data` are features.
            loss: Their losses.
            report: Told after every epoch.
            run: Keeps the work in its folder and takes it up where it was stopped.
            **arrays: static, lengths, propensity, groups; see `from_arrays`.
        """
        stays = as_trajectories(data, action, loss, **arrays)
        if run is not None and not isinstance(run, Checkpoints):
            raise SettingError("run", "must be a run in use", fix="Use with Run(...) as run.")
        self._keep_names(data)
        with still_products():
            trainer = Trainer(report=report, checkpoints=run)
            learned = self._learn(complete_losses(stays), trainer)
        self.fit_ = fit = replace(learned, policy=learned.policy.having_seen(stays))
        self.policy_ = fit.policy
        self.path_ = fit.path
        self.selected_risk_ = fit.selected_risk
        self.quality_ = fit.quality
        self.support_ = fit.support
        self.clipped_share_ = fit.clipped_share
        self.choice_ = fit.choice
        return self

    def fitted_policy(self) -> FittedPolicy:
        """The policy, or a refusal if there is none yet."""
        if "fit_" not in vars(self):
            raise SettingError(type(self).__name__, "must be fitted first")
        return self.fit_.policy

    def predict_proba(self, data: Trajectories | ArrayLike, **arrays: Any) -> Floats:  # noqa: ANN401
        """Probability of every action, shape (n_decisions, n_actions), in decision order."""
        self._check_names(data)
        return self.fitted_policy().predict_proba(data, **arrays)

    def predict(self, data: Trajectories | ArrayLike, **arrays: Any) -> Ints:  # noqa: ANN401
        """The recommended action of each decision, shape (n_decisions,)."""
        self._check_names(data)
        return self.fitted_policy().predict(data, **arrays)

    def abstains(self, data: Trajectories | ArrayLike, **arrays: Any) -> Bools:  # noqa: ANN401
        """Where no action has enough support, shape (n_decisions,)."""
        return self.fitted_policy().abstains(data, **arrays)

    def deployed(self, data: Trajectories | ArrayLike, **arrays: Any) -> Deployed:  # noqa: ANN401
        """What the policy does at every decision once it is followed."""
        return self.fitted_policy().deployed(data, **arrays)

    def score(
        self,
        data: Trajectories | ArrayLike,
        action: ArrayLike | None = None,
        loss: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        **arrays: Any,  # noqa: ANN401
    ) -> float:
        """Minus the self-normalised risk of the policy as it is followed: higher is better.

        It is for searches, which need one number. Weights come from the propensities that are
        given, or from those that were fitted with the policy; of one that fitted none, from how
        often each action was taken. An estimate to believe, with limits, is `etips.evaluate`.

        Args:
            data: Logged stays that were not learned from, or features.
            action: Logged actions, where `data` are features.
            loss: Their losses.
            sample_weight: How much each decision counts, shape (n_decisions,).
            **arrays: static, lengths, propensity; see `from_arrays`.
        """
        policy = self.fitted_policy()
        self._check_names(data)
        if not isinstance(data, Trajectories):
            if loss is None:
                fix = "Searches hand it on with sklearn.set_config(enable_metadata_routing=True)."
                raise DataError("loss", "must be given to score", fix=fix)
            arrays = {"n_actions": policy.schema.n_actions, **arrays}
        stays = complete_losses(as_trajectories(data, action, loss, **arrays))
        logged, rows = stays.logged_action, np.arange(stays.n_decisions)
        if stays.propensity is not None:
            chance = stays.logged_propensity
        elif policy.propensity is not None:
            chance = policy.propensities(stays)[rows, logged]
        else:
            chance = np.bincount(logged)[logged] / len(logged)
        chance = np.maximum(chance, PROPENSITY_FLOOR)
        followed = policy.deployed(stays)
        taken = np.where(followed.abstained, chance, followed.probabilities[rows, logged])
        count = None if sample_weight is None else numeric("sample_weight", sample_weight)
        return -self_normalised_risk(taken, chance, stays.logged_loss, count)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the fitted policy; `etips.load` reads it back."""
        save_policy(self.fitted_policy(), folder, overwrite=overwrite)

    @property
    def classes_(self) -> Ints:
        """The actions, shape (n_actions,)."""
        return np.arange(self._schema().n_actions)

    @property
    def n_features_in_(self) -> int:
        """Sequential features a step; with 2-D arrays their columns."""
        return len(self._schema().sequence)

    def _schema(self) -> Schema:
        """Of the data fitted on; what is not there yet must say so as attributes do."""
        if "fit_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} is not fitted")  # hasattr asks
        return self.fit_.policy.schema
