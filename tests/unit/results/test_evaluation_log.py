"""Where an evaluation takes propensities and predicted losses from."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import CLINIC

from etips.learn import PredictiveModel, RandomPolicy
from etips.learn.fitting.stages import Training
from etips.learn.training.settings import Settings
from etips.models import GRU
from etips.results.evaluation_log import Models, make_log

QUICK = Training(n_folds=1, **{s: Settings(epochs=1) for s in ("propensity", "outcome", "policy")})
MODELS = Models(encoder=GRU(4), training=QUICK, outcome=False)


@pytest.fixture(scope="module")
def stays():
    return CLINIC.log(60, seed=1)


def test_known_propensities_stand_as_they_are_and_those_of_a_policy_are_kept_beside(stays):
    policy = PredictiveModel(encoder=GRU(4), training=QUICK).fit(stays)
    made = make_log([policy], stays, MODELS)
    assert np.array_equal(made.log.propensity, stays.logged_propensity)
    assert made.log.propensities is None
    assert made.fitted.shape == (stays.n_decisions, stays.n_actions)
    assert made.notes["propensities"] == "known, from the data"


def test_unknown_propensities_are_cross_fitted_where_no_policy_brings_some(stays):
    unknown = replace(stays, propensity=None)
    made = make_log([RandomPolicy().fit(unknown)], unknown, MODELS)
    assert np.allclose(made.log.propensities.sum(axis=1), 1)
    assert made.notes["propensities"] == "cross-fitted on the evaluated stays"
    assert made.fitted is None
    assert made.log.propensity.min() >= MODELS.clip


def test_no_stay_is_judged_by_a_network_that_saw_it():
    assert QUICK.n_folds == 1
    assert MODELS.n_folds == 2
