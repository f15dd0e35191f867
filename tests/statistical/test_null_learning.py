"""Worlds in which no action matters: held out is held out, also after a choice."""

import numpy as np
import pytest

from etips.learn import TIPS, Settings, Training
from etips.models.encoders.gru import GRU
from etips.worlds.clinic import Clinic

pytestmark = pytest.mark.statistical

WORLDS = 40  # the mean of as many z has an error of 0.16
STAGE = Settings(epochs=12, learning_rate=5e-3, patience=4)


def fitted(seed, **more):
    """A learner in a world of its own, and the risk that all policies there have."""
    clinic = Clinic(effect=0.0, decisions_per_stay=2, n_actions=4)
    log = clinic.log(300, seed=seed)
    training = Training(
        n_folds=5, device="cpu", **dict.fromkeys(("propensity", "outcome", "policy"), STAGE)
    )
    learner = TIPS(encoder=GRU(16), training=training, seed=0, support=0.0, **more).fit(log)
    fresh = clinic.log(4000, seed=10_000 + seed)
    return learner, fresh.true_risk(fresh.true_logging())


def test_before_selection_held_out_risks_are_right():
    """They were too low by two thirds of their error: a fold stopped the networks it judged."""
    scores = []
    for seed in range(WORLDS):
        learner, truth = fitted(seed, translations=(0.5,), selection="paper")
        scores.append([(c.risk - truth) / c.std_error for c in learner.path_])
    assert np.abs(np.mean(scores, axis=0)).max() < 0.5  # three errors


def test_after_selection_the_corrected_risk_is_right():
    scores = []
    for seed in range(WORLDS):
        learner, truth = fitted(100 + seed, translations=(0.3, 0.5, 0.7, 0.9))
        risk, error, _ = learner.selected_risk_
        scores.append((risk - truth) / error)
    assert abs(np.mean(scores)) < 0.5
