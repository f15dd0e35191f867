"""Networks or trees: who takes part, who wins, and what is refused."""

import logging
import math

import numpy as np
import pytest
import torch
from small_worlds import CLINIC, training
from tabular_worlds import thresholds, trial

from etips.data.tables.arrays import from_arrays
from etips.errors import SettingError
from etips.learn.fitting.driver import drive
from etips.learn.fitting.prepare import prepare
from etips.learn.fitting.stages import ENCODER, Training
from etips.learn.nuisance import model_choice
from etips.learn.nuisance.model_choice import Rivals, name_of
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.encoders.last_step import LastStep
from etips.models.forest import Forest
from etips.results import evaluation_log

STAYS, ROWS = CLINIC.log(30, seed=0), trial(30)


def rivals(models, data, encoder=ENCODER, **more):
    return Rivals.of(models, data, encoder, seed=0, **more)


def test_networks_stay_alone_where_decisions_have_a_past():
    assert rivals("auto", STAYS) == Rivals(ENCODER)
    assert rivals("networks", ROWS) == Rivals(ENCODER)


def test_trees_take_part_where_a_decision_sees_one_step():
    assert rivals("auto", ROWS) == Rivals(LastStep(), trees=True)
    assert rivals("auto", STAYS, "last") == Rivals(LastStep(), trees=True)
    assert rivals("trees", ROWS) == Rivals(LastStep(), networks=False, trees=True)
    assert rivals("trees", ROWS, GRU(5)) == Rivals(GRU(5), networks=False, trees=True)


def test_an_encoder_of_ones_own_asks_for_networks():
    assert rivals("auto", ROWS, GRU(5)) == Rivals(GRU(5))


def test_trees_that_would_miss_the_past_are_refused():
    for data, more in ((STAYS, {}), (ROWS, {"earlier_actions": True})):
        with pytest.raises(SettingError, match=r"^models: must be auto or networks where .*last"):
            rivals("trees", data, **more)
    with pytest.raises(SettingError, match="must be auto or networks or trees"):
        rivals("forests", ROWS)


def test_without_scikit_learn_networks_are_used_and_told(monkeypatch, caplog):
    monkeypatch.setattr(model_choice, "can_grow_trees", lambda: False)
    with caplog.at_level(logging.WARNING):
        assert rivals("auto", ROWS) == Rivals(ENCODER)
    assert "scikit-learn is not installed" in caplog.text
    with pytest.raises(SettingError, match="trees need scikit-learn"):
        rivals("trees", ROWS)


def test_batches_beside_trees_grow_with_the_stays_unless_somebody_set_them():
    both, usual = Rivals(LastStep(), trees=True), Settings()
    assert both.suit(usual, 2560) == usual
    assert both.suit(usual, 900) == Settings(batch_size=90)
    assert both.suit(usual, 90) == Settings(batch_size=32)
    larger = both.suit(usual, 20_000)
    assert larger.batch_size == 2000
    assert larger.learning_rate == pytest.approx(usual.learning_rate * math.sqrt(2000 / 256))
    assert both.suit(Settings(batch_size=64), 20_000) == Settings(batch_size=64)
    assert Rivals(ENCODER).suit(usual, 20_000) == usual
    learned = Rivals(ENCODER, brief=True)
    assert learned.suit(usual, 20_000) == usual
    assert learned.suit(usual, 600) == Settings(batch_size=60)
    assert Rivals(ENCODER).suit(usual, 600) == usual  # of an evaluation


def fitted(data):
    prepared = prepare(data, n_folds=2, seed=0, device=torch.device("cpu"))
    plan, own = rivals("auto", data), Training(n_folds=2)
    return drive(plan.propensity(prepared, own)), drive(plan.outcome(prepared, own))


def test_trees_win_where_thresholds_rule(caplog):
    with caplog.at_level(logging.INFO):
        propensity, outcome = fitted(thresholds(2000)[0])
    assert isinstance(propensity.together, Forest)
    assert isinstance(outcome.bundle, Forest)
    assert "propensities by trees: held-out risk of trees 0." in caplog.text


def test_networks_win_where_everything_is_linear():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(900, 6))
    slope = rows @ np.array([1.0, -1, 0.8, 0.7, -0.6, 0.5])
    action = (rng.random(900) < 1 / (1 + np.exp(-slope))).astype(int)
    dies = rng.random(900) < 1 / (1 + np.exp(slope))
    data = from_arrays(rows, action, dies.astype(float))
    propensity, _ = fitted(data)
    assert isinstance(propensity.together, Bundle)
    assert name_of(propensity.together) == "networks"


def test_the_additive_network_has_no_rival():
    prepared = prepare(ROWS, n_folds=2, seed=0, device=torch.device("cpu"))
    for models in ("auto", "trees"):
        additive = drive(rivals(models, ROWS).outcome(prepared, training(), additive=True))
        assert additive.bundle.network.additive


def test_many_stays_are_learned_in_fewer_epochs_unless_somebody_set_them_or_evaluates():
    usual = Training().with_seed(7).propensity
    brief = Rivals(ENCODER, brief=True)
    short = brief.shorten(usual, 16_000)
    assert (short.epochs, short.batch_size, short.seed) == (5, 128, 7)
    assert brief.shorten(usual, 5_000).epochs == 11
    assert brief.shorten(usual, 4_999) == usual
    assert brief.shorten(Settings(epochs=25), 16_000) == Settings(epochs=25)
    assert Rivals(ENCODER).shorten(usual, 16_000) == usual
    assert Rivals(LastStep(), trees=True, brief=True).shorten(usual, 16_000) == usual


def test_an_evaluation_does_not_shorten_what_it_fits():
    data = CLINIC.log(40, seed=0)
    assert not evaluation_log._rivals(data, evaluation_log.Models()).brief
