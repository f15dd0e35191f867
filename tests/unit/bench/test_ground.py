"""What all methods of a world share: the log that they are judged by."""

from dataclasses import fields

import numpy as np
import pytest

from etips.bench.bench_worlds import Arena, without_propensities
from etips.bench.ground import GroundTask, load_log, possible, save_log
from etips.errors import FileError
from etips.evaluation import Log, assess
from etips.learn.learners.recipes import make_learner
from etips.models.encoders.gru import GRU
from etips.results.evaluation_log import Models, make_log

QUICK = {"hidden": 4, "n_folds": 2, "epochs": 1}


def test_a_log_is_read_back_and_says_the_same_of_a_policy(tmp_path):
    arena = Arena("clinic-usual", 30, 60, seed=0)
    test = arena.make(tmp_path).test
    short = make_learner("direct", QUICK, device="cpu").training
    models = Models(encoder=GRU(4), training=short)
    log = make_log({}, without_propensities(test), models).log
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


def test_a_task_survives_json_and_finds_what_is_possible(tmp_path):
    task = GroundTask(Arena("clinic-usual", 30, 30, seed=1, quick=True), QUICK, "cpu")
    assert GroundTask.from_json(task.to_json()) == task
    found = task.run(tmp_path)
    test = task.arena.open(tmp_path).test
    assert found == possible(task.arena, test)
    assert found["best"] < found["clinicians"] == test.true_risk(test.true_logging())
    assert load_log(tmp_path).n_decisions == test.n_decisions
