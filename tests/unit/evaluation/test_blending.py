"""Predictions and propensities of two sources, mixed as far as the log believes each."""

from dataclasses import replace

import numpy as np
import pytest

from etips.evaluation import Log
from etips.evaluation.blending import (
    MOST_DECISIONS,
    blend_predictions,
    blend_propensities,
    regress,
)


def make_log(predicted=None, table=None, n=600, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 4))
    right = 1 / (1 + np.exp(-1.5 * rows[:, 0]))
    action = (rng.random(n) < right).astype(np.int64)
    loss = (rng.random(n) < 1 / (1 + np.exp(-1.5 * rows[:, 0]))).astype(float)
    table = np.full((n, 2), 0.5) if table is None else table(right)
    return Log(
        loss,
        action,
        table[np.arange(n), action],
        np.arange(n),
        2,
        propensities=table,
        predicted=np.full((n, 2), loss.mean()) if predicted is None else predicted(right),
        features=rows,
    )


def error(log):
    return float(((log.loss - log.predicted[log.rows, log.action]) ** 2).mean())


def test_predictions_that_say_nothing_give_way():
    log = make_log()
    mixed, share = blend_predictions(log)
    assert share > 0.8
    assert error(mixed) < 0.9 * error(log)
    assert mixed.predicted.min() >= 0
    assert mixed.predicted.max() <= 1
    assert mixed.expected is log.expected
    assert np.array_equal(mixed.as_networks_predicted.predicted, log.predicted)


def test_predictions_that_are_right_stay():
    log = make_log(predicted=lambda right: np.stack([right, right], axis=1))
    mixed, share = blend_predictions(log)
    assert share < 0.3
    assert error(mixed) <= error(log)


def test_a_log_without_features_or_predictions_stays_as_it_is():
    log = make_log()
    for bare in (replace(log, features=None), replace(log, predicted=None)):
        assert blend_predictions(bare) == (bare, 0.0)
    bare = replace(log, features=None)
    assert blend_propensities(bare, np.arange(600) % 5) == (bare, 0.0)


def test_blind_propensities_give_way_to_a_regression_and_right_ones_stay():
    fold = np.arange(600) % 5
    blind = make_log()
    mixed, share = blend_propensities(blind, fold)
    assert share > 0.8
    assert np.log(mixed.propensity).mean() > np.log(blind.propensity).mean() + 0.05
    assert mixed.propensities.sum(axis=1) == pytest.approx(1)
    assert np.array_equal(mixed.unbalanced, blind.propensity)
    right = make_log(table=lambda right: np.stack([1 - right, right], axis=1))
    mixed, share = blend_propensities(right, fold)
    assert np.log(mixed.propensity).mean() >= np.log(right.propensity).mean()
    assert np.abs(mixed.propensities - right.propensities).mean() < 0.03


def test_nobodys_propensity_knows_what_was_done_to_them():
    log, fold = make_log(), np.arange(600) % 5
    table = regress(log.features, log.action, 2, fold)
    turned = regress(log.features, np.where(fold == 0, 1 - log.action, log.action), 2, fold)
    assert np.array_equal(turned[fold == 0], table[fold == 0])
    assert not np.allclose(turned[fold == 1], table[fold == 1])


def test_many_decisions_are_left_to_networks():
    log = make_log(n=MOST_DECISIONS + 1)
    assert blend_propensities(log, np.arange(log.n_decisions) % 5) == (log, 0.0)
