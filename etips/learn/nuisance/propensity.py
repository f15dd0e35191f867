"""How likely each logged action was: networks that imitate the clinicians, and how well they do."""

import copy
import math
from dataclasses import KW_ONLY, dataclass
from typing import Protocol, Self, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Floats, Ints
from etips.data.history_rows import (
    Classifier,
    Summary,
    column_means,
    fill_gaps,
    usual_summary,
)
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError, require
from etips.learn.fitting.prepare import Prepared, seeds_from
from etips.learn.fitting.trainer import Trainer, TrainingRequest
from etips.learn.nuisance.shrinkage import learned_counts, log_frequencies, pieces, shrink
from etips.learn.training.objectives import cross_entropy
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle
from etips.models.encoders.encoder import Encoder
from etips.models.network import Network


@runtime_checkable
class PropensityModel(Protocol):
    """Anything that can be fitted to logged stays and gives the probability of every action."""

    def fit(self, data: Trajectories) -> object:
        """Learn from logged stays."""

    def predict_proba(self, data: Trajectories) -> Floats:
        """Probability of every action, shape (n_decisions, n_actions), in decision order."""


class KnownPropensity:
    """The propensities are in the data; nothing is fitted."""

    def fit(self, data: Trajectories) -> Self:
        """Check that they are there."""
        data.logged_propensity  # noqa: B018  # refuses where there are none
        return self

    def predict_proba(self, data: Trajectories) -> Floats:  # noqa: ARG002  # the interface
        """Only the logged action's probability is known, so there is no distribution to give."""
        raise DataError("propensity", "is known for the logged action only")


@dataclass(eq=False)
class SklearnModel:
    """Any scikit-learn classifier on a fixed-size summary of the history.

    A missing value is the mean of its column in the stays fitted to; tables bring columns that say
    which values were missing.

    Args:
        classifier: Not fitted yet; it is copied, never changed.
        summary: Turns stays into one row a decision; `last_and_mean` if left out, or `last_step`
            where no decision sees more than one.
    """

    classifier: Classifier
    _: KW_ONLY
    summary: Summary | None = None

    def fit(self, data: Trajectories) -> Self:
        """Fit a copy of the classifier to the logged actions."""
        action = data.logged_action
        self.classes_ = np.unique(action)
        self.classifier_ = copy.deepcopy(self.classifier)
        self.summary_ = self.summary or usual_summary(data)
        if len(self.classes_) > 1:  # most classifiers refuse a single class
            rows = self.summary_(data)
            self.means_ = column_means(rows)
            self.classifier_.fit(fill_gaps(rows, self.means_), action)
        return self

    def predict_proba(self, data: Trajectories) -> Floats:
        """Probability of every action; one the classifier never saw gets zero."""
        if "classifier_" not in vars(self):
            raise SettingError("SklearnModel", "must be fitted first")
        probabilities = np.zeros((data.n_decisions, data.n_actions))
        if len(self.classes_) == 1:
            probabilities[:, self.classes_] = 1.0
            return probabilities
        classes = np.asarray(self.classifier_.classes_, np.int64)  # type: ignore[attr-defined]
        rows = fill_gaps(self.summary_(data), self.means_)
        probabilities[:, classes] = self.classifier_.predict_proba(rows)
        return probabilities


def check_model(model: PropensityModel | None, data: Trajectories) -> None:
    """Refuse what cannot give propensities of these stays, before anything is trained."""
    theirs = hasattr(model, "__sklearn_tags__") or hasattr(model, "_estimator_type")
    if theirs and not hasattr(model, "fitted_policy"):  # as our learners have, which take stays
        fix = "Wrap it: SklearnModel(classifier)."
        raise SettingError("propensity", "must take stays; a classifier takes rows", fix=fix)
    if model is not None and (isinstance(model, type) or not isinstance(model, PropensityModel)):
        fix = "Give KnownPropensity(), SklearnModel(...) or None."
        raise SettingError("propensity", "must have fit and predict_proba", fix=fix)
    if isinstance(model, KnownPropensity):
        model.fit(data)


PURPOSE = 1  # of the random numbers drawn here
N_BINS = 15  # of the calibration error
_SCALINGS = 8  # until mean propensities are frequencies to six digits and more


