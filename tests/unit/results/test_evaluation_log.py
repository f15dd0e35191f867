"""Where an evaluation takes propensities and predicted losses from."""

from dataclasses import replace

import numpy as np
import pytest
from confounded_worlds import confounded, stays_of
from small_worlds import CLINIC

from etips.errors import DataError, SettingError
from etips.learn import PredictiveModel, RandomPolicy
from etips.learn.fitting.stages import Training
from etips.learn.training.settings import Settings
from etips.models import GRU
from etips.results.evaluation_log import Models, check_known, make_log

QUICK = Training(n_folds=1, **{s: Settings(epochs=1) for s in ("propensity", "outcome", "policy")})
MODELS = Models(encoder=GRU(4), training=QUICK, outcome=False)


@pytest.fixture(scope="module")
def stays():
    return CLINIC.log(60, seed=1)


def test_known_propensities_stand_as_they_are_and_those_of_a_policy_are_kept_beside(stays):
    policy = PredictiveModel(encoder=GRU(4), training=QUICK).fit(stays)
    made = make_log({"own": policy}, stays, MODELS)
    assert np.array_equal(made.log.propensity, stays.logged_propensity)
    assert made.log.propensities is None
    assert made.fitted.shape == (stays.n_decisions, stays.n_actions)
    assert made.notes["propensities"] == "known, from the data"


@pytest.mark.parametrize("policy", ["none", "own"])
def test_unknown_propensities_are_cross_fitted_whoever_brings_some(stays, policy):
    unknown = replace(stays, propensity=None)
    own = PredictiveModel(encoder=GRU(4), training=QUICK).fit(unknown)
    policies = {"none": RandomPolicy().fit(unknown)} | ({"own": own} if policy == "own" else {})
    made = make_log(policies, unknown, MODELS)
    assert np.allclose(made.log.propensities.sum(axis=1), 1)
    assert made.notes["propensities"].startswith("cross-fitted on the evaluated stays")
    assert made.fitted is None
    assert made.log.propensity.min() >= MODELS.clip


def test_those_of_a_policy_serve_whoever_asks_for_them(stays):
    unknown = replace(stays, propensity=None)
    policy = PredictiveModel(encoder=GRU(4), training=QUICK).fit(unknown)
    policies = {"none": RandomPolicy().fit(unknown), "own": policy}
    made = make_log(policies, unknown, replace(MODELS, propensity="policy"))
    assert np.array_equal(made.log.propensities, policy.policy_.propensities(unknown))
    assert made.notes["propensities"] == "fitted with the policy own, on its training stays"


def test_what_an_interval_leaves_out_is_said_where_propensities_are_fitted(stays):
    unknown = replace(stays, propensity=None)
    policies = {"random": RandomPolicy().fit(unknown)}
    key = "intervals of snips and ips leave out"
    assert "error of the fitted propensities" in make_log(policies, unknown, MODELS).notes[key]
    assert key not in make_log(policies, stays, MODELS).notes


def test_a_source_of_propensities_that_does_not_exist_is_refused():
    with pytest.raises(SettingError, match=r"^propensity: must be one of cross-fitted, policy"):
        Models(propensity="guess")


def test_a_known_table_stands_as_it_is_and_the_log_knows_it(stays):
    for data in (stays, replace(stays, propensity=None)):
        made = make_log({}, data, MODELS, known=stays.true_logging())
        assert np.array_equal(made.log.propensities, stays.true_logging())
        assert made.log.propensity == pytest.approx(stays.logged_propensity, abs=1e-6)
        assert made.log.known
        assert made.log.propensity_floor == 0
        assert made.notes["propensities"] == "known of every action, as given"


def test_a_known_table_that_is_none_or_contradicts_the_data_is_refused(stays):
    right = stays.true_logging()
    with pytest.raises(DataError, match=r"^propensities: must agree with the propensity in the"):
        check_known(np.roll(right, 1, axis=1), stays)
    with pytest.raises(DataError, match=r"^propensities: "):
        check_known(right[:-1], stays)
    never = np.eye(3)[(stays.logged_action + 1) % 3]
    with pytest.raises(DataError, match=r"^propensities: must be above 0 for the logged action"):
        check_known(never, replace(stays, propensity=None))


def test_no_stay_is_judged_by_a_network_that_saw_it():
    assert QUICK.n_folds == 1
    assert MODELS.n_folds == 2


def test_the_note_names_the_models_with_their_weights_the_heaviest_first():
    data = stays_of(confounded("square", n_stays=300, seed=0))
    made = make_log({"random": RandomPolicy().fit(data)}, data, replace(MODELS, outcome=True))
    for what in ("propensities", "predicted losses"):
        source, models = made.notes[what].split(": ")
        assert source == "cross-fitted on the evaluated stays"
        weights = [float(own.split(" ")[-1]) for own in models.split(", ")]
        assert sum(weights) == pytest.approx(1, abs=0.02)
        assert weights == sorted(weights, reverse=True)
    assert made.log.plain_propensity.shape == (data.n_decisions,)
    assert made.log.plain_predicted.shape == made.log.predicted.shape


def test_one_model_may_be_asked_for_and_stands_beside_nothing():
    data = stays_of(confounded("square", n_stays=100, seed=0))
    made = make_log({}, data, replace(MODELS, models=("network",)))
    assert made.notes["propensities"] == "cross-fitted on the evaluated stays: network 1"
    assert made.log.plain_propensity is None
    with pytest.raises(SettingError, match=r"^models: must be some of regression, forest"):
        Models(models=("trees",))
