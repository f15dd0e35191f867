"""A method learns in a world and is judged there: the log that all share, true losses, the cost."""

import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest

from etips.bench.bench_worlds import Arena, open_arena
from etips.bench.contest import (
    ContestTask,
    GroundTask,
    in_words,
    load_log,
    mean_loss,
    possible,
    save_log,
    stay_losses,
)
from etips.data.tables.arrays import from_arrays
from etips.errors import FileError, SettingError
from etips.evaluation import Log, assess
from etips.learn.learners.recipes import make_learner
from etips.models.encoders.gru import GRU
from etips.policies.deployed import Deployed
from etips.results.evaluation_log import Models, make_log
from etips.runs.tasks import Task
from etips.worlds.clinic import Clinic

QUICK = {"hidden": 4, "n_folds": 2, "epochs": 1}


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
    own = ContestTask(Arena("clinic-usual", 30, 30, seed=0), "lightgbm", {}, "ground", "cpu", "4.0")
    other = replace(own, version="4.1")
    assert Task("a", own).identity != Task("a", other).identity


def test_a_log_is_read_back_and_says_the_same_of_a_policy(tmp_path):
    arena = Arena("clinic-usual", 30, 60, seed=0)
    test = arena.make(tmp_path).test
    short = make_learner("direct", QUICK, device="cpu").training
    models = Models(encoder=GRU(4), training=short)
    log = make_log({}, replace(test, propensity=None), models).log
    save_log(log, tmp_path)
    again = load_log(tmp_path)
    for own in fields(Log):
        if own.init and own.name != "folds":  # who does the work
            np.testing.assert_array_equal(getattr(again, own.name), getattr(log, own.name))
    policy = np.eye(5)[np.zeros(test.n_decisions, int)]
    own, other = assess(again, policy), assess(log, policy)
    assert own.estimates == other.estimates
    assert own.verdict == other.verdict
    (tmp_path / "log.npz").write_bytes(b"damaged")
    with pytest.raises(FileError, match="cannot be read"):
        load_log(tmp_path)


def test_a_ground_finds_what_is_possible(tmp_path):
    task = GroundTask(Arena("clinic-usual", 30, 30, seed=1, quick=True), QUICK, "cpu")
    found = task.run(tmp_path)
    test = open_arena(task.arena, tmp_path).test
    assert found == possible(task.arena, test)
    assert found["best"] < found["clinicians"] == test.true_risk(test.true_logging())
    assert load_log(tmp_path).n_decisions == test.n_decisions


def test_a_large_array_shows_in_the_peak_and_is_forgotten_by_the_next():
    code = (  # in a process of its own: a process that ran other tests may have kept their memory
        "import numpy as np\n"
        "from etips.bench.contest import measured\n"
        "with measured() as large:\n"
        "    block = np.ones(30_000_000)\n"  # 240 MB
        "    del block\n"
        "with measured() as small:\n"
        "    pass\n"
        "print(large.memory - small.memory)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert float(done.stdout) > 150
