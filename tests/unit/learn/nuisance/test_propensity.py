"""How likely each logged action was: networks, classifiers, known values; and how well they fit."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_worlds import CLINIC, Says, randomised, training, ward

from etips.errors import DataError
from etips.learn.fitting.prepare import prepare
from etips.learn.fitting.trainer import Trainer
from etips.learn.nuisance.propensity import (
    cross_fit_model,
    fit_propensity,
    measure,
)
from etips.learn.nuisance.shrinkage import best_share
from etips.models.encoders.gru import GRU
from etips.policies.policy import FittedPolicy
from etips.worlds.clinic import Clinic

CPU = torch.device("cpu")


def prepared(data, n_folds=3, seed=0):
    return prepare(data, n_folds=n_folds, seed=seed, device=CPU)


def cross_fitted(model, data, n_folds=3):
    """What the model says of the logged actions."""
    table = cross_fit_model(model, data, prepared(data, n_folds).folds.fold)
    return table[np.arange(data.n_decisions), data.logged_action]


def fit_networks(data, n_folds=2, **more):
    settings = training(epochs=3).propensity
    return fit_propensity(prepared(data, n_folds), GRU(6), settings, Trainer(), seed=0, **more)


class Remembers:
    """A model that notes what it was fitted on and asked about, and gives it to all alike."""

    seen = []  # noqa: RUF012  # shared on purpose: every fold gets a copy of the model

    def fit(self, data):
        self.learned = set(data.stay.tolist())

    def predict_proba(self, data):
        self.seen.append((self.learned, set(data.stay.tolist())))
        return np.full((data.n_decisions, data.n_actions), 1 / data.n_actions)


def test_a_model_is_cross_fitted_by_stay():
    data = ward(n_stays=30)
    Remembers.seen.clear()
    found = cross_fitted(Remembers(), data)
    assert found == pytest.approx(1 / 3)
    assert len(Remembers.seen) == 3
    for learned, asked in Remembers.seen:
        assert not learned & asked
        assert learned | asked == set(data.stay.tolist())


def test_a_patient_is_never_on_both_sides_of_the_cross_fitting():
    data = ward(n_stays=30)
    data = replace(data, group=np.arange(30) // 3)
    patient = dict(zip(data.stay.tolist(), data.group.tolist(), strict=True))
    Remembers.seen.clear()
    cross_fitted(Remembers(), data)
    for learned, asked in Remembers.seen:
        assert not {patient[s] for s in learned} & {patient[s] for s in asked}


def test_in_sample_a_model_learns_from_and_answers_for_everybody():
    data = ward(n_stays=30)
    Remembers.seen.clear()
    cross_fitted(Remembers(), data, n_folds=1)
    everybody = set(data.stay.tolist())
    assert Remembers.seen == [(everybody, everybody)]


def test_answers_come_back_in_decision_order():
    data = ward(n_stays=30)
    column = data.sequence[data.decision_rows - 1, 0]

    class Reads(Says):
        def predict_proba(self, part):
            first = 1 / (1 + np.exp(-part.sequence[part.decision_rows - 1, 0].astype(float)))
            return np.stack([first, 1 - first, np.zeros_like(first)], axis=1)

    found = cross_fitted(Reads(None), data)
    first = 1 / (1 + np.exp(-column.astype(float)))
    expected = np.choose(data.logged_action, [first, 1 - first, np.zeros_like(first)])
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (lambda n, k: np.full((n, k - 1), 0.5), "must give one row a decision, one column an act"),
        (lambda n, k: np.full((n, 1), 1.0), "must give one row a decision, one column an action"),
        (lambda n, k: np.full(n, 1.0), "must give one row a decision, one column an action"),
        (lambda n, k: np.full((n, k), np.nan), "must give probabilities that sum to 1"),
        (lambda n, k: np.full((n, k), 0.9), "must give probabilities that sum to 1"),
        (lambda n, k: np.eye(k)[np.zeros(n, int)] * 2 - 1 / k, "must give probabilities that sum"),
    ],
)
def test_a_model_that_gives_no_probabilities_is_refused(answer, rule):
    with pytest.raises(DataError, match=f"^propensity model: {rule}"):
        cross_fitted(Says(answer), ward(n_stays=12))


def test_networks_are_asked_out_of_fold():
    """A stay's own action cannot move what is said of it: its network never saw it."""
    data = CLINIC.log(40, seed=0)
    one = prepared(data).folds.fold == 1
    stay = data.decisions().stay
    rows = np.flatnonzero(one[stay])
    altered = np.array(data.action)
    altered[data.decision_rows[rows]] = (altered[data.decision_rows[rows]] + 1) % 3
    # an epoch count without early stopping's say: held-out stays decide when to stop
    settings = replace(training(epochs=1).propensity, patience=1)
    found = [
        fit_propensity(
            prepared(log), GRU(6), settings, Trainer(), seed=0, calibrate=False
        ).log_probabilities
        for log in (data, replace(data, action=altered, truth=None))
    ]
    assert (found[0][rows] == found[1][rows]).all()
    others = np.flatnonzero(~one[stay])
    assert (found[0][others] != found[1][others]).any()


