"""The simulated ward is what it says: its exact truth against brute force."""

import numpy as np
import pytest

from benchmarks.ward import CONTEXTS, N_ACTIONS, Ward


def test_the_policy_has_the_risk_asked_for():
    for risk in (0.05, 0.5, 0.95):
        ward = Ward(seed=3, risk=risk, gamma=2.0)
        assert ward.risk_of(ward.policy) == pytest.approx(risk, abs=1e-9)


def test_true_risks_agree_with_a_large_draw():
    ward = Ward(seed=1, gamma=2.0, per_stay=4)
    draw = ward.draw(100_000, seed=0)
    assert draw.loss.mean() == pytest.approx(ward.logged_risk, abs=0.006)
    shown = np.bincount(draw.context * N_ACTIONS + draw.action, minlength=24 * N_ACTIONS)
    share = shown.reshape(24, N_ACTIONS) / np.bincount(draw.context)[:, None]
    assert share == pytest.approx(ward.propensities, abs=0.02)


def test_hidden_odds_stay_within_gamma_and_average_to_what_is_seen():
    ward = Ward(seed=2, gamma=3.0)
    hidden = ward.hidden_propensities
    assert hidden.sum(axis=2) == pytest.approx(1)
    assert hidden.mean(axis=0) == pytest.approx(ward.propensities)
    ratio = hidden / (1 - hidden) / (ward.propensities / (1 - ward.propensities))
    assert ratio.max() == pytest.approx(3)
    assert ratio.min() == pytest.approx(1 / 3)


def test_decisions_of_one_stay_are_alike():
    draw = Ward(per_stay=2).draw(40_000, seed=0)
    pairs = draw.loss.reshape(-1, 2)
    assert np.corrcoef(pairs.T)[0, 1] > 0.05
    assert (draw.context.reshape(-1, 2)[:, 0] == draw.context.reshape(-1, 2)[:, 1]).mean() > 0.2


def test_without_effects_every_policy_has_the_clinicians_risk():
    ward = Ward(effect=0.0)
    assert ward.risk_of(ward.policy) == pytest.approx(ward.logged_risk)
    other = np.eye(N_ACTIONS)[(ward.best + 1) % N_ACTIONS]
    assert ward.risk_of(other) == pytest.approx(ward.logged_risk)


def test_less_overlap_means_larger_weights():
    most = [1 / Ward(overlap=o, reluctance=5.0).propensities[CONTEXTS, Ward().best].min()
            for o in (0.3, 0.1, 0.01)]  # fmt: skip
    assert most == sorted(most)
    assert most[-1] > 100
