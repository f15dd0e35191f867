"""How likely each logged action was: networks, classifiers, known values; and how well they fit."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_worlds import CLINIC, training, ward

from etips.errors import DataError
from etips.learn import KnownPropensity
from etips.learn.fitting.driver import drive
from etips.learn.fitting.prepare import prepare
from etips.learn.nuisance.propensity import (
    fit_propensity,
    fit_temperature,
    logged_log_propensity,
    measure,
)
from etips.models.encoders.gru import GRU

CPU = torch.device("cpu")


def prepared(data, n_folds=3, seed=0):
    return prepare(data, n_folds=n_folds, seed=seed, device=CPU)


def fit_networks(data, n_folds=2, **more):
    settings = training(epochs=3).propensity
    return drive(fit_propensity(prepared(data, n_folds), GRU(6), settings, seed=0, **more))


class Remembers:
    """A model that notes what it was fitted on and asked about, and gives it to all alike."""

    seen = []  # noqa: RUF012  # shared on purpose: every fold gets a copy of the model

    def fit(self, data):
        self.learned = set(data.stay.tolist())

    def predict_proba(self, data):
        self.seen.append((self.learned, set(data.stay.tolist())))
        return np.full((data.n_decisions, data.n_actions), 1 / data.n_actions)


class Says:
    """A model with a fixed, perhaps foolish, answer."""

    def __init__(self, answer):
        self.answer = answer

    def fit(self, data):
        return self

    def predict_proba(self, data):
        return self.answer(data.n_decisions, data.n_actions)


def test_a_model_is_cross_fitted_by_stay():
    data = ward(n_stays=30)
    Remembers.seen.clear()
    found = logged_log_propensity(prepared(data), None, Remembers())
    assert np.exp(found) == pytest.approx(1 / 3)
    assert len(Remembers.seen) == 3
    for learned, asked in Remembers.seen:
        assert not learned & asked
        assert learned | asked == set(data.stay.tolist())


def test_a_patient_is_never_on_both_sides_of_the_cross_fitting():
    data = ward(n_stays=30)
    data = replace(data, group=np.arange(30) // 3)
    patient = dict(zip(data.stay.tolist(), data.group.tolist(), strict=True))
    Remembers.seen.clear()
    logged_log_propensity(prepared(data), None, Remembers())
    for learned, asked in Remembers.seen:
        assert not {patient[s] for s in learned} & {patient[s] for s in asked}


def test_in_sample_a_model_learns_from_and_answers_for_everybody():
    data = ward(n_stays=30)
    Remembers.seen.clear()
    logged_log_propensity(prepared(data, n_folds=1), None, Remembers())
    everybody = set(data.stay.tolist())
    assert Remembers.seen == [(everybody, everybody)]


def test_answers_come_back_in_decision_order():
    data = ward(n_stays=30)
    column = data.sequence[data.decision_rows - 1, 0]

    class Reads(Says):
        def predict_proba(self, part):
            first = 1 / (1 + np.exp(-part.sequence[part.decision_rows - 1, 0].astype(float)))
            return np.stack([first, 1 - first, np.zeros_like(first)], axis=1)

    found = np.exp(logged_log_propensity(prepared(data), None, Reads(None)))
    first = 1 / (1 + np.exp(-column.astype(float)))
    expected = np.choose(data.logged_action, [first, 1 - first, np.full_like(first, 1e-300)])
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
        logged_log_propensity(prepared(ward(n_stays=12)), None, Says(answer))


def test_a_certain_model_that_is_wrong_gives_a_tiny_propensity_and_no_infinity():
    found = logged_log_propensity(
        prepared(ward(n_stays=12)), None, Says(lambda n, k: np.eye(k)[np.zeros(n, int)])
    )
    assert np.isfinite(found).all()
    assert found.min() < -600


def test_known_propensities_are_taken_as_they_are():
    data = CLINIC.log(30, seed=0)
    found = logged_log_propensity(prepared(data), None, KnownPropensity())
    assert np.exp(found) == pytest.approx(data.logged_propensity)
    assert KnownPropensity().fit(data) is not None
    with pytest.raises(DataError, match=r"^propensity: is not in the data"):
        KnownPropensity().fit(replace(data, propensity=None))
    with pytest.raises(DataError, match=r"^propensity: is known for the logged action only"):
        KnownPropensity().predict_proba(data)


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
        drive(
            fit_propensity(prepared(log), GRU(6), settings, seed=0, calibrate=False)
        ).log_probabilities
        for log in (data, replace(data, action=altered, truth=None))
    ]
    assert (found[0][rows] == found[1][rows]).all()
    others = np.flatnonzero(~one[stay])
    assert (found[0][others] != found[1][others]).any()


def test_networks_learn_the_clinicians():
    data = CLINIC.log(400, seed=0)
    settings = training(epochs=8).propensity
    fitted = drive(fit_propensity(prepared(data, 2), GRU(8), settings, seed=0))
    uniform = np.log(3)
    assert fitted.quality.log_loss < uniform - 0.1
    assert fitted.bundle.n_members == 2
    assert np.exp(fitted.log_probabilities).sum(axis=1) == pytest.approx(1)


def test_without_calibration_the_temperature_is_one():
    assert fit_networks(CLINIC.log(30, seed=0), calibrate=False).temperature == 1.0


@pytest.mark.parametrize("heat", [0.3, 1.0, 4.0])
def test_the_temperature_undoes_what_made_logits_too_bold_or_too_shy(heat):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(20_000, 4, generator=generator, dtype=torch.float64)
    action = torch.multinomial(logits.softmax(-1), 1, generator=generator).squeeze(1)
    assert fit_temperature(logits * heat, action) == pytest.approx(heat, rel=0.08)


def test_the_temperature_has_limits():
    logits = torch.tensor([[3.0, 0.0]], dtype=torch.float64).repeat(10, 1)
    always, never = torch.zeros(10, dtype=torch.long), torch.ones(10, dtype=torch.long)
    assert fit_temperature(logits, always) >= 0.05
    assert fit_temperature(logits, never) <= 20
    assert fit_temperature(torch.zeros(10, 1, dtype=torch.float64), always) > 0  # one action


def test_quality_is_measured_as_by_hand():
    probabilities = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.55, 0.45]])
    found = measure(probabilities, np.array([0, 1, 1, 0]))
    assert found.accuracy == pytest.approx(0.75)
    assert found.log_loss == pytest.approx(-np.log([0.9, 0.4, 0.8, 0.55]).mean())
    gaps = [0.9 - 1, 0.6 - 0, 0.8 - 1, 0.55 - 1]  # each in a bin of its own, but for none
    assert found.calibration_error == pytest.approx(np.abs(gaps).sum() / 4)


def test_quality_of_an_impossible_action_is_finite():
    assert np.isfinite(measure(np.array([[1.0, 0.0]]), np.array([1])).log_loss)
