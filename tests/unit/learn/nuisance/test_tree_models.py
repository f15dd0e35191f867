"""Cross-fitted trees: held out from whom they answer for, shrunk to nothing where there is none."""

import numpy as np
import pytest
import torch
from tabular_worlds import thresholds, trial

from etips.data.tables.arrays import from_arrays
from etips.learn.fitting.prepare import prepare
from etips.learn.nuisance.boosting import BoostedTrees
from etips.learn.nuisance.tree_models import fit_tree_outcome, fit_tree_propensity

SETTINGS = BoostedTrees()


def prepared(data, n_folds=3):
    return prepare(data, n_folds=n_folds, seed=0, device=torch.device("cpu"))


def test_propensities_follow_what_the_clinicians_went_by():
    data, _, corner = thresholds()
    fitted = fit_tree_propensity(prepared(data), SETTINGS)
    said = np.exp(fitted.log_probabilities)
    assert said[corner, 1].mean() == pytest.approx(0.75, abs=0.06)
    assert said[~corner, 1].mean() == pytest.approx(0.25, abs=0.05)
    np.testing.assert_allclose(said.mean(axis=0), np.bincount(data.logged_action) / 1500, atol=1e-3)
    assert fitted.quality.log_loss < 0.62 < np.log(2)


def test_of_a_randomised_trial_next_to_nothing_is_kept():
    data = trial(900)
    fitted = fit_tree_propensity(prepared(data), SETTINGS)
    said = np.exp(fitted.log_probabilities)
    assert np.abs(said - np.bincount(data.logged_action) / 900).max() < 0.03


def test_who_is_asked_about_was_not_learned_from():
    """Labels drawn at random cannot be told of rows that were held out."""
    data = trial(600, n_actions=2, seed=3)
    fitted = fit_tree_propensity(prepared(data), BoostedTrees(least_rows=1), calibrate=False)
    likely = np.exp(fitted.log_probabilities)[np.arange(600), data.logged_action]
    assert likely.mean() == pytest.approx(0.5, abs=0.02)
    assert fitted.share == 1.0


def test_losses_of_actions_are_told_apart_where_they_differ():
    data, _, corner = thresholds(3000)
    expected = fit_tree_outcome(prepared(data), SETTINGS).expected
    assert expected[corner, 1].mean() == pytest.approx(0.1, abs=0.1)
    assert expected[corner, 0].mean() == pytest.approx(0.8, abs=0.15)
    assert expected[~corner, 0].mean() == pytest.approx(0.1, abs=0.1)
    assert expected.min() >= 0
    assert expected.max() <= 1


def test_losses_in_any_unit_are_predicted_alike():
    data = thresholds(600)[0]
    plain = fit_tree_outcome(prepared(data), SETTINGS)
    far = from_arrays(data.sequence[:], data.logged_action, 1e6 + 1e3 * data.logged_loss)
    moved = fit_tree_outcome(prepared(far), SETTINGS)
    back = np.clip((moved.expected - 1e6) / 1e3, 0, 1)
    np.testing.assert_allclose(back, plain.expected, atol=0.02)
    rows = data.sequence[:]
    best = [own.bundle.outputs(rows).mean(0).argmin(1) for own in (plain, moved)]
    assert (best[0] == best[1]).mean() > 0.99


@pytest.mark.parametrize("n_folds", [1, 2])
def test_one_action_one_loss_or_hardly_anybody_is_no_obstacle(n_folds):
    rows = np.random.default_rng(0).normal(size=(12, 2))
    data = from_arrays(rows, np.zeros(12, int), np.full(12, 0.3), n_actions=2)
    fitted = fit_tree_propensity(prepared(data, n_folds), SETTINGS)
    assert np.exp(fitted.log_probabilities)[:, 0].min() > 0.9
    assert fit_tree_outcome(prepared(data, n_folds), SETTINGS).expected == pytest.approx(0.3)
