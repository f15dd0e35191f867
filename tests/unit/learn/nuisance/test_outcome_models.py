"""Losses predicted by a classifier that did not learn from the stay."""

from dataclasses import replace

import numpy as np
import pytest
from tabular_worlds import gappy

from etips.errors import DataError
from etips.learn.nuisance.outcome import SklearnOutcome
from etips.worlds.clinic import Clinic


class MeanByAction:
    """A classifier of scikit-learn's kind: the share of losses among those treated alike."""

    def fit(self, X, y):  # noqa: N803
        self.classes_ = np.unique(y)
        taken = X[:, -5:].argmax(axis=1)
        self.share_ = np.array(
            [y[taken == a].mean() if (taken == a).any() else 0.5 for a in range(5)]
        )
        return self

    def predict_proba(self, X):  # noqa: N803
        one = self.share_[X[:, -5:].argmax(axis=1)]
        return np.stack([1 - one, one], axis=1)


@pytest.fixture(scope="module")
def log():
    return Clinic(n_actions=5).log(200, seed=5)


def test_a_classifier_of_the_loss_is_cross_fitted_by_stay(log):
    fold = np.arange(log.n_stays) % 2
    expected = SklearnOutcome(MeanByAction()).cross_fit(log, fold)
    inside = fold[log.decisions().stay] == 0
    taken, loss = log.logged_action[~inside], log.logged_loss[~inside]
    by_hand = [loss[taken == a].mean() for a in range(5)]
    assert expected[inside][0] == pytest.approx(by_hand)


def test_missing_values_are_the_mean_of_their_column(log):

    class Strict(MeanByAction):
        def fit(self, X, y):  # noqa: N803
            assert np.isfinite(X).all()
            return super().fit(X, y)

    expected = SklearnOutcome(Strict()).cross_fit(gappy(log), np.arange(log.n_stays) % 2)
    assert np.isfinite(expected).all()


def test_a_fold_without_a_loss_of_one_predicts_none(log):
    fold = np.arange(log.n_stays) % 2
    first = fold[log.decisions().stay] == 0
    loss = np.array(log.loss)
    loss[log.decision_rows[~first]] = 0.0

    class OneClass(MeanByAction):
        def predict_proba(self, X):  # noqa: N803
            both = super().predict_proba(X)
            return both[:, : len(self.classes_)]

    expected = SklearnOutcome(OneClass()).cross_fit(replace(log, loss=loss), fold)
    assert (expected[first] == 0).all()
    assert (expected[~first] > 0).any()


def test_a_classifier_of_the_loss_needs_losses_of_zero_and_one(log):
    half = replace(log, loss=log.loss / 2)
    with pytest.raises(DataError, match=r"^loss: must be 0 or 1 for a classifier"):
        SklearnOutcome(MeanByAction()).cross_fit(half, np.arange(log.n_stays) % 2)