@dataclass(frozen=True)
class Quality:
    """How well the propensities fit stays that were not learned from.

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
    """Networks that imitate the clinicians, and what they said of stays not seen before.

    Args:
        bundle: One member a fold, each so that it is right when it answers alone.
        together: The same so that their mean is right: what a policy keeps.
        share: Of what they learned beyond plain frequencies that is kept; 1 without
            calibration, 0 where plain frequencies fit better.
        log_probabilities: Out of fold, shape (n_decisions, n_actions).
        quality: Out of fold.
    """

    bundle: Bundle
    together: Bundle
    share: float
    log_probabilities: Floats
    quality: Quality


def fit_propensity(
    prepared: Prepared,
    encoder: Encoder,
    settings: Settings,
    trainer: Trainer,
    *,
    seed: int,
    calibrate: bool = True,
    strict: bool = False,
) -> FittedPropensity:
    """Fit the clinicians' policy, one network a fold, all of them at once.

    Networks start at the plain frequencies of the actions.

    Args:
        prepared: The stays.
        encoder: Of the networks.
        settings: Of the training.
        trainer: Trains them.
        seed: Of the networks.
        calibrate: Shrink what they learned towards plain frequencies as far as that fits better out
            of fold, and give every action its frequency as mean propensity.
        strict: A network's epoch is chosen by the stays of the other folds.
    """
    steps, data = prepared.steps, prepared.data
    network = Network(encoder, steps.n_features, data.static.shape[1], data.n_actions)
    seeds = seeds_from(seed, PURPOSE, prepared.folds.n_networks)
    action = torch.from_numpy(data.logged_action.copy())
    counts = torch.from_numpy(learned_counts(prepared))
    start = log_frequencies(action, data.n_actions, counts)
    request = TrainingRequest(
        prepared,
        Bundle.start(network, seeds, bias=start.float()),
        lambda outputs, seen: cross_entropy(outputs, prepared.action[seen]),
        stage="propensity",
        settings=settings,
        stop_by_others=strict,
    )
    bundle = trainer.train(request)
    centre = log_frequencies(action, data.n_actions)
    fitted = shrink(prepared, bundle, start, Actions(action, centre), fit=calibrate)
    log_probabilities = fitted.outputs.log_softmax(-1).cpu().numpy()
    return FittedPropensity(
        fitted.alone,
        fitted.together,
        fitted.share,
        log_probabilities,
        measure(np.exp(log_probabilities), data.logged_action),
    )


class Actions:
    """Logged actions, as what outputs are held against; see `shrinkage.Target`.

    Args:
        action: Shape (n,).
        centre: Logarithm of how often each was taken, shape (K,).
    """

    def __init__(self, action: Tensor, centre: Tensor) -> None:
        self.action, self.centre = action, centre

    def each_loss(self, outputs: Tensor, rows: Tensor) -> Tensor:
        """Minus the log-probability of the logged actions."""
        taken = self.action.to(outputs.device)[rows]
        likely = outputs.log_softmax(-1).gather(2, taken[None, :, None].expand(len(outputs), -1, 1))
        return math.log(len(outputs)) - likely.logsumexp(0).squeeze(1)

    def shift(self, outputs: Tensor) -> Tensor:
        """What gives every action its frequency as mean propensity, shape (K,)."""
        wanted, shift = self.centre.to(outputs.device), torch.zeros_like(outputs[0])
        likely = torch.empty_like(outputs)
        for _ in range(_SCALINGS):
            for own in pieces(outputs):
                torch.softmax(outputs[own] + shift, -1, out=likely[own])
            shift = shift + wanted - likely.mean(0).log()
        return shift


def measure(probabilities: Floats, action: Ints) -> Quality:
    """Accuracy, log-loss and calibration error of probabilities, shape (n, K)."""
    chosen = probabilities.argmax(axis=1)
    top = probabilities[np.arange(len(action)), chosen]
    hit = chosen == action
    bins = np.minimum((top * N_BINS).astype(np.int64), N_BINS - 1)
    gap = np.bincount(bins, top - hit, minlength=N_BINS)
    logged = probabilities[np.arange(len(action)), action]
    return Quality(
        accuracy=float(hit.mean()),
        log_loss=float(-np.log(np.maximum(logged, 1e-300)).mean()),
        calibration_error=float(np.abs(gap).sum() / len(action)),
    )


def cross_fit_model(model: PropensityModel, data: Trajectories, fold: Ints) -> Floats:
    """What copies of a model say of stays that they did not learn from, shape (n_decisions, K).

    Args:
        model: Of somebody's own, not fitted.
        data: Logged stays.
        fold: Of each stay, shape (n_stays,); where all are one, the stays that are learned from are
            asked about too.
    """
    probabilities = np.zeros((data.n_decisions, data.n_actions))
    fold_of_decision = fold[data.decisions().stay]
    for number in range(int(fold.max()) + 1):
        inside = fold == number
        own = copy.deepcopy(model)
        own.fit(data if inside.all() else data.subset(~inside))
        asked = data.subset(inside)
        probabilities[fold_of_decision == number] = _checked(own.predict_proba(asked), asked)
    return probabilities


def _checked(said: Floats, asked: Trajectories) -> Floats:
    """What somebody's model said, refused unless it is one distribution a decision."""
    values = np.asarray(said, np.float64)
    if values.shape != (asked.n_decisions, asked.n_actions):
        raise DataError("propensity model", "must give one row a decision, one column an action")
    sound = (values >= 0).all(axis=1) & (np.abs(values.sum(axis=1) - 1) < 1e-3)
    require("propensity model", "must give probabilities that sum to 1", sound)
    return np.asarray(values / values.sum(axis=1, keepdims=True))
