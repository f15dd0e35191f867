"""Policies that decide throughout, evaluated: what is said, and what is not."""

import json
from dataclasses import replace

import numpy as np
import pytest
from small_worlds import training

from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.learn.nuisance import stay_value
from etips.models.encoders.gru import GRU
from etips.results.evaluate import evaluate
from etips.results.evaluation_log import Models
from etips.results.parsing import read_results
from etips.results.records import ONE_DECISION, THROUGHOUT


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch):
    """What these small worlds need, and no more."""
    monkeypatch.setattr(stay_value, "LEAST_BATCHES", 6)
    monkeypatch.setattr(stay_value, "ROUND_STEPS", 40)


class Always:
    """One action for everybody."""

    def __init__(self, action):
        self.action = action

    def predict_proba(self, data):
        return np.eye(data.n_actions)[np.full(data.n_decisions, self.action)]


def debts(n_stays=400, seed=0, n_actions=2, n_visits=3):
    """A drawn action; 1 spares a loss now and makes one likely at the next visit."""
    rng = np.random.default_rng(seed)
    action = rng.integers(0, n_actions, (n_stays, n_visits))
    debt = np.concatenate([np.zeros((n_stays, 1), int), action[:, :-1] == 1], axis=1)
    chance = 0.3 - 0.3 * (action == 1) + 0.7 * debt
    return Trajectories(
        sequence=debt.reshape(-1, 1).astype(np.float32),
        offsets=np.arange(n_stays + 1) * n_visits,
        schema=Schema(sequence=("debt",), n_actions=n_actions, lag=0),
        action=action.ravel(),
        loss=(rng.random(action.shape) < chance).astype(float).ravel(),
        propensity=np.full(action.size, 1 / n_actions),
    )


def models(epochs=8):
    settings = training(epochs=epochs)
    return Models(encoder=GRU(8), training=settings)


def test_a_gain_at_one_decision_that_is_a_loss_over_the_stay_is_not_called_better_s13():
    found = evaluate(
        {"one": Always(1), "none": Always(0)}, debts(), models=models(), horizon="stay"
    )
    one, none = found.methods
    assert one.gain.better_at_one_decision
    assert not one.gain.better
    assert one.whole_stay.gain.difference > 0
    assert one.whole_stay.reversal
    assert none.whole_stay.gain.difference < 0
    assert not none.whole_stay.reversal
    assert none.whole_stay.gain.better
    truth = 2 * 0.7
    assert one.whole_stay.estimates[0].low < truth < one.whole_stay.estimates[0].high


def test_both_risks_are_told_in_a_sentence_each():
    (one,) = evaluate(Always(1), debts(), models=models(), horizon="stay").methods
    assert one.whole_stay.sentence.startswith(THROUGHOUT)
    assert "against" in one.whole_stay.sentence
    assert one.whole_stay.one_decision.startswith(ONE_DECISION)


def test_results_with_whole_stays_are_read_back(tmp_path):
    found = evaluate(Always(0), debts(120), models=models(2), horizon="stay", outcome="last")
    path = tmp_path / "results.json"
    path.write_text(json.dumps(found.to_json()))
    assert read_results(path).methods[0].whole_stay == found.methods[0].whole_stay


def test_nobody_looks_unless_asked():
    (one,) = evaluate(Always(0), debts(60), models=models(1)).methods
    assert one.whole_stay is None
    assert not one.gain.better


def test_few_outcomes_are_hidden():
    data = debts(120)
    loss = np.zeros(data.n_steps)
    loss[[2, 5, 8]] = 1.0
    found = evaluate(
        Always(0), replace(data, loss=loss), models=models(1), horizon="stay", outcome="last"
    )
    stay = found.methods[0].whole_stay
    assert stay.clinicians is None
    assert stay.gain.difference is None
    assert "not shown" in stay.sentence


def test_without_a_model_ratios_speak_alone():
    bare = replace(models(), outcome=False)
    (one,) = evaluate(Always(1), debts(), models=bare, horizon="stay").methods
    assert [e.estimator for e in one.whole_stay.estimates] == ["pdwis"]


def test_a_hopeless_overlap_is_doubtful_and_its_sign_still_right():
    data = debts(200, n_actions=5, n_visits=5)
    (one,) = evaluate(Always(1), data, models=models(5), horizon="stay").methods
    stay = one.whole_stay
    assert stay.verdict != "reliable"
    assert stay.gain.difference > 0
    assert not stay.gain.better
    assert stay.n_corrected < stay.longest_stay == 5


class Usual:
    """What the clinicians do: hardly ever action 1."""

    table = np.array([0.9998, 0.0002])

    def predict_proba(self, data):
        return np.tile(self.table, (data.n_decisions, 1))


def test_what_clinicians_do_is_reliable_over_whole_stays_though_an_action_is_rare():
    data = debts(300)
    rare = replace(data, action=np.zeros(data.n_steps, int), propensity=np.full(900, 0.9998))
    (one,) = evaluate(Usual(), rare, models=models(2), horizon="stay").methods
    assert one.verdict == "doubtful"
    assert one.whole_stay.verdict == "reliable", one.whole_stay.reasons
