"""The AI Clinician on ICU-Sepsis, whose mortality under any policy is known exactly."""

import numpy as np
import pytest
from small_worlds import ward

import etips
from etips.learn import AIClinician
from etips.learn.learners.ai_clinician import assign
from etips.learn.learners.row_learner import frame_of
from etips.worlds import icu_sepsis

LONGEST = 120


def survival(learner):
    table = icu_sepsis.table_of(lambda asked: learner.deployed(asked).probabilities)
    return 1 - icu_sepsis.stay_risk(table)


def stays(n):
    return icu_sepsis.simulate(n, seed=1, lag=0, loss="mortality", max_steps=LONGEST)


def test_from_20000_stays_of_icu_sepsis_at_least_82_in_100_survive():
    clinicians = np.vstack([icu_sepsis.clinicians()[:713], np.full((3, 25), 0.04)])
    assert 1 - icu_sepsis.stay_risk(clinicians) == pytest.approx(0.782, abs=0.001)
    assert survival(AIClinician().fit(stays(20_000))) >= 0.82


def test_with_rare_actions_and_without_a_prior_luck_decides():
    data = stays(4_000)
    careful, lucky = AIClinician(), AIClinician(rare=0, prior=0.0)
    assert survival(lucky.fit(data)) < survival(careful.fit(data))


def test_no_state_is_of_fewer_than_eleven_patients():
    data = ward(n_stays=120, lag=0)
    learner = AIClinician(n_states=50).fit(data)
    states = learner.policy_.networks
    assert 1 <= len(states.basis) <= 120 // 11
    state = assign(frame_of(data, "last")[0].numpy(), states.basis)
    patients = [len(set(data.cluster[state == number])) for number in range(len(states.basis))]
    assert min(patients) >= 11


def test_a_stay_costs_its_last_loss_or_their_sum():
    data = ward(lag=0)
    stay = data.decisions().stay
    last = np.append(stay[1:] != stay[:-1], True)
    costs = AIClinician()._costs(data)
    assert (costs[~last] == 0).all()
    assert (costs[last] == 2 * data.logged_loss[last] - 1).all()
    assert (AIClinician(outcome="sum")._costs(data) == data.logged_loss).all()


@pytest.mark.parametrize(
    "settings",
    [{"n_states": 0}, {"rare": -1}, {"discount": 1.0}, {"prior": -1.0}, {"outcome": "mean"}],
)
def test_settings_that_make_no_sense_are_refused(settings):
    (named,) = settings
    with pytest.raises(etips.SettingError, match=rf"^{named}: must"):
        AIClinician(**settings).fit(ward())
