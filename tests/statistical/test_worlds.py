"""Long runs: what the worlds log agrees with what they say of themselves."""

import numpy as np
import pytest

from etips.worlds import icu_sepsis
from etips.worlds.clinic import Clinic

pytestmark = pytest.mark.statistical

REPEATS = 400


def ips(log, policy):
    weight = policy[log.truth.code, log.action] / log.propensity
    return (weight * log.loss).mean()


@pytest.mark.parametrize("gamma", [1.0, 3.0])
def test_inverse_propensity_weighting_is_unbiased_for_the_naive_risk(gamma):
    clinic = Clinic(confounding=gamma, decisions_per_stay=6)
    best = clinic.best_table()
    found = np.array([ips(clinic.log(300, seed=s), best) for s in range(REPEATS)])
    error = found.std() / np.sqrt(REPEATS)
    assert abs(found.mean() - clinic.naive_risk(best)) < 4 * error
    if gamma == 1:
        assert clinic.naive_risk(best) == pytest.approx(clinic.true_risk(best))
    else:  # the bias of believing the propensities is many times the noise of this test
        assert clinic.true_risk(best) - found.mean() > 20 * error


def test_clusters_matter_to_the_noise_of_a_mean_loss():
    clinic = Clinic(frailty=0.9, decisions_per_stay=10)
    logs = [clinic.log(200, seed=s).loss for s in range(REPEATS)]
    spread = np.std([loss.mean() for loss in logs])
    as_if_independent = np.mean([loss.std() / np.sqrt(loss.size) for loss in logs])
    assert spread > 1.3 * as_if_independent


@pytest.mark.parametrize("lag", [0, 1])
def test_a_hundred_thousand_stays_have_the_exact_risk_and_occupancy(lag):
    data = icu_sepsis.simulate(100_000, seed=1, lag=lag)
    clinicians = icu_sepsis.exact_risk(icu_sepsis.clinicians(), lag=lag)
    # Steps of a stay are dependent: the stay is the unit of noise.
    per_stay = np.bincount(data.decisions().stay, data.logged_loss - clinicians)
    error = np.sqrt((per_stay**2).sum()) / data.n_decisions
    assert abs(data.logged_loss.mean() - clinicians) < 4 * error
    state = data.truth.code[data.decision_rows]
    found = np.bincount(state, minlength=716) / data.n_decisions
    exact = icu_sepsis.occupancy(lag=lag)
    # A state is left at times only after many steps: allow a count five times its Poisson noise.
    assert (np.abs(found - exact) < 25 * np.sqrt(exact / data.n_decisions) + 1e-5).all()
    assert np.abs(found - exact).sum() < 0.06
