"""Processes that do tasks: equal results, lost workers, refusals, bugs and interrupts."""

import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from types import SimpleNamespace

import odd_work
import pytest
from odd_work import additions

from etips.errors import EtipsError, FileError, ResourceError
from etips.files.lock import Lock
from etips.tasks import workers
from etips.tasks.runner import run_tasks
from etips.tasks.task import Task, finished
from etips.tasks.workers import BrokenTaskError

SCRIPT = Path(odd_work.__file__)


@pytest.fixture(autouse=True)
def _odd_work(monkeypatch):
    monkeypatch.setattr(workers, "COMMAND", (sys.executable, str(SCRIPT)))


def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_two_processes_find_what_one_finds_in_the_order_of_the_tasks(tmp_path):
    here = run_tasks(additions(), tmp_path / "here")
    there = run_tasks(additions(), tmp_path / "there", jobs=2)
    assert [(n, f["sum"]) for n, f in there.items()] == [(n, f["sum"]) for n, f in here.items()]
    assert os.getpid() not in {f["process"] for f in there.values()}
    assert len({f["process"] for f in there.values()}) == 2
    threads = max(1, (os.cpu_count() or 1) // 2)
    assert {f["threads"] for f in there.values()} == {threads}
    assert not any(alive(f["process"]) for f in there.values())


def test_a_task_waits_for_its_lender_while_others_go_on(tmp_path):
    slow = Task("slow", odd_work.Die(2))  # its worker is lost twice before it is done
    waits = Task("waits", odd_work.Add((1,), lent="slow"))
    tasks, heard = [slow, waits, *additions(2)], []
    folder = tmp_path / "there"
    texts = {task.name: task.to_json() for task in tasks}
    lenders = {task.name: task.work.lenders for task in tasks}
    for event in workers.run_in_processes(texts, folder, n_workers=2, lenders=lenders):
        heard.append((event.name, event.done))
    assert heard.index(("slow", True)) < heard.index(("waits", False))
    assert heard.index(("add-1", True)) < heard.index(("waits", False))
    assert {name for name, done in heard if done} == set(texts)


def test_a_task_goes_to_the_worker_that_did_most_of_its_lenders(tmp_path):
    lenders = {"of-a": ("a",), "of-b": ("b",), "of-both": ("a", "b"), "of-c": ("c",)}
    pool = workers._Pool(dict.fromkeys([*"abc", *lenders], ""), tmp_path, lenders, threads=1)
    nobody, first, second = (SimpleNamespace(did=set(did)) for did in ("", "a", "ab"))
    assert [pool._next(nobody) for _ in range(4)] == ["a", "b", "c", None]
    pool._undone -= {"a", "b"}
    assert pool._next(second) == "of-both"
    assert pool._next(SimpleNamespace(did={"b"})) == "of-b"
    assert pool._next(nobody) == "of-a"
    assert pool._next(first) is None  # what is left waits
    pool.stop_all()


def test_a_task_whose_lender_was_done_before_does_not_wait(tmp_path):
    lender, *_ = additions(1)
    run_tasks([lender], tmp_path)
    both = [lender, Task("waits", odd_work.Add((1,), lent=lender.name))]
    assert run_tasks([*both, *additions(3)[1:]], tmp_path, jobs=2)["waits"]["sum"] == 1


def test_a_lost_worker_has_its_task_done_again_and_the_others_stay(tmp_path):
    mixed = [*additions(2), Task("mortal", odd_work.Die(2))]
    found = run_tasks(mixed, tmp_path, jobs=2)
    assert found["mortal"] == {"deaths": 2}
    assert found["add-1"]["sum"] == 11


def test_a_task_that_always_loses_its_worker_is_given_up_by_name(tmp_path):
    told = []
    with pytest.raises(ResourceError) as refusal:
        run_tasks(
            [Task("doomed", odd_work.Die(99))],
            tmp_path,
            jobs=2,
            report=lambda what, share: told.append(what),
        )
    assert str(refusal.value).startswith("task doomed: lost its worker 3 times")
    assert refusal.value.exit_code == 3
    assert told == ["doomed"] * 3


def test_a_refusal_comes_back_as_the_same_line_and_code(tmp_path):
    bad = Task("bad", odd_work.Refuse())
    with pytest.raises(EtipsError) as here:
        run_tasks([bad], tmp_path / "here")
    with pytest.raises(EtipsError) as there:
        run_tasks([additions(1)[0], bad, additions(2)[1]], tmp_path / "there", jobs=2)
    assert str(there.value) == str(here.value)
    assert there.value.exit_code == here.value.exit_code


def test_what_was_done_before_a_refusal_stays(tmp_path):
    (good,) = additions(1)
    run_tasks([good], tmp_path, jobs=2)
    with pytest.raises(EtipsError, match="must not be negative"):
        run_tasks([good, Task("bad", odd_work.Refuse())], tmp_path, jobs=2)
    assert finished(good, tmp_path / good.name)["sum"] == 10


def test_p1_a_bug_shows_where_it_is_but_no_value(tmp_path):
    """P1: a message may quote a patient; the traceback of a worker comes without."""
    with pytest.raises(BrokenTaskError) as bug:
        run_tasks([Task("bad", odd_work.Broken())], tmp_path, jobs=2)
    shown = "".join(traceback.format_exception(bug.value))
    assert "task bad broke" in shown
    assert "in run" in shown
    assert "KeyError" in shown
    assert odd_work.SECRET not in shown


def test_what_a_task_prints_is_no_answer(tmp_path, capfd):
    assert run_tasks([Task("loud", odd_work.Noisy())], tmp_path, jobs=2) == {"loud": {"said": True}}
    assert capfd.readouterr().out == ""


def napping(folder):
    """A study of two long naps in a process of its own; it and its workers' numbers."""
    study = subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder)],
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    asleep = [folder / f"nap-{i}" / "asleep.txt" for i in range(2)]
    wait_for(lambda: all(path.exists() for path in asleep))
    return study, [int(path.read_text()) for path in asleep]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_f4_stopped_or_killed_it_takes_its_workers_along(tmp_path, how):
    """F4: nobody works on in a folder that another process may take; a dead one's lock is free."""
    study, sleepers = napping(tmp_path)
    try:
        with pytest.raises(FileError, match="is in use by another process"):
            run_tasks(additions(1), tmp_path)
        study.send_signal(how)
        _, said = study.communicate(timeout=60)
        wait_for(lambda: not any(alive(sleeper) for sleeper in sleepers), seconds=10)
    finally:
        study.kill()
    assert study.returncode != 0
    if how is signal.SIGINT:
        assert said.count(b"KeyboardInterrupt") == 1  # ours alone, not the workers'
    with Lock(tmp_path):
        pass
