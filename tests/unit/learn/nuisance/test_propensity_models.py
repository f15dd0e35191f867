"""Propensities from a classifier, from the data, or from anything with two methods."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from small_worlds import ward
from tabular_worlds import gappy

from etips.data.history_rows import last_and_mean
from etips.data.tables.arrays import from_arrays
from etips.errors import SettingError
from etips.learn.nuisance.propensity import (
    KnownPropensity,
    PropensityModel,
    SklearnModel,
    check_model,
)


class Uniform:
    """A model of somebody's own."""

    def fit(self, data):
        return self

    def predict_proba(self, data):
        return np.full((data.n_decisions, data.n_actions), 1 / data.n_actions)


def test_any_object_with_the_two_methods_is_a_propensity_model():
    for model in (SklearnModel(LogisticRegression()), KnownPropensity(), Uniform()):
        assert isinstance(model, PropensityModel)


def test_a_classifier_is_copied_and_its_answer_spread_over_all_actions():
    data = replace(
        ward(), action=np.where(ward().action == 1, 0, ward().action)
    )  # nobody took action 1
    classifier = DecisionTreeClassifier(max_depth=2, random_state=0)
    model = SklearnModel(classifier).fit(data)
    found = model.predict_proba(data)
    assert found.shape == (data.n_decisions, 3)
    assert (found[:, 1] == 0).all()
    assert found.sum(axis=1) == pytest.approx(1)
    assert not hasattr(classifier, "tree_")
    theirs = model.classifier_.predict_proba(last_and_mean(data))
    assert (found[:, [0, 2]] == theirs).all()


def test_a_classifier_that_saw_one_action_is_sure_of_it():
    data = ward()
    only = replace(data, action=np.where(data.action >= 0, 2, -1))
    found = SklearnModel(LogisticRegression()).fit(only).predict_proba(only)
    assert (found == np.eye(3)[np.full(data.n_decisions, 2)]).all()


def test_missing_values_are_the_mean_of_their_column_where_it_was_fitted():
    data = gappy(ward())
    model = SklearnModel(LogisticRegression(max_iter=2000)).fit(data)
    found = model.predict_proba(data)
    assert found.sum(axis=1) == pytest.approx(1)
    rows = last_and_mean(data)
    by_hand = np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows)
    np.testing.assert_allclose(found, model.classifier_.predict_proba(by_hand), atol=1e-5)
    nobody_knows = replace(data, sequence=np.full_like(data.sequence[:], np.nan))
    assert np.isfinite(model.predict_proba(nobody_knows)).all()


def test_one_row_a_patient_is_read_once():
    rows = np.random.default_rng(0).normal(size=(80, 3))
    data = from_arrays(rows, np.tile([0, 1], 40), np.zeros(80), static=rows[:, :1])
    model = SklearnModel(LogisticRegression()).fit(data)
    assert model.classifier_.n_features_in_ == 4
    assert model.predict_proba(data).shape == (80, 2)


def test_a_classifier_not_fitted_is_refused():
    with pytest.raises(SettingError, match=r"^SklearnModel: must be fitted first"):
        SklearnModel(LogisticRegression()).predict_proba(ward())


def test_a_summary_of_ones_own_is_what_the_classifier_reads():
    data, asked = ward(), []

    def age_only(stays):
        asked.append(stays.n_decisions)
        return stays.static[stays.decisions().stay][:, :1]

    model = SklearnModel(LogisticRegression(), summary=age_only).fit(data)
    model.predict_proba(data)
    assert model.classifier_.n_features_in_ == 1
    assert asked == [data.n_decisions, data.n_decisions]


def test_what_cannot_give_propensities_is_refused_before_anything_is_trained():
    for model in (None, Uniform(), SklearnModel(LogisticRegression())):
        check_model(model, ward())
    with pytest.raises(SettingError, match=r"must take stays; a classifier takes rows\. Wrap it"):
        check_model(LogisticRegression(), ward())
    for wrong in (Uniform, object(), "logistic"):
        with pytest.raises(SettingError, match=r"^propensity: must have fit and predict_proba"):
            check_model(wrong, ward())
