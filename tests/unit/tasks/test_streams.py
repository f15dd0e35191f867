"""Tasks done by threads of this process: all of them, once each, and stopped when nobody waits."""

import threading
import time

import odd_work
import pytest
from small_worlds import CLINIC

from etips.errors import DataError
from etips.learn.learners.recipes import make_learner
from etips.learn.training.sharing import require_wanted
from etips.tasks import runner
from etips.tasks.runner import run_tasks
from etips.tasks.streams import run_in_threads
from etips.tasks.task import Task
from etips.tasks.workers import Event


@pytest.mark.parametrize("n_threads", [1, 3, 8])
def test_every_task_is_begun_and_done_once(n_threads):
    names, seen = [f"task-{i}" for i in range(7)], []
    events = list(run_in_threads(names, lambda name, _: seen.append(name), n_threads=n_threads))
    assert sorted(seen) == names
    for name in names:
        own = [event for event in events if event.name == name]
        assert own == [Event(name), Event(name, done=True)]


def test_so_many_are_at_work_at_a_time():
    """Each waits for the other two, so one alone would never end."""
    meeting = threading.Barrier(3, timeout=20)
    list(run_in_threads(["a", "b", "c"], lambda *_: meeting.wait(), n_threads=3))


def test_an_error_is_raised_here_and_stops_the_others_at_their_next_step():
    stopped = threading.Event()

    def do(name, sharing):
        if name == "bad":
            raise DataError("dose", "must not be negative")
        try:
            while True:
                require_wanted(sharing.halt)
                time.sleep(0.001)
        finally:
            stopped.set()

    with pytest.raises(DataError, match="dose"):
        list(run_in_threads(["long", "bad", "never"], do, n_threads=2))
    assert stopped.is_set()


def test_closing_stops_whoever_is_at_work_and_hands_out_nothing_more():
    begun = []

    def do(name, sharing):
        begun.append(name)
        while True:
            require_wanted(sharing.halt)
            time.sleep(0.001)

    events = run_in_threads(["a", "b", "c"], do, n_threads=2)
    next(events)
    events.close()
    assert set(begun) <= {"a", "b"}
    assert threading.active_count() < 10


def test_a_task_is_told_how_many_share():
    told = []
    list(run_in_threads(["a"], lambda _, own: told.append(own.n_trainings), n_threads=4))
    assert told == [4]


def test_work_is_handed_what_shares_its_device(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "_is_for_gpu", lambda task: True)
    some = [Task(f"share-{i}", odd_work.Share(i)) for i in range(3)]
    assert [found["sharers"] for found in run_tasks(some, tmp_path / "a", jobs=3).values()] == [
        3
    ] * 3
    (alone,) = run_tasks(some[:1], tmp_path / "b", jobs=1).values()
    assert alone["sharers"] is None


def test_tasks_for_a_gpu_are_done_in_this_process_and_found_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "_is_for_gpu", lambda task: True)
    found = run_tasks(odd_work.additions(5), tmp_path, jobs=3)
    assert [value["sum"] for value in found.values()] == [10, 11, 12, 13, 14]
    assert len({value["process"] for value in found.values()}) == 1


def test_a_task_says_where_it_trains():
    assert not runner._is_for_gpu(Task("a", odd_work.Add()))
    assert not runner._is_for_gpu(Task("a", odd_work.Add(device="cpu")))


@pytest.mark.gpu
def test_learners_that_share_a_gpu_learn_what_each_learns_alone():
    """More captures than torch has streams, so that those handed out again would be noticed."""
    log, found = CLINIC.log(80, seed=0), {}

    def fit(name, sharing=None):
        settings = {"hidden": 8, "epochs": 3, "n_folds": 2, "batch_size": 16, "support": 0.0}
        learner = make_learner("etips", settings, device="cuda", seed=int(name))
        found[name] = learner.fit(log, sharing=sharing).predict_proba(log)

    names = [str(number) for number in range(24)]
    list(run_in_threads(names, fit, n_threads=6))
    shared = dict(found)
    for name in names:
        fit(name)
        assert found[name] == pytest.approx(shared[name], abs=1e-4)
