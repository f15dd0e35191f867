"""Work in a process beside the training: the same answer, whoever gives it."""

import gc
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from small_worlds import ward
from training_runs import is_gone

from etips.learn.training import beside
from etips.learn.training.beside import Beside
from etips.learn.training.forking import end_children

DATA = ward()
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _a_process_for_little(monkeypatch):
    monkeypatch.setattr(beside, "FEWEST", 1)
    monkeypatch.setattr(beside, "n_workers", lambda n: n)


def who():
    return {"process": np.array(os.getpid()), "values": np.arange(6.0).reshape(2, 3)[:, ::2]}


def begin(work):
    return Beside(work, lambda arrays: arrays, DATA, CPU)


def begin_alone(work):
    return Beside(
        lambda: {"said": np.array(work())}, lambda arrays: arrays["said"].item(), DATA, CPU
    )


def test_the_work_is_done_by_another_process_and_its_answer_is_kept():
    begun = begin(lambda: {**who(), "none": np.zeros((0, 3), np.float32)})
    said = begun()
    assert begun() is said
    assert said["process"] != os.getpid()
    assert said["values"].tolist() == [[0, 2], [3, 5]]
    assert said["none"].shape == (0, 3)
    assert said["none"].dtype == np.float32


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [
        (beside, "FEWEST", 10**9),
        (beside, "n_workers", lambda n: 1),
        (beside, "can_fork", lambda: False),
    ],
)
def test_without_need_or_room_for_a_process_the_work_is_done_when_asked_for(
    place, name, value, monkeypatch
):
    monkeypatch.setattr(place, name, value)
    asked = []
    begun = begin(lambda: asked.append(1) or who())
    assert not asked
    assert begun()["process"] == os.getpid()
    assert begun()["process"] == os.getpid()
    assert asked == [1]


def test_where_no_more_processes_are_allowed_the_work_is_done_here(monkeypatch):
    def refuse(*_):
        raise BlockingIOError

    monkeypatch.setattr(beside, "fork_child", refuse)
    assert begin(who)()["process"] == os.getpid()


def test_a_process_that_is_lost_is_made_up_for(monkeypatch):
    children = []
    fork = beside.fork_child
    monkeypatch.setattr(beside, "fork_child", lambda *a: children.append(fork(*a)) or children[-1])
    begun = begin_alone(lambda: os.getpid() if children else time.sleep(60))
    os.kill(children[0], signal.SIGKILL)
    assert begun() == os.getpid()


def test_an_error_is_raised_where_the_answer_is_asked_for():
    def fail():
        raise ValueError("no such thing")

    begun = begin(fail)
    with pytest.raises(ValueError, match="no such thing"):
        begun()


def test_a_process_that_nobody_waits_for_is_ended(monkeypatch):
    children = []
    fork = beside.fork_child
    monkeypatch.setattr(beside, "fork_child", lambda *a: children.append(fork(*a)) or children[-1])
    begun = begin_alone(lambda: time.sleep(60))
    os.kill(children[0], 0)
    del begun
    gc.collect()
    assert is_gone(children[0])


def test_a_process_forked_since_ends_nothing_that_is_not_its_own(monkeypatch):
    children = []
    fork = beside.fork_child
    monkeypatch.setattr(beside, "fork_child", lambda *a: children.append(fork(*a)) or children[-1])
    begun = begin_alone(lambda: time.sleep(60))
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(os, "getpid", lambda: -1)
        del begun
        gc.collect()
    assert Path(f"/proc/{children[0]}/stat").read_text().split(") ")[1][0] != "Z"
    end_children(children)
    assert is_gone(children[0])


def test_the_process_has_one_thread():
    assert begin_alone(torch.get_num_threads)() == 1


@pytest.mark.parametrize(
    ("device", "n_cores", "begins"),
    [("cuda", 1, False), ("cuda", 2, True), ("cpu", 2, False), ("cpu", 3, False), ("cpu", 4, True)],
)
def test_a_process_begins_where_the_training_leaves_a_core(device, n_cores, begins, monkeypatch):
    asked = []

    def refuse(*_):
        asked.append(1)
        raise BlockingIOError

    monkeypatch.setattr(beside, "n_workers", lambda n: min(n, n_cores))
    monkeypatch.setattr(beside, "fork_child", refuse)
    Beside(who, lambda arrays: arrays, DATA, torch.device(device))
    assert asked == [1] * begins
