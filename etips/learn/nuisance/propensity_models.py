"""Where logged propensities may come from besides our networks: a classifier, or the data."""

import copy
from dataclasses import KW_ONLY, dataclass
from typing import Protocol, Self, runtime_checkable

import numpy as np

from etips.data.decisions import Floats
from etips.data.history_rows import (
    Classifier,
    Summary,
    column_means,
    fill_gaps,
    usual_summary,
)
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError


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
