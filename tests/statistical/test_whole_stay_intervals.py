"""Mortality of policies that decide throughout, from logs of ICU-Sepsis: intervals hold the truth.

A table of states and actions stands in for the networks, so that many logs take seconds.
"""

import numpy as np
import pytest

from etips.evaluation.whole_stay import StayLog, assess_stays
from etips.evaluation.whole_stay_course import Course
from etips.worlds import icu_sepsis

pytestmark = pytest.mark.statistical

LOGS, STAYS, LONGEST = 40, 3000, 200
PRIOR = 8.0  # decisions that an action is taken to be like all others for
N = icu_sepsis.DEATH


def greedy(support):
    """The action of least loss at one decision, among those that clinicians take."""
    usual, loss = icu_sepsis.clinicians(), icu_sepsis.expected_loss()
    least = np.where(usual >= support, loss, np.inf).argmin(axis=1)
    return np.eye(icu_sepsis.N_ACTIONS)[least]


def soft():
    """Between the clinicians and the greedy policy."""
    usual, loss = icu_sepsis.clinicians(), icu_sepsis.expected_loss()
    kept = usual * np.exp(-20 * loss) * (usual >= 0.05)
    kept[N:] = 1.0
    return kept / kept.sum(axis=1, keepdims=True)


def fitted_values(state, action, charge, following, policy, learned):
    """Fitted Q evaluation with a table: value (N,) and values of actions (N, K)."""
    state, action, charge, following = (v[learned] for v in (state, action, charge, following))
    n_actions = policy.shape[1]
    cell, value = state * n_actions + action, np.full(N, 0.2)
    in_cell = np.bincount(cell, minlength=N * n_actions).reshape(N, -1)
    in_state = np.bincount(state, minlength=N)
    for _ in range(60):
        target = charge + np.where(following >= 0, value[following], 0.0)
        mean = (np.bincount(state, target, N) + 0.5) / (in_state + 2)
        total = np.bincount(cell, target, N * n_actions).reshape(N, -1)
        table = (total + PRIOR * mean[:, None]) / (in_cell + PRIOR)
        value = (table * policy[:N]).sum(axis=1)
    return value, table


def assess_log(policy, seed):
    data = icu_sepsis.simulate(STAYS, seed=seed, lag=0, max_steps=LONGEST, loss="mortality")
    state, action, stay = data.truth.code.astype(int), data.logged_action, data.decisions().stay
    course = Course.of(stay, data.logged_loss, "last")
    following = np.where(course.ends, -1, np.append(state[1:], -1))
    value, taken = np.zeros((2, state.size))
    for half in (0, 1):
        asked = stay % 2 == half
        own, table = fitted_values(state, action, course.charge, following, policy, ~asked)
        value[asked], taken[asked] = own[state[asked]], table[state[asked], action[asked]]
    weight = policy[state, action] / data.logged_propensity
    return assess_stays(StayLog(course, weight, stay, value, taken))


@pytest.mark.parametrize("policy", [greedy(0.05), soft()], ids=["greedy", "soft"])
def test_intervals_hold_the_exact_mortality_s13(policy):
    truth = icu_sepsis.stay_risk(policy)
    found = [assess_log(policy, seed) for seed in range(LOGS)]
    holds = sum(f.estimates[0].low <= truth <= f.estimates[0].high for f in found)
    gain = truth - 0.2182
    gains = sum(f.gain.low <= gain <= f.gain.high for f in found)
    assert holds >= 0.9 * LOGS  # 36 of 40 or more, with a chance of 95 % where 95 % hold
    assert gains >= 0.9 * LOGS
    falsely = sum(f.gain.low > 0 for f in found)
    assert falsely <= 2
