"""A crew: all orders are done, errors and deaths are told, and nobody stays behind."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch
from training_runs import is_gone

from etips.errors import DataError, ResourceError
from etips.learn.training import crew
from etips.learn.training.crew import one_thread, run, run_all, shared, working

KINDS = [
    pytest.param(
        True, id="processes", marks=pytest.mark.skipif(not crew.can_fork(), reason="cannot fork")
    ),
    pytest.param(False, id="threads"),
]


@pytest.fixture(params=KINDS)
def forked(request, monkeypatch):
    monkeypatch.setattr(crew, "can_fork", lambda: request.param)
    return request.param


def test_every_order_is_done_and_answered_in_its_place(forked):
    with working(3, lambda order: [order[1] ** 2, os.getpid()]) as many:
        answers = run_all(many, [("square", number) for number in range(20)])
    assert [square for square, _ in answers] == [number**2 for number in range(20)]
    assert (os.getpid() not in {process for _, process in answers}) is forked


def test_what_is_shared_is_changed_for_all(forked):
    values, empty = shared(torch.arange(6.0).view(2, 3)), shared(torch.zeros(0, 4))
    with working(2, lambda order: values[order[0]].add_(10).sum().item()) as many:
        assert run_all(many, [(0,), (1,)]) == [33, 42]
    assert values.tolist() == [[10, 11, 12], [13, 14, 15]]
    assert empty.shape == (0, 4)


def test_an_order_may_wait_until_another_is_done(forked):
    at, seen = {0: 0, 1: 0}, []

    def choose(_):
        team = next((team for team, batch in at.items() if batch < 3), None)
        return None if team is None else (team, at.pop(team))

    def note(order, answer):
        seen.append(answer)
        at[order[0]] = order[1] + 1

    with working(3, lambda order: list(order)) as many:
        run(many, choose, note)
    assert sorted(seen) == [[team, batch] for team in range(2) for batch in range(3)]
    assert [batch for team, batch in seen if team == 1] == [0, 1, 2]


def test_an_error_of_the_work_is_raised_as_what_it_is(forked):
    def fail(order):
        raise ValueError("no such thing") if order[0] else KeyError("other")

    with pytest.raises(ValueError, match=r"^no such thing$"), working(2, fail) as many:
        run_all(many, [(1,)])


@pytest.mark.skipif(not crew.can_fork(), reason="cannot fork")
def test_an_error_that_does_not_come_again_is_told_in_its_words():
    here = os.getpid()

    def fail(_):
        if os.getpid() != here:
            raise DataError("loss", "must be finite")

    with (
        pytest.raises(RuntimeError, match=r"DataError: loss: must be finite"),
        working(2, fail) as many,
    ):
        run_all(many, [(1,)])


@pytest.mark.skipif(not crew.can_fork(), reason="cannot fork")
def test_a_process_that_is_killed_is_a_lack_of_memory():
    with pytest.raises(ResourceError, match="memory"), working(2, _kill_itself) as many:
        run_all(many, [(1,), (2,)])


def _kill_itself(_):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(not crew.can_fork(), reason="cannot fork")
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_processes_are_gone_when_the_work_is_broken_off(error):
    processes = set()
    with pytest.raises(error), working(2, lambda _: os.getpid()) as many:
        _break_off(error, processes, run_all(many, [(number,) for number in range(8)]))
    assert processes
    assert all(is_gone(process) for process in processes)


def _break_off(error, processes, some):
    processes |= set(some)
    raise error


_ORPHANS = """
    import os, sys, time, torch
    from etips.learn.training.crew import run_all, working
    torch.set_num_threads(2)
    def work(order):
        if order[0]:
            return os.getpid()
        time.sleep(60)
    with working(2, work) as crew:
        print(*run_all(crew, [(1,)]), flush=True)
        run_all(crew, [(0,), (0, 1)])
"""


@pytest.mark.skipif(not crew.can_fork(), reason="cannot fork")
def test_processes_end_with_a_parent_that_is_killed_and_hold_none_of_its_locks(tmp_path):
    program = "import fcntl; held = open(sys.argv[1], 'w'); fcntl.flock(held, fcntl.LOCK_EX)"
    code = textwrap.dedent(_ORPHANS).replace("def work", f"{program}\ndef work", 1)
    lock = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(lock)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    until = time.monotonic() + 20
    while _lives(child) and time.monotonic() < until:
        time.sleep(0.02)
    assert not _lives(child)
    subprocess.run(["flock", "--nonblock", str(lock), "true"], check=True)


def _lives(process):
    try:
        words = Path(f"/proc/{process}/stat").read_text()
        return words.split(")")[1].split()[0] not in "ZX"
    except OSError:
        return False


def test_as_many_work_as_torch_has_threads_the_machine_cores_and_the_work_pieces(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 6)
    monkeypatch.setattr(crew, "cores", lambda: 4)
    assert [crew.n_workers(pieces) for pieces in (1, 3, 100)] == [1, 3, 4]
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert crew.n_workers(100) == 1


def test_torch_has_its_threads_back_afterwards(monkeypatch):
    monkeypatch.setattr(crew, "can_fork", lambda: False)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with pytest.raises(KeyError, match="1"), one_thread():
            raise KeyError(torch.get_num_threads())
        assert torch.get_num_threads() == 3
        with working(2, lambda _: torch.get_num_threads()) as many:
            assert run_all(many, [(1,)]) == [1]
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_threads_take_over_where_the_system_allows_no_more_processes(monkeypatch):
    def refuse():
        raise BlockingIOError

    monkeypatch.setattr(crew, "can_fork", lambda: True)
    monkeypatch.setattr(os, "fork", refuse)
    with working(2, lambda order: order[0] + os.getpid()) as many:
        assert run_all(many, [(1,), (2,)]) == [os.getpid() + 1, os.getpid() + 2]


@pytest.mark.gpu
def test_processes_work_beside_a_gpu_that_is_in_use():
    """They leave it alone, and it is as it was."""
    held = torch.ones(3, device="cuda")
    places = crew.shared(torch.zeros(4))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    with crew.working(2, lambda order: places[order[0]].fill_(order[0] + 1) and None) as own:
        crew.run_all(own, [(number,) for number in range(4)])
        assert isinstance(own, crew._Processes)
    torch.set_num_threads(before)
    assert places.tolist() == [1, 2, 3, 4]
    assert (held + 1).cpu().tolist() == [2, 2, 2]
