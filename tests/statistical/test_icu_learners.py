"""Learners on 20,000 stays of ICU-Sepsis, where the true risk of every policy is known.

About five minutes on one core. The clinicians' risk is 0.497 with lag 0 and 0.501 with lag
1, the best possible 0.445; the mean over 5,000 stays has an error of 0.001 that all policies share.
"""

from functools import cache

import numpy as np
import pytest

from etips.learn import DirectMethod, DoublyRobust, EtIPS, PredictiveModel, Settings, Training
from etips.models.encoders.gru import GRU
from etips.worlds import icu_sepsis

pytestmark = pytest.mark.statistical

TRAINING = Training(
    n_folds=3,
    device="cpu",
    propensity=Settings(epochs=12, learning_rate=4e-3, patience=4, dropout=0.1),
    outcome=Settings(epochs=8, learning_rate=2e-3, patience=3, dropout=0.1),
    policy=Settings(epochs=6, learning_rate=2e-3, patience=3, dropout=0.1),
)


@cache
def greedy_risk(learner, seed, lag):
    """True risk of the recommended actions on stays that were not learned from."""
    train = icu_sepsis.simulate(20_000, seed=seed, lag=lag)
    test = icu_sepsis.simulate(5_000, seed=100 + seed, lag=lag)
    more = {"translations": (0.6, 0.7, 0.8)} if learner is EtIPS else {}
    policy = learner(encoder=GRU(48), training=TRAINING, seed=seed, **more).fit(train)
    return test.true_risk(np.eye(test.n_actions)[policy.predict(test)])


@pytest.mark.parametrize("seed", [0, 1])
def test_etips_treats_better_than_the_clinicians_by_a_hundredth(seed):
    """Measured: 0.480 and 0.481 against 0.497 and 0.498."""
    test = icu_sepsis.simulate(5_000, seed=100 + seed, lag=0)
    clinicians = test.true_risk(test.true_logging())
    assert greedy_risk(EtIPS, seed, 0) < clinicians - 0.01


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("learner", [DoublyRobust, DirectMethod])
def test_with_the_state_hidden_support_keeps_learners_at_or_below_imitation(learner, seed):
    """Measured: 0.489 and 0.490, 0.490 and 0.491, against 0.495 and 0.496."""
    assert greedy_risk(learner, seed, 1) <= greedy_risk(PredictiveModel, seed, 1)
