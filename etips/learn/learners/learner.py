"""What every learner can do; a learner of its own adds how it learns."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

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
from etips.learn.fitting.trainer import Checkpoints, Trainer
from etips.learn.nuisance.outcome import FittedOutcome
from etips.learn.nuisance.propensity import FittedPropensity, Quality
from etips.learn.training.epoch_report import Report
from etips.machine import still_products
from etips.policies.deployed import Deployed
from etips.policies.policy import FittedPolicy
from etips.policies.policy_files import save_policy

ROUTED = {
    "fit": ("loss", "groups", "propensity", "static", "lengths"),
    "score": ("loss", "sample_weight", "propensity", "static", "lengths"),
}
"""Arrays beside features and actions that scikit-learn's searches and pipelines hand on."""


class SelectedRisk(NamedTuple):
    """What choosing comes to on patients that it did not look at.

    Args:
        risk: Each fold judged by the candidate that the other folds choose.
        std_error: Of that, by patient.
        naive: Risk of the chosen candidate, the luckiest of all.
    """

    risk: float
    std_error: float
    naive: float


@dataclass(frozen=True, eq=False)
class Fit:
    """What a learner learned; its attributes that end in an underscore are taken from here.

    Args:
        policy: What it recommends.
        propensity: Networks that imitate the clinicians; None if it fits none.
        outcome: Networks that predict losses; None if it fits none.
        path: Every candidate it chose from; empty if it compares none.
        quality: How well the propensities fit; None if it fits none.
        support: Least propensity of a recommended action; None if it has no such floor.
        whole_stay: The outcome of held-out stays in which a policy that looks that far decides for
            as long as the log can tell, and the clinicians afterwards; None of any other policy.
        clipped_share: Share of decisions whose propensity was raised; None if it weighs none.
        choice: What a super learner tried and kept; None of any other learner.
    """

    policy: FittedPolicy
    propensity: FittedPropensity | None = None
    outcome: FittedOutcome | None = None
    path: tuple[Candidate, ...] = ()
    quality: Quality | None = None
    support: float | None = None
    clipped_share: float | None = None
    whole_stay: Candidate | None = None
    choice: ChoiceRecord | None = None

    @property
    def selected_risk(self) -> SelectedRisk | None:
        """Risk of what was chosen, corrected for choosing; None without folds or candidates."""
        chosen = next((candidate for candidate in self.path if candidate.chosen), None)
        if chosen is None or chosen.corrected is None or chosen.corrected_error is None:
            return None
        return SelectedRisk(chosen.corrected, chosen.corrected_error, chosen.risk)


class Learner(ABC):
    """Learns a policy from logged decisions.

    A learner is a dataclass whose keyword-only fields are its settings, with a method `_learn`
    that has networks trained and returns a `Fit`. It is a scikit-learn estimator too, so that it
    stands in pipelines and searches; scikit-learn itself is imported only where it asks.
    """

    fit_: Fit
    policy_: FittedPolicy
    path_: tuple[Candidate, ...]
    selected_risk_: SelectedRisk | None
    quality_: Quality | None
    support_: float | None
    clipped_share_: float | None
    choice_: ChoiceRecord | None
    feature_names_in_: np.ndarray
    _metadata_request: Any

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
        self.policy_, self.path_, self.selected_risk_ = fit.policy, fit.path, fit.selected_risk
        self.quality_, self.support_ = fit.quality, fit.support
        self.clipped_share_, self.choice_ = fit.clipped_share, fit.choice
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
        weight = taken / chance
        if sample_weight is not None:
            weight = weight * numeric("sample_weight", sample_weight)
        total = float(weight.sum())
        return -float(weight @ stays.logged_loss) / total if total > 0 else float("nan")

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

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Settings by name; those within settings too if `deep`: `training__policy__epochs`."""
        params = _fields(self)
        return _with_inner(params) if deep else params

    def set_params(self, **params: object) -> Self:
        """Change settings by name, those within settings too; return self."""
        known = self.get_params()
        for name in params:
            if name not in known:
                raise SettingError(name, f"is not a setting of {type(self).__name__}")
        for name, value in sorted(params.items(), key=lambda item: item[0].count("__")):
            outer, *path = name.split("__")
            setattr(self, outer, _changed(getattr(self, outer), path, value))
        return self

    def get_metadata_routing(self) -> Any:  # noqa: ANN401  # scikit-learn's
        """Which arrays `fit` and `score` ask for, besides features and actions: all of `ROUTED`.

        It takes `sklearn.set_config(enable_metadata_routing=True)` for searches to hand them on.
        """
        if "_metadata_request" not in vars(self):
            from sklearn.utils.metadata_routing import MetadataRequest  # noqa: PLC0415

            self._metadata_request = MetadataRequest(owner=self)
            for method, names in ROUTED.items():
                self._request(method, dict.fromkeys(names, True))
        return self._metadata_request

    def set_fit_request(self, **requests: bool | str | None) -> Self:
        """Change which arrays `fit` asks for; a text is the name they come under. Return self."""
        return self._request("fit", requests)

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """Change which arrays `score` asks for; return self."""
        return self._request("score", requests)

    def _request(self, method: str, requests: Mapping[str, bool | str | None]) -> Self:
        for name in requests:
            if name not in ROUTED[method]:
                raise SettingError(name, f"is none of the arrays that {method} takes")
        for name, alias in requests.items():
            getattr(self.get_metadata_routing(), method).add_request(param=name, alias=alias)
        return self

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401  # scikit-learn's
        """A classifier of actions that needs them to learn; features must be dense and known."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags  # noqa: PLC0415

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(),
            non_deterministic=False,
        )

    def _keep_names(self, data: object) -> None:
        """Remember the names of a frame's columns, as `feature_names_in_`."""
        names = _names_of(data)
        vars(self).pop("feature_names_in_", None)
        if names:
            self.feature_names_in_ = np.array(names, object)

    def _check_names(self, data: object) -> None:
        """Refuse a frame whose columns are not those fitted on, in their order."""
        names, known = _names_of(data), vars(self).get("feature_names_in_")
        if names and known is not None and list(known) != names:
            rule = "The feature names should match those that were passed during fit"
            raise DataError("features", rule)  # scikit-learn's own words, which its checks want


def _names_of(data: object) -> Sequence[str]:
    """Names of a frame's columns where all of them are texts, otherwise none."""
    names = list(getattr(data, "columns", ()))
    return names if all(isinstance(name, str) for name in names) else []


def _fields(holder: Any) -> dict[str, object]:  # noqa: ANN401  # any dataclass
    return {field.name: getattr(holder, field.name) for field in fields(holder)}


def _with_inner(params: Mapping[str, object]) -> dict[str, object]:
    """Settings, each followed by those within it."""
    every: dict[str, object] = {}
    for name, value in params.items():
        every[name] = value
        if is_dataclass(value) and not isinstance(value, type):
            every |= {f"{name}__{key}": held for key, held in _with_inner(_fields(value)).items()}
    return every


def _changed(holder: Any, path: Sequence[str], value: object) -> object:  # noqa: ANN401
    """The holder with the setting at the path changed."""
    if not path:
        return value
    return replace(holder, **{path[0]: _changed(getattr(holder, path[0]), path[1:], value)})
