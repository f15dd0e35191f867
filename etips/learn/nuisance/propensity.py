"""How likely each logged action was: fitted by networks, by any classifier, or known."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError, require
from etips.learn.fitting.crossfit import fit_sets, out_of_fold
from etips.learn.fitting.prepare import Prepared, seeds_from
from etips.learn.training.epoch_report import Report
from etips.learn.training.objectives import cross_entropy
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle
from etips.models.encoders.encoder import Encoder
from etips.models.network import Network

PURPOSE = 1  # of the random numbers drawn here
N_BINS = 15  # of the calibration error


class Classifier(Protocol):
    """A classifier of scikit-learn's kind."""

    def fit(self, X: NDArray[np.float32], y: Ints) -> object:  # noqa: N803  # their spelling
        """Learn."""

    def predict_proba(self, X: NDArray[np.float32]) -> Floats:  # noqa: N803
        """Probability of each class in `classes_`, shape (n, n_classes)."""


@runtime_checkable
class PropensityModel(Protocol):
    """Anything that can be fitted to logged stays and gives the probability of every action."""

    def fit(self, data: Trajectories) -> object:
        """Learn from logged stays."""

    def predict_proba(self, data: Trajectories) -> Floats:
        """Probability of every action, shape (n_decisions, n_actions), in decision order."""


@dataclass(frozen=True)
class Quality:
    """How well the propensities fit stays that were not learnt from.

    Args:
        accuracy: Share of logged actions that are the likeliest.
        log_loss: Mean of minus the log-probability of the logged action.
        calibration_error: Mean gap between the likeliest action's probability and how often it was
            taken, over fifteen bins.
    """

    accuracy: float
    log_loss: float
    calibration_error: float


@dataclass(frozen=True, eq=False)
class FittedPropensity:
    """Networks that imitate the clinicians, and what they said of stays they had not seen.

    Args:
        bundle: One network a fold.
        temperature: Divides the logits, so that probabilities mean what they say.
        log_probabilities: Out of fold, shape (n_decisions, n_actions).
        quality: Out of fold.
    """

    bundle: Bundle
    temperature: float
    log_probabilities: Floats
    quality: Quality


def fit_propensity(
    prepared: Prepared,
    encoder: Encoder,
    settings: Settings,
    *,
    seed: int,
    calibrate: bool = True,
    report: Report | None = None,
) -> FittedPropensity:
    """Fit the clinicians' policy, one network a fold, all of them at once.

    Args:
        prepared: The stays.
        encoder: Of the networks.
        settings: Of the training.
        seed: Of the networks.
        calibrate: Fit a temperature on the out-of-fold logits.
        report: Told after every epoch.
    """
    steps, data = prepared.steps, prepared.data
    network = Network(encoder, steps.n_features, data.static.shape[1], data.n_actions)
    bundle = fit_sets(
        prepared,
        network,
        lambda outputs, seen: cross_entropy(outputs, prepared.action[seen]),
        stage="propensity",
        settings=settings,
        seeds=list(seeds_from(seed, PURPOSE, prepared.folds.n_networks)),
        report=report,
    )
    logits = out_of_fold(bundle, prepared, lambda outputs, _: outputs)[0].double()
    action = torch.from_numpy(data.logged_action.copy()).to(logits.device)
    temperature = fit_temperature(logits, action) if calibrate else 1.0
    log_probabilities = (logits / temperature).log_softmax(-1).cpu().numpy()
    return FittedPropensity(
        bundle,
        temperature,
        log_probabilities,
        measure(np.exp(log_probabilities), data.logged_action),
    )


def fit_temperature(logits: Tensor, action: Tensor) -> float:
    """The temperature that makes the logged actions likeliest, by Newton's method on its inverse.

    Args:
        logits: Shape (n, K).
        action: Shape (n,).
    """
    inverse = 1.0
    for _ in range(25):
        probabilities = (logits * inverse).softmax(-1)
        mean = (probabilities * logits).sum(-1)
        slope = float((mean - logits.gather(1, action[:, None]).squeeze(1)).mean())
        bend = float(((probabilities * logits.square()).sum(-1) - mean.square()).mean())
        inverse = min(max(inverse - slope / max(bend, 1e-12), inverse / 2), inverse * 2)
    return 1 / min(max(inverse, 0.05), 20.0)


def measure(probabilities: Floats, action: Ints) -> Quality:
    """Accuracy, log-loss and calibration error of probabilities, shape (n, K)."""
    top, chosen = probabilities.max(axis=1), probabilities.argmax(axis=1)
    hit = chosen == action
    bins = np.minimum((top * N_BINS).astype(np.int64), N_BINS - 1)
    gap = np.bincount(bins, top - hit, minlength=N_BINS)
    logged = probabilities[np.arange(len(action)), action]
    return Quality(
        accuracy=float(hit.mean()),
        log_loss=float(-np.log(np.maximum(logged, 1e-300)).mean()),
        calibration_error=float(np.abs(gap).sum() / len(action)),
    )


