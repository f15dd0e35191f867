"""What learners stand on: propensities and support."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from small_worlds import CLINIC, training, ward

from etips.errors import SettingError
from etips.learn import KnownPropensity, SklearnModel
from etips.learn.fitting.stages import ENCODER
from etips.learn.fitting.trainer import Trainer
from etips.learn.nuisance.fitted_nuisances import fit_nuisances
from etips.models.encoders.gru import GRU
from etips.models.encoders.last_step import LastStep


def lay(data, **more):
    usual = {
        "encoder": GRU(6),
        "model": None,
        "training": training(),
        "support": 0.0,
        "clip": 0.01,
        "seed": 0,
    }
    return fit_nuisances(data, Trainer(), **{**usual, **more})


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
    policy = base.policy("least loss")
    assert policy.acts == "likeliest"
    assert policy.schema == data.schema
    assert policy.support == 0.2
    assert policy.propensity is base.propensity.together
    assert policy.earlier_actions is False
    base = lay(data, training=training(earlier_actions=True))
    assert base.policy("imitation").earlier_actions is True


@pytest.mark.parametrize("model", [None, SklearnModel(LogisticRegression())])
def test_logged_propensities_come_from_the_networks_or_from_a_model_of_ones_own(model):
    data = CLINIC.log(60, seed=0)
    base = lay(data, model=model)
    own = np.exp(base.propensity.log_probabilities)[np.arange(data.n_decisions), data.logged_action]
    same = np.allclose(base.chance, np.maximum(own, 0.01))
    assert same == (model is None)


def test_the_usual_networks_have_no_memory_where_no_decision_sees_an_earlier_step():
    rows = CLINIC.log(30, seed=0)
    base = lay(rows, encoder=ENCODER)
    past = lay(ward(), encoder=ENCODER, training=training(epochs=1))
    assert past.encoder == ENCODER
    assert isinstance(base.encoder, LastStep) == (rows.n_steps == rows.n_stays)