def test_networks_learn_the_clinicians():
    data = CLINIC.log(400, seed=0)
    settings = training(epochs=8).propensity
    fitted = fit_propensity(prepared(data, 2), GRU(8), settings, Trainer(), seed=0)
    uniform = np.log(3)
    assert fitted.quality.log_loss < uniform - 0.1
    assert fitted.bundle.n_members == 2
    assert np.exp(fitted.log_probabilities).sum(axis=1) == pytest.approx(1)


def test_without_calibration_networks_are_left_as_they_are():
    fitted = fit_networks(CLINIC.log(30, seed=0), calibrate=False)
    assert fitted.share == 1.0
    assert fitted.bundle is fitted.together


@pytest.mark.parametrize(("n_actions", "n_steps"), [(4, 1), (80, 1), (6, 4)])
def test_in_a_randomised_log_networks_are_no_worse_than_plain_frequencies(n_actions, n_steps):
    """They were by 0.01 and more: here there is nothing to learn but how often each is taken."""
    data = randomised(1200, n_actions, n_steps=n_steps)
    settings = training(epochs=6).propensity
    fitted = fit_propensity(prepared(data, 3), GRU(16), settings, Trainer(), seed=0)
    counts = np.bincount(data.logged_action, minlength=n_actions)
    frequency = counts / counts.sum()
    plain = -np.log(frequency[data.logged_action]).mean()
    assert fitted.quality.log_loss < plain + 0.001
    mean = np.exp(fitted.log_probabilities).mean(axis=0)
    assert mean == pytest.approx(frequency, rel=0.005)


def test_networks_start_at_the_frequencies_of_the_stays_they_learn_from():
    data, still = randomised(90, 3), replace(training(epochs=1).propensity, learning_rate=1e-12)
    ready = prepared(data)
    fitted = fit_propensity(ready, GRU(6), still, Trainer(), seed=0, calibrate=False)
    stay = data.decisions().stay
    for fold in range(3):
        learned = (ready.folds.weight[fold] > 0).numpy()[stay]
        counts = np.bincount(data.logged_action[learned], minlength=3)
        said = np.exp(fitted.log_probabilities[ready.folds.fold[stay] == fold])
        assert said == pytest.approx(np.tile((counts + 1 / 3) / (counts.sum() + 1), (len(said), 1)))


def test_an_action_that_was_never_taken_has_a_small_propensity():
    data = randomised(60, 3)
    schema = replace(data.schema, n_actions=5)
    fitted = fit_networks(replace(data, schema=schema))
    assert np.isfinite(fitted.log_probabilities).all()
    assert np.exp(fitted.log_probabilities)[:, 3:].max() < 0.02


def test_the_mean_of_the_networks_is_right_for_stays_that_nobody_learned_from():
    """What a policy keeps is fitted for the mean of its networks, not for one of them."""
    world = Clinic(n_contexts=60, n_features=5, n_actions=4, decisions_per_stay=2)
    fresh = world.log(1500, seed=9)
    ready = prepared(world.log(500, seed=1), 5)
    settings = replace(training(epochs=30).propensity, patience=30)  # bold on purpose
    fitted = fit_propensity(ready, GRU(24), settings, Trainer(), seed=0)
    policy = FittedPolicy(
        "imitation", ready.data.schema, scaler=ready.scaler, propensity=fitted.together
    )
    log_chance = torch.from_numpy(np.log(policy.predict_proba(fresh)))
    action = torch.from_numpy(fresh.logged_action.copy())

    def loss(slope):
        return float(torch.nn.functional.cross_entropy(slope * log_chance, action))

    assert best_share(loss) == pytest.approx(1.0, abs=0.15)
    assert fitted.share < 1


def test_quality_is_measured_as_by_hand():
    probabilities = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.55, 0.45]])
    found = measure(probabilities, np.array([0, 1, 1, 0]))
    assert found.accuracy == pytest.approx(0.75)
    assert found.log_loss == pytest.approx(-np.log([0.9, 0.4, 0.8, 0.55]).mean())
    gaps = [0.9 - 1, 0.6 - 0, 0.8 - 1, 0.55 - 1]  # each in a bin of its own, but for none
    assert found.calibration_error == pytest.approx(np.abs(gaps).sum() / 4)


def test_quality_of_an_impossible_action_is_finite():
    assert np.isfinite(measure(np.array([[1.0, 0.0]]), np.array([1])).log_loss)
