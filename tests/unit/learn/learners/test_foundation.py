"""What learners stand on: propensities, support, predicted losses."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_worlds import CLINIC, training, ward

from etips.data.tables.arrays import from_arrays
from etips.errors import SettingError
from etips.learn import KnownPropensity, Training
from etips.learn.fitting.prepare import prepare
from etips.learn.learners.foundation import (
    STAGES,
    conclude,
    fit_outcome,
    is_share,
    lay_foundation,
)
from etips.models.encoders.gru import GRU


def lay(data, **more):
    usual = {
        "encoder": GRU(6),
        "model": None,
        "training": training(),
        "support": 0.0,
        "clip": 0.01,
        "seed": 0,
    }
    return lay_foundation(data, **{**usual, **more})


def outcome(data, **more):
    prepared = prepare(data, n_folds=2, seed=0, device=torch.device("cpu"))
    settings = replace(training(epochs=12).outcome, learning_rate=0.02)
    return fit_outcome(prepared, GRU(6), settings, seed=0, **more)


def test_a_seed_reaches_every_stage_and_leaves_the_rest():
    plain = Training(n_folds=3)
    seeded = plain.with_seed(7)
    assert {getattr(seeded, stage).seed for stage in STAGES} == {7}
    assert seeded.with_seed(0) == plain
    assert seeded.n_folds == 3


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


def test_outcome_networks_are_fitted_only_when_asked_for():
    data = CLINIC.log(30, seed=0)
    with_them = lay(data, outcome=True)
    assert with_them.expected.shape == (data.n_decisions, 3)
    without = lay(data, outcome=False)
    assert without.outcome is None
    assert without.expected is None


def test_values_by_row_stand_where_their_decision_is_answered():
    data = ward(lag=1)
    base = lay(data)
    rows = base.log_chance_rows().numpy()
    assert rows[data.decision_rows - 1] == pytest.approx(np.log(base.chance), abs=1e-6)
    other = np.setdiff1d(np.arange(data.n_steps), data.decision_rows - 1)
    assert (rows[other] == 0).all()
    assert (base.allowed_rows().numpy()[data.decision_rows - 1] == base.allowed).all()


def test_losses_within_zero_and_one_are_shares():
    features, action = np.zeros((4, 1)), [0, 1, 0, 1]
    for loss, share in (([0, 1, 0.5, 1], True), ([0, 1.01, 0, 1], False), ([0, -0.1, 0, 1], False)):
        assert is_share(from_arrays(features, action, loss)) is share


def test_predicted_shares_lie_within_zero_and_one():
    _, found = outcome(CLINIC.log(100, seed=0))
    assert ((found > 0) & (found < 1)).all()


@pytest.mark.parametrize(("scale", "shift"), [(100.0, 300.0), (1.0, -50.0), (1e-4, 7.0)])
def test_predicted_amounts_are_in_the_units_of_the_loss(scale, shift):
    rng = np.random.default_rng(0)
    features, action = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    loss = shift + scale * (features[:, 0] + action)
    _, found = outcome(from_arrays(features, action, loss))
    logged = found[np.arange(300), action]
    assert logged.mean() == pytest.approx(loss.mean(), abs=0.2 * scale)
    assert np.corrcoef(logged, loss)[0, 1] > 0.8


def test_equal_losses_are_predicted_without_a_spread_to_divide_by():
    data = from_arrays(np.eye(6, 2), [0, 1] * 3, [9.0] * 6)
    _, found = outcome(data)
    assert np.isfinite(found).all()
    assert found == pytest.approx(9.0, abs=1.0)


def test_an_additive_network_ranks_the_actions_alike_for_everybody():
    bundle, found = outcome(CLINIC.log(60, seed=0), additive=True)
    logits = np.log(found / (1 - found))
    gaps = np.unique((logits - logits[:, :1]).round(4), axis=0)
    assert len(gaps) <= bundle.n_members
    assert len(np.unique(logits.round(4), axis=0)) > bundle.n_members


def test_a_policy_keeps_what_it_stands_on():
    data = CLINIC.log(30, seed=0)
    base = lay(data, support=0.2)
    policy = conclude(base, "constant", constant=1)
    assert policy.schema == data.schema
    assert policy.support == 0.2
    assert policy.temperature == base.propensity.temperature
    assert policy.earlier_actions is False
    base = lay(data, training=training(earlier_actions=True))
    assert conclude(base, "imitation").earlier_actions is True
