"""A method in a world: true losses of stays, their error, and failures in words."""

from dataclasses import replace

import numpy as np
import pytest

from etips.bench.bench_worlds import Arena
from etips.bench.contest import ContestTask, in_words, mean_loss, stay_losses
from etips.data.tables.arrays import from_arrays
from etips.errors import SettingError
from etips.policies.deployed import Deployed
from etips.worlds.clinic import Clinic


def test_losses_of_stays_add_up_to_the_true_risk():
    test = Clinic().log(50, seed=0)
    uniform = np.full((test.n_decisions, 5), 0.2)
    losses = stay_losses(Deployed.always(uniform), test)
    assert losses.shape == (2, 50)
    assert mean_loss(losses)[0] == pytest.approx(test.true_risk(uniform))
    left = Deployed(uniform, np.ones(test.n_decisions, bool))
    assert mean_loss(stay_losses(left, test))[0] == pytest.approx(
        test.true_risk(test.true_logging())
    )


def test_without_a_truth_known_odds_give_an_unbiased_loss_of_each_patient():
    rng = np.random.default_rng(0)
    arm = rng.integers(0, 2, 40_000)
    loss = (rng.random(40_000) < np.where(arm == 1, 0.3, 0.6)).astype(float)
    trial = from_arrays(rng.normal(size=(40_000, 1)), arm, loss, propensity=np.full(40_000, 0.5))
    always = np.eye(2)[np.ones(40_000, int)]
    risk, error = mean_loss(stay_losses(Deployed.always(always), trial))
    assert abs(risk - 0.3) < 4 * error
    assert error < 0.005
    left = Deployed(always, np.ones(40_000, bool))
    assert mean_loss(stay_losses(left, trial))[0] == pytest.approx(loss.mean())


def test_the_error_of_a_mean_is_that_of_stays_not_of_decisions():
    alike = np.array([[2.0, 0.0, 4.0, 0.0], [2.0, 1.0, 4.0, 3.0]])
    mean, error = mean_loss(alike)
    assert mean == pytest.approx(0.6)
    apart = np.array([2 - 1.2, -0.6, 4 - 2.4, -1.8])
    assert error == pytest.approx(np.sqrt((apart**2).sum() * 4 / 3) / 10)
    assert mean_loss(alike[:, :1]) == (1.0, None)


def test_a_failure_is_told_without_quoting_patients():
    odd = ValueError("could not read 'Smith'\nsecond line")
    assert in_words(odd, quotes=True) == "ValueError: could not read 'Smith' second line"
    assert "Smith" not in in_words(odd, quotes=False)
    assert in_words(SettingError("clip", "must be low"), quotes=False) == "clip: must be low."


def test_another_version_of_a_peer_is_other_work():
    arena = Arena("clinic-usual", 30, 30, seed=0)
    own = ContestTask(arena, "lightgbm", {}, "ground", "cpu", "4.0")
    assert ContestTask.from_json(own.to_json()) == own
    assert replace(own, version="4.1").to_json() != own.to_json()
    assert own.trains_on == "cpu"
