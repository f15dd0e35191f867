"""Networks that predict losses: shares as probabilities, amounts in their units."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_worlds import CLEAR, CLINIC, randomised, training

from etips.data.tables.arrays import from_arrays
from etips.learn.fitting.prepare import prepare
from etips.learn.fitting.trainer import Trainer
from etips.learn.nuisance.outcome import fit_outcome, is_share
from etips.models.encoders.gru import GRU


def outcome(data, **more):
    prepared = prepare(data, n_folds=2, seed=0, device=torch.device("cpu"))
    settings = replace(training(epochs=12).outcome, learning_rate=0.02)
    return fit_outcome(prepared, GRU(6), settings, Trainer(), seed=0, **more)


def test_losses_within_zero_and_one_are_shares():
    features, action = np.zeros((4, 1)), [0, 1, 0, 1]
    for loss, share in (([0, 1, 0.5, 1], True), ([0, 1.01, 0, 1], False), ([0, -0.1, 0, 1], False)):
        assert is_share(from_arrays(features, action, loss)) is share


def test_predicted_shares_lie_within_zero_and_one():
    found = outcome(CLINIC.log(100, seed=0)).expected
    assert ((found > 0) & (found < 1)).all()


@pytest.mark.parametrize(("scale", "shift"), [(100.0, 300.0), (1.0, -50.0), (1e-4, 7.0)])
def test_predicted_amounts_are_in_the_units_of_the_loss(scale, shift):
    rng = np.random.default_rng(0)
    features, action = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    loss = shift + scale * (features[:, 0] + action)
    found = outcome(from_arrays(features, action, loss)).expected
    logged = found[np.arange(300), action]
    assert logged.mean() == pytest.approx(loss.mean(), abs=0.2 * scale)
    assert np.corrcoef(logged, loss)[0, 1] > 0.8


def test_strict_predictions_of_a_fold_take_nothing_from_it():
    rng = np.random.default_rng(0)
    features, action, loss = (
        rng.normal(size=(200, 2)),
        rng.integers(0, 2, 200),
        rng.normal(size=200),
    )
    log = from_arrays(features, action, loss)
    fold = prepare(log, n_folds=2, seed=0, device=torch.device("cpu")).folds.fold
    other = from_arrays(features, action, np.where((fold == 0) & (action == 0), loss - 9, loss))

    def differences(data, **more):
        found = outcome(data, **more).expected[fold == 0]
        return np.median(found[:, 1] - found[:, 0])

    assert differences(other, strict=True) == pytest.approx(differences(log, strict=True), abs=0.5)
    assert differences(other) > differences(log) + 2


def test_equal_losses_are_predicted_without_a_spread_to_divide_by():
    data = from_arrays(np.eye(6, 2), [0, 1] * 3, [9.0] * 6)
    found = outcome(data).expected
    assert np.isfinite(found).all()
    assert found == pytest.approx(9.0, abs=1.0)


def test_an_additive_network_ranks_the_actions_alike_for_everybody():
    fitted = outcome(CLEAR.log(400, seed=0), additive=True)
    bundle, found = fitted.bundle, fitted.expected
    logits = np.log(found / (1 - found))
    gaps = np.unique((logits - logits[:, :1]).round(4), axis=0)
    assert len(gaps) <= bundle.n_members
    assert len(np.unique(logits.round(4), axis=0)) > bundle.n_members


@pytest.mark.parametrize("risk", [0.005, 0.5])
def test_predicted_losses_have_the_mean_of_the_logged_ones(risk):
    """Ten epochs predicted 1.5 % where 0.5 % occur: networks started at one half."""
    data = randomised(1500, 5, risk=risk, seed=2)
    found = outcome(data).expected
    logged = found[np.arange(data.n_decisions), data.logged_action]
    assert logged.mean() == pytest.approx(data.logged_loss.mean(), rel=1e-3)
    assert found.mean() == pytest.approx(data.logged_loss.mean(), rel=0.1)
