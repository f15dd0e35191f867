"""What learners stand on: propensities and support."""

import numpy as np
import pytest
import torch
from small_worlds import CLINIC, training, ward

from etips.errors import SettingError
from etips.learn import KnownPropensity
from etips.learn.fitting.driver import drive
from etips.learn.learners.foundation import lay_foundation, usual_kl
from etips.learn.nuisance import balancing
from etips.learn.training import beside
from etips.models.encoders.gru import GRU

CPU = torch.device("cpu")


def lay(data, **more):
    usual = {
        "encoder": GRU(6),
        "model": None,
        "training": training(),
        "support": 0.0,
        "clip": 0.01,
        "seed": 0,
    }
    return drive(lay_foundation(data, **{**usual, **more}))


@pytest.mark.parametrize(
    "setting", [{"clip": 0}, {"clip": 1.1}, {"support": -0.1}, {"support": 1}, {"seed": -1}]
)
def test_a_setting_outside_its_limits_is_refused(setting):
    with pytest.raises(SettingError, match=f"^{next(iter(setting))}: must be in "):
        lay(CLINIC.log(10, seed=0), **setting)


def test_an_action_is_allowed_where_its_propensity_out_of_fold_reaches_the_floor():
    base = lay(CLINIC.log(60, seed=0), support=0.33)
    assert (base.allowed == (np.exp(base.propensity.log_probabilities) >= 0.33)).all()
    assert base.allowed.any()
    assert not base.allowed.all()
    assert base.support == 0.33


def test_without_a_floor_everything_is_allowed():
    assert lay(CLINIC.log(30, seed=0)).allowed.all()


@pytest.mark.parametrize(("lag", "floor"), [(0, 0.05), (1, 0.1)])
def test_the_floor_is_higher_where_the_decision_is_hidden(lag, floor):
    assert lay(ward(lag=lag), support=None).support in (0.0, floor)
    assert lay(ward(lag=lag), support=None, model=KnownPropensity()).support in (0.0, floor)


def test_propensities_are_raised_to_the_clip_and_counted():
    data = CLINIC.log(60, seed=0)
    base = lay(data, model=KnownPropensity(), clip=0.4)
    assert (base.chance == np.maximum(data.logged_propensity, 0.4)).all()
    assert base.clipped_share == pytest.approx((data.logged_propensity < 0.4).mean())


def test_values_by_row_stand_where_their_decision_is_answered():
    data = ward(lag=1)
    base = lay(data)
    rows = base.log_chance_rows().numpy()
    assert rows[data.decision_rows - 1] == pytest.approx(np.log(base.chance), abs=1e-6)
    other = np.setdiff1d(np.arange(data.n_steps), data.decision_rows - 1)
    assert (rows[other] == 0).all()
    assert (base.allowed_rows().numpy()[data.decision_rows - 1] == base.allowed).all()


def test_a_policy_keeps_what_it_stands_on():
    data = CLINIC.log(30, seed=0)
    base = lay(data, support=0.2)
    policy = base.policy("constant", constant=1)
    assert policy.schema == data.schema
    assert policy.support == 0.2
    assert policy.propensity is base.propensity.together
    assert policy.earlier_actions is False
    base = lay(data, training=training(earlier_actions=True))
    assert base.policy("imitation").earlier_actions is True


def test_propensities_are_asked_of_stays_that_are_ready_as_a_policy_asks_them():
    data = ward(lag=1)
    base = lay(data)
    policy = base._policy("imitation", networks=None, constant=None, acts="draws")
    assert np.array_equal(base._together(policy), policy.propensities(data))


@pytest.mark.parametrize(("lag", "wanted"), [(0, 0.02), (1, 0.05)])
def test_policies_are_pulled_harder_where_the_present_is_hidden(lag, wanted):
    data = ward(lag=lag)
    assert usual_kl(None, data) == wanted
    assert usual_kl(0.3, data) == 0.3
    assert usual_kl(0.0, data) == 0.0


def count_forks(monkeypatch):
    """Let even a small log be worth a process; every process adds to the list."""
    forked, fork = [], beside.fork_child
    monkeypatch.setattr(beside, "FEWEST", 1)
    monkeypatch.setattr(beside, "n_workers", lambda n: n)
    monkeypatch.setattr(beside, "fork_child", lambda *a: forked.append(1) or fork(*a))
    return forked


def test_what_is_done_beside_the_networks_comes_to_the_same(monkeypatch):
    data = CLINIC.log(150, seed=0)
    here = lay(data, regression=True)
    balancing._REMEMBERED.clear()
    forked = count_forks(monkeypatch)
    there = lay(data, regression=True)
    assert len(forked) == 2  # for balance, and for regressions
    assert np.array_equal(there.chance, here.chance)
    assert there.rebalanced.log_loss_after == here.rebalanced.log_loss_after
    assert np.array_equal(there.regression().expected, here.regression().expected)
    assert np.array_equal(there.regression().model.weight, here.regression().model.weight)


@pytest.mark.parametrize(
    ("model", "balance", "n_forked"),
    [(None, True, 1), (None, False, 0), (KnownPropensity(), True, 0)],
)
def test_nothing_is_begun_that_nobody_asks_for(model, balance, n_forked, monkeypatch):
    forked = count_forks(monkeypatch)
    lay(CLINIC.log(60, seed=0), model=model, training=training(balance=balance))
    assert len(forked) == n_forked


def test_learners_of_the_same_stays_share_what_is_begun(monkeypatch):
    data = CLINIC.log(60, seed=0)
    assert balancing.begin_ground(data, CPU) is None  # so small a log is not worth a process
    forked = count_forks(monkeypatch)
    first = balancing.begin_ground(data, CPU)
    assert balancing.begin_ground(data, CPU) is first
    assert forked == [1]
    assert balancing.begin_ground(CLINIC.log(60, seed=0), CPU) is not first
    assert (
        balancing.begin_ground(data.subset(np.arange(60) < 10), CPU) is None
    )  # too few to balance
