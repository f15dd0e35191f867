"""Networks that predict the outcome of a stay in which a policy decides."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.learn.fitting.prepare import prepare
from etips.learn.fitting.trainer import Trainer
from etips.learn.nuisance import stay_value
from etips.learn.nuisance.stay_value import fit_stay_value
from etips.learn.training.settings import Settings
from etips.models.encoders.gru import GRU

SETTINGS = Settings(epochs=12, batch_size=16, learning_rate=0.02, patience=12)


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch):
    """What these small worlds need, and no more."""
    monkeypatch.setattr(stay_value, "LEAST_BATCHES", 24)
    monkeypatch.setattr(stay_value, "ROUND_STEPS", 150)


def debts(n_stays=200, seed=0, gaps=False):
    """Action 1 saves half a point now and costs one at the next decision; three decisions a stay.

    Always 1 has the outcome 1.5 + 2 - 1.5 = 2, always 0 has 1.5; one changed decision gains 0.5 at
    the end of a stay, and loses 0.5 before it.
    """
    rng = np.random.default_rng(seed)
    per_stay = 4 if gaps else 3
    action = rng.integers(0, 2, (n_stays, per_stay))
    treated = action if not gaps else np.delete(action, 1, axis=1)
    debt = np.concatenate([np.zeros((n_stays, 1), int), treated[:, :-1]], axis=1)
    loss = 0.5 - 0.5 * treated + debt
    features = debt[..., None].astype(np.float32)
    if gaps:  # the second step of every stay is no decision
        loss = np.insert(loss, 1, np.nan, axis=1)
        features = np.insert(features, 1, 0, axis=1)
    return Trajectories(
        sequence=features.reshape(-1, 1),
        offsets=np.arange(n_stays + 1) * per_stay,
        schema=Schema(sequence=("debt",), n_actions=2, lag=0),
        action=action.ravel(),
        loss=loss.ravel(),
    )


def fit(data, *, policy, outcome="sum", settings=SETTINGS, **more):
    prepared = prepare(data, n_folds=2, seed=0, device=torch.device("cpu"), earlier_actions=True)
    own = {"seed": 0, "policy": policy, "outcome": outcome, **more}
    return fit_stay_value(prepared, GRU(12), settings, Trainer(), **own)


def always(action, data):
    return np.eye(data.n_actions)[np.full(data.n_decisions, action)]


@pytest.mark.parametrize("gaps", [False, True])
def test_a_constant_policy_is_charged_for_what_comes_later(gaps):
    data = debts(gaps=gaps)
    assert data.n_decisions == 600
    first = slice(None, None, 3)
    for action, outcome in ((0, 1.5), (1, 2.0)):
        fitted = fit(data, policy=always(action, data))
        assert fitted.expected.shape == (600, 2)
        assert fitted.expected[first, action].mean() == pytest.approx(outcome, abs=0.1)
        assert 1 <= fitted.rounds <= 2


def test_the_last_decision_has_no_future():
    data = debts()
    expected = fit(data, policy=always(1, data)).expected
    last, debt = expected[2::3], data.sequence[2::3, 0]
    assert last[:, 0] == pytest.approx(0.5 + debt, abs=0.2)
    assert last[:, 1] == pytest.approx(debt, abs=0.2)


def test_the_greedy_policy_waits_until_the_end_and_may_be_confined():
    data = debts()
    free = fit(data, policy=None).expected
    assert (free[::3].argmin(1) == 0).all()
    assert (free[2::3].argmin(1) == 1).all()
    assert free[::3].min(1).mean() == pytest.approx(1.0, abs=0.15)
    confined = fit(data, policy=None, allowed=always(1, data)).expected
    assert confined[::3, 1].mean() == pytest.approx(2.0, abs=0.1)


def test_a_last_loss_is_predicted_as_a_probability():
    data = debts()
    loss = np.where(np.isnan(data.loss), np.nan, (data.loss > 0.9).astype(float))
    expected = fit(replace(data, loss=loss), policy=always(1, data), outcome="last").expected
    assert ((expected > 0) & (expected < 1)).all()
    assert expected[::3, 1].mean() > 0.9  # 1 after 1 costs a point at the end
    assert (
        fit(replace(data, loss=loss), policy=always(0, data), outcome="last")
        .expected[::3, 0]
        .mean()
        < 0.1
    )


def test_stays_of_one_decision_need_no_round():
    data = debts().subset(slice(0, 50))
    alone = replace(data, eligible=np.tile([True, False, False], 50))
    fitted = fit(alone, policy=always(0, alone))
    assert fitted.rounds == 0
    assert fitted.expected[:, 0] == pytest.approx(0.5, abs=0.1)


def test_the_networks_rank_the_actions_as_the_amounts_do():
    data = debts(60)
    fitted = fit(data, policy=None)
    assert fitted.bundle.network.n_outputs == 2
    assert fitted.bundle.n_members == 2
    assert fitted.bundle.parameters["head.bias"].shape == (2, 2)


def test_rare_late_decisions_share_a_start(monkeypatch):
    monkeypatch.setattr(stay_value, "LEAST_STAYS", 10**6)
    data = debts(60)
    assert np.isfinite(fit(data, policy=always(0, data)).expected).all()


def test_the_least_is_chosen_by_some_networks_and_priced_by_the_one_that_has_not_seen_the_stay():
    amounts = torch.tensor(
        [
            [[5.0, 1.0, torch.inf], [3.0, 2.0, 0.0]],
            [[2.0, 4.0, torch.inf], [1.0, 9.0, 9.0]],
            [[2.0, 4.0, torch.inf], [1.0, 9.0, 9.0]],
        ]
    )
    found = stay_value._least(amounts, torch.tensor([0, 1]))
    assert found.shape == (3, 2)
    # Decision 0: networks 1 and 2 choose action 0, network 0 prices it at 5, not at its least, 1.
    # Decision 1: networks 0 and 2 choose action 0 (4 against 11 and 9), network 1 prices it at 1.
    assert found[0].tolist() == found[2].tolist() == [5.0, 1.0]
    assert stay_value._least(amounts[:1], torch.tensor([0, 0])).tolist() == [[1.0, 0.0]]


def test_the_greedy_value_of_actions_that_are_all_alike_is_not_the_luckiest(monkeypatch):
    """Maximisation bias: of nine actions without any effect the least looks better than it is."""
    monkeypatch.setattr(stay_value, "ROUND_STEPS", 80)
    monkeypatch.setattr(stay_value, "LEAST_BATCHES", 10)
    rng = np.random.default_rng(4)
    data = Trajectories(
        sequence=rng.normal(size=(600, 2)).astype(np.float32),
        offsets=np.arange(151) * 4,
        schema=Schema(sequence=("a", "b"), n_actions=9, lag=0),
        action=rng.integers(0, 9, 600),
        loss=rng.normal(size=600),
    )
    expected = fit(data, policy=None).expected
    assert abs(expected[::4].mean()) < 0.5  # of a sum of four losses with mean 0
