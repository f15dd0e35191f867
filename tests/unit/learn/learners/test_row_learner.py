"""Learners of rows: propensities, support, and rows like those fitted on."""

import numpy as np
import pytest
from small_worlds import ward

import etips
from etips.learn import QLearning
from etips.learn.learners.row_learner import frame_of
from etips.models.row_model import rows_of, standardise


def test_new_rows_are_standardised_as_those_fitted_on():
    data = ward()
    rows, frame = frame_of(data, "summary")
    again = standardise(rows_of(data, "summary"), frame.mean, frame.scale)
    assert rows.numpy() == pytest.approx(again, abs=1e-6)
    assert rows.numpy().mean(axis=0) == pytest.approx(np.zeros(rows.shape[1]), abs=1e-5)


def test_an_action_without_support_is_never_recommended():
    data = ward()
    learner = QLearning(support=0.33).fit(data)
    allowed = learner.policy_.propensities(data) >= 0.33
    found, abstained = learner.predict_proba(data), learner.abstains(data)
    assert not allowed.all()
    assert (found[~allowed & ~abstained[:, None]] == 0).all()


def test_questions_with_other_features_are_refused():
    data = ward()
    learner = QLearning().fit(data)
    with pytest.raises(etips.DataError, match=r"^data, lag: is not as in the data"):
        learner.predict(data.with_lag(0))


def test_patients_of_one_fold_stay_together():
    data = ward()
    log = QLearning()._read(data)
    fold = log.fold(0)
    stay = data.decisions().stay
    assert all(len(set(fold[stay == number])) == 1 for number in np.unique(stay))
    assert set(fold) == set(range(5))