def check_model(model: PropensityModel | None, data: Trajectories) -> None:
    """Refuse what cannot give propensities of these stays, before anything is trained."""
    if hasattr(model, "__sklearn_tags__") or hasattr(model, "_estimator_type"):
        fix = "Wrap it: SklearnModel(classifier)."
        raise SettingError("propensity", "must take stays; a classifier takes rows", fix=fix)
    if model is not None and (isinstance(model, type) or not isinstance(model, PropensityModel)):
        fix = "Give KnownPropensity(), SklearnModel(...) or None."
        raise SettingError("propensity", "must have fit and predict_proba", fix=fix)
    if isinstance(model, KnownPropensity):
        model.fit(data)


def logged_log_propensity(
    prepared: Prepared, fitted: FittedPropensity, model: PropensityModel | None
) -> Floats:
    """Log-propensity of each logged action: from `model` if one is given, else as fitted.

    A model is cross-fitted over the same folds as the networks; known propensities need no fitting.
    """
    data = prepared.data
    if isinstance(model, KnownPropensity):
        return np.log(data.logged_propensity)
    if model is None:
        return _of_logged(fitted.log_probabilities, data.logged_action)
    probabilities = np.zeros((data.n_decisions, data.n_actions))
    fold_of_decision = prepared.folds.fold[data.decisions().stay]
    for fold in range(prepared.folds.n_networks):
        inside = prepared.folds.fold == fold
        learn_from = data if prepared.folds.n_networks == 1 else data.subset(~inside)
        own = copy.deepcopy(model)
        own.fit(learn_from)
        asked = data.subset(inside)
        probabilities[fold_of_decision == fold] = _checked(own.predict_proba(asked), asked)
    return np.log(np.maximum(_of_logged(probabilities, data.logged_action), 1e-300))


def _checked(found: Floats, asked: Trajectories) -> Floats:
    """What somebody's model said, refused unless it is one distribution a decision."""
    values = np.asarray(found, np.float64)
    if values.shape != (asked.n_decisions, asked.n_actions):
        raise DataError("propensity model", "must give one row a decision, one column an action")
    sound = (values >= 0).all(axis=1) & (np.abs(values.sum(axis=1) - 1) < 1e-3)
    require("propensity model", "must give probabilities that sum to 1", sound)
    return values


def _of_logged(values: Floats, action: Ints) -> Floats:
    return values[np.arange(len(action)), action]


class KnownPropensity:
    """The propensities are in the data; nothing is fitted."""

    def fit(self, data: Trajectories) -> Self:
        """Check that they are there."""
        data.logged_propensity  # noqa: B018  # refuses where there are none
        return self

    def predict_proba(self, data: Trajectories) -> Floats:  # noqa: ARG002  # the interface
        """Only the logged action's probability is known, so there is no distribution to give."""
        raise DataError("propensity", "is known for the logged action only")


class SklearnModel:
    """Any scikit-learn classifier on a fixed-size summary of the history.

    Args:
        classifier: Not fitted yet; it is copied, never changed.
        summary: Turns stays into one row a decision; `last_and_mean` if left out.
    """

    def __init__(
        self,
        classifier: Classifier,
        *,
        summary: Callable[[Trajectories], NDArray[np.float32]] | None = None,
    ) -> None:
        self.classifier = classifier
        self.summary = summary

    def fit(self, data: Trajectories) -> Self:
        """Fit a copy of the classifier to the logged actions."""
        action = data.logged_action
        self.classes_ = np.unique(action)
        self.classifier_ = copy.deepcopy(self.classifier)
        if len(self.classes_) > 1:  # most classifiers refuse a single class
            self.classifier_.fit((self.summary or last_and_mean)(data), action)
        return self

    def predict_proba(self, data: Trajectories) -> Floats:
        """Probability of every action; one the classifier never saw gets zero."""
        if not hasattr(self, "classifier_"):
            raise SettingError("SklearnModel", "must be fitted first")
        found = np.zeros((data.n_decisions, data.n_actions))
        if len(self.classes_) == 1:
            found[:, self.classes_] = 1.0
            return found
        classes = np.asarray(self.classifier_.classes_, np.int64)  # type: ignore[attr-defined]
        found[:, classes] = self.classifier_.predict_proba((self.summary or last_and_mean)(data))
        return found


def last_and_mean(data: Trajectories) -> NDArray[np.float32]:
    """Summary of each history: its last step, the mean of its steps, their number, static features.

    Shape (n_decisions, 2 d + 1 + s).
    """
    stay, step = data.decisions()
    last = data.seen_rows
    features = data.sequence[:]
    sums = np.cumsum(features, axis=0, dtype=np.float64)
    start = data.offsets[stay]
    before = np.where((start > 0)[:, None], sums[np.maximum(start - 1, 0)], 0.0)
    count = (step + 1 - data.lag)[:, None]
    mean = (sums[last] - before) / count
    parts = (features[last], mean, count, data.static[stay])
    return np.concatenate(parts, axis=1).astype(np.float32)
