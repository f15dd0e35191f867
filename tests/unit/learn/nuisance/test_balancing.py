"""Balancing weights as a propensity model, and in what learners stand on."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from confounded_worlds import confounded, snips_bias, stays_of
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from small_worlds import CLINIC, Says, small, training, ward

from etips.data.history_rows import visible_rows
from etips.errors import DataError, SettingError
from etips.learn import BalancedPropensity, EtIPS, KnownPropensity, SklearnModel
from etips.learn.fitting import folds_at_once
from etips.learn.fitting.driver import drive
from etips.learn.fitting.prepare import prepare
from etips.learn.learners.foundation import lay_foundation
from etips.learn.nuisance import balancing
from etips.learn.nuisance.balancing import (
    begin_ground,
    check_propensities,
    forget,
    logged_propensity,
    rebalance_table,
)
from etips.learn.nuisance.propensity_models import PropensityModel
from etips.learn.training import beside, crew
from etips.models.encoders.gru import GRU

MARGINAL = SklearnModel(DummyClassifier(strategy="prior"))


def prepared(data, n_folds=3):
    return prepare(data, n_folds=n_folds, seed=0, device=torch.device("cpu"))


def logged(data, model, *, balance=True, n_folds=3):
    return logged_propensity(prepared(data, n_folds), None, model, balance=balance)


def test_it_is_a_propensity_model_that_corrects_stays_of_later():
    early, late = (confounded("linear", n_stays=700, seed=seed) for seed in (0, 1))
    model = BalancedPropensity(MARGINAL).fit(stays_of(early))
    assert isinstance(model, PropensityModel)
    assert model.rebalanced_.used
    before = MARGINAL.fit(stays_of(late)).predict_proba(stays_of(late))
    after = model.predict_proba(stays_of(late))
    assert after.sum(axis=1) == pytest.approx(1)
    assert abs(snips_bias(late, after)) < abs(snips_bias(late, before)) / 2


def test_a_model_that_balances_already_answers_as_it_would_alone():
    world = confounded("linear", n_stays=300, seed=2)
    data = stays_of(world)
    logit = SklearnModel(LogisticRegression(max_iter=500))
    model = BalancedPropensity(logit).fit(data)
    assert not model.rebalanced_.used
    assert np.array_equal(model.predict_proba(data), logit.fit(data).predict_proba(data))


def test_our_networks_can_be_balanced_too():
    data = stays_of(confounded("linear", n_stays=60, seed=0))
    table = BalancedPropensity().fit(data).predict_proba(data)
    assert table.sum(axis=1) == pytest.approx(1)


def test_one_not_fitted_and_one_around_what_is_not_fitted_are_refused():
    with pytest.raises(SettingError, match=r"^BalancedPropensity: must be fitted first"):
        BalancedPropensity().predict_proba(ward())
    for inner in (KnownPropensity(), BalancedPropensity()):
        with pytest.raises(SettingError, match=r"^BalancedPropensity: needs a model whose"):
            check_propensities(BalancedPropensity(inner), ward())
    with pytest.raises(SettingError, match="a classifier takes rows"):
        check_propensities(BalancedPropensity(LogisticRegression()), ward())
    check_propensities(BalancedPropensity(MARGINAL), ward())
    check_propensities(None, ward())


def test_logged_propensities_are_balanced_unless_told_otherwise():
    world = confounded("linear", n_stays=400, seed=3)
    data = stays_of(world)
    plain = logged(data, MARGINAL, balance=False)
    better = logged(data, MARGINAL)
    named = logged(data, BalancedPropensity(MARGINAL), balance=False)
    assert plain.rebalanced is None
    assert better.rebalanced.used
    assert np.array_equal(better.log, named.log)
    first = world.action == 0
    bias = [
        np.average(world.loss[first], weights=np.exp(-own.log[first])) - world.risk.mean()
        for own in (plain, better)
    ]
    assert abs(bias[1]) < abs(bias[0]) / 2


def test_known_propensities_are_taken_as_they_are():
    data = CLINIC.log(30, seed=0)
    found = logged(data, KnownPropensity())
    assert np.exp(found.log) == pytest.approx(data.logged_propensity)
    assert found.rebalanced is None
    assert KnownPropensity().fit(data) is not None
    with pytest.raises(DataError, match=r"^propensity: is not in the data"):
        KnownPropensity().fit(replace(data, propensity=None))
    with pytest.raises(DataError, match=r"^propensity: is known for the logged action only"):
        KnownPropensity().predict_proba(data)


def test_a_certain_model_that_is_wrong_gives_a_tiny_propensity_and_no_infinity():
    found = logged(ward(n_stays=12), Says(lambda n, k: np.eye(k)[np.zeros(n, int)])).log
    assert np.isfinite(found).all()
    assert found.min() < -600


def test_too_few_stays_are_not_tried():
    data = ward(n_stays=12)
    table = np.full((data.n_decisions, 3), 1 / 3)
    assert rebalance_table(data, table) is None


@pytest.fixture
def counted(monkeypatch):
    """Whoever is balanced anew, with nothing remembered before."""
    asked, whole = [], balancing.rebalance

    def rebalance(*given, **named):
        asked.append(given[0])
        return whole(*given, **named)

    monkeypatch.setattr(balancing, "_REMEMBERED", {})
    monkeypatch.setattr(balancing, "rebalance", rebalance)
    return asked


def test_the_same_question_is_answered_from_memory_and_another_is_not(counted):
    data = stays_of(confounded("linear", n_stays=60, seed=6))
    table = np.full((data.n_decisions, data.n_actions), 1 / data.n_actions)
    fold = np.arange(data.n_stays) % 3
    first, again = (rebalance_table(data, table, fold, brief=True) for _ in range(2))
    assert len(counted) == 1
    assert np.array_equal(first.propensities, again.propensities)
    assert first.sentence == again.sentence
    with pytest.raises(ValueError, match="read-only"):
        again.propensities[:] = 0.5
    other = table + np.linspace(0, 1e-6, table.shape[1])
    rebalance_table(data, other / other.sum(axis=1, keepdims=True), fold, brief=True)
    rebalance_table(data, table, (fold + 1) % 3, brief=True)
    rebalance_table(data, table, fold)
    rebalance_table(data.subset(np.arange(data.n_stays) > 0), table[data.decisions().stay > 0])
    assert len(counted) == 5
    assert len(balancing._REMEMBERED) == balancing.MOST_REMEMBERED
    rebalance_table(data, table, fold, brief=True)  # the oldest is forgotten
    assert len(counted) == 6


def test_what_is_forgotten_is_balanced_anew(counted):
    data = stays_of(confounded("linear", n_stays=60, seed=6))
    table = np.full((data.n_decisions, data.n_actions), 1 / data.n_actions)
    rebalance_table(data, table)
    forget()
    rebalance_table(data, table)
    assert len(counted) == 2


def test_a_large_answer_is_not_kept(counted, monkeypatch):
    monkeypatch.setattr(balancing, "LARGEST_REMEMBERED", 100)
    data = stays_of(confounded("linear", n_stays=60, seed=6))
    table = np.full((data.n_decisions, data.n_actions), 1 / data.n_actions)
    for _ in range(2):
        rebalance_table(data, table)
    assert len(counted) == 2


def test_ground_that_processes_lay_is_what_is_found_without_them(counted, monkeypatch):
    data = stays_of(confounded("linear", n_stays=60, seed=6))
    table = np.full((data.n_decisions, data.n_actions), 1 / data.n_actions)
    plain = rebalance_table(data, table, brief=True)
    for place in (balancing, beside, crew, folds_at_once):
        monkeypatch.setattr(place, "n_workers", lambda n: min(n, 3))
    monkeypatch.setattr(beside, "FEWEST", 1)
    ground = begin_ground(data, torch.device("cuda"))
    assert begin_ground(data, torch.device("cuda")) is ground
    assert np.array_equal(ground().decided.features, visible_rows(data))
    balancing._REMEMBERED.clear()
    laid = rebalance_table(data, table, brief=True, ground=ground)
    assert len(counted) == 2
    assert np.array_equal(laid.propensities, plain.propensities)
    assert laid.sentence == plain.sentence


def test_in_sample_propensities_are_balanced_in_folds_of_their_own():
    data = stays_of(confounded("linear", n_stays=300, seed=4))
    assert logged(data, MARGINAL, n_folds=1).rebalanced.used


def test_what_learners_stand_on_is_balanced_and_support_is_not():
    data = stays_of(confounded("linear", n_stays=300, seed=5))
    settings = {"encoder": GRU(6), "seed": 0, "support": 0.2, "model": MARGINAL}
    on, off = (
        drive(lay_foundation(data, training=training(balance=balance), **settings))
        for balance in (True, False)
    )
    assert on.rebalanced.used
    assert off.rebalanced is None
    assert not np.array_equal(on.chance, off.chance)
    assert np.array_equal(on.allowed, off.allowed)


def test_a_learner_tells_what_balancing_did():
    data = stays_of(confounded("linear", n_stays=200, seed=6))
    learner = EtIPS(**small(propensity=BalancedPropensity(MARGINAL), translations=(0.5,))).fit(data)
    assert learner.rebalanced_.used
    assert "balanced: imbalance of the prognosis" in learner.rebalanced_.sentence
