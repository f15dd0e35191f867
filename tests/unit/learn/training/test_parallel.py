"""Parts side by side: all are done, errors and deaths are raised, and nothing stays behind."""

import copy
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from training_runs import COHORT, SETTINGS, TRANSLATIONS, etips_objective, network_of, tensors

from etips.errors import ResourceError
from etips.learn.training import loop, parallel
from etips.learn.training.loop import train
from etips.learn.training.objectives import Sliced
from etips.learn.training.parallel import shared, side_by_side
from etips.models.bundle import Bundle

N_FOLDS = 3
FORKING = [
    pytest.param(
        True, id="processes", marks=pytest.mark.skipif(not parallel.can_fork(), reason="no fork")
    ),
    pytest.param(False, id="threads"),
]


@pytest.fixture
def allowing(monkeypatch):
    before = torch.get_num_threads()

    def allow(n_cores, forked=True):
        torch.set_num_threads(n_cores)
        monkeypatch.setattr(parallel, "cores", lambda: n_cores)
        monkeypatch.setattr(parallel, "can_fork", lambda: forked)

    yield allow
    torch.set_num_threads(before)


@pytest.fixture(params=FORKING)
def three_cores(request, allowing):
    allowing(3, request.param)
    return request.param


def test_every_part_is_asked_each_time_and_answers_in_order(three_cores):
    here, places = os.getpid(), shared(torch.zeros(3))

    def part(own):
        def work(number):
            places[own] += number
            return own, os.getpid() == here, torch.get_num_threads()

        return work

    with side_by_side([part(own) for own in range(3)]) as ask:
        answers = [ask(number) for number in (1, 10)]
    wanted = [[own, not three_cores, 1] for own in range(3)]
    assert [list(map(list, own)) for own in answers] == [wanted, wanted]
    assert places.tolist() == [11.0] * 3
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("three_cores")
def test_an_error_is_raised_as_what_it_is():
    def fail(number):
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match=r"^no such thing$"), side_by_side([fail, fail]) as ask:
        ask(0)


@pytest.mark.skipif(not parallel.can_fork(), reason="cannot fork")
def test_an_error_that_does_not_come_again_is_raised_in_its_words(allowing):
    allowing(2)
    here = os.getpid()

    def fail(_):
        if os.getpid() != here:
            raise ResourceError("memory", "ran out")

    words = pytest.raises(RuntimeError, match=r"^ResourceError: memory: ran out")
    with words, side_by_side([fail, fail]) as ask:
        ask(0)


@pytest.mark.skipif(not parallel.can_fork(), reason="cannot fork")
def test_a_process_that_is_killed_is_a_lack_of_memory(allowing):
    allowing(2)

    def end(_):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(ResourceError, match="memory"), side_by_side([end, end]) as ask:
        ask(0)


@pytest.mark.skipif(not parallel.can_fork(), reason="cannot fork")
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_processes_are_gone_when_the_work_is_broken_off(error, allowing):
    allowing(2)
    processes = []

    def broken_off():
        with side_by_side([lambda _: os.getpid()] * 2) as ask:
            processes.extend(ask(0))
            raise error

    with pytest.raises(error):
        broken_off()
    assert len(set(processes)) == 2
    assert not any(_lives(process) for process in processes)


_ORPHANS = """
    import fcntl, os, sys, time, torch
    from etips.learn.training import parallel
    held = open(sys.argv[1], 'w')
    fcntl.flock(held, fcntl.LOCK_EX)
    torch.set_num_threads(2)
    parallel.cores = lambda: 2
    def work(number):
        if number:
            time.sleep(60)
        return os.getpid()
    with parallel.side_by_side([work, work]) as ask:
        print(ask(0)[0], flush=True)
        ask(1)
"""


@pytest.mark.skipif(not parallel.can_fork(), reason="cannot fork")
def test_processes_end_with_a_parent_that_is_killed_and_hold_none_of_its_locks(tmp_path):
    lock = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(_ORPHANS), str(lock)],
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    until = time.monotonic() + 20
    while _lives(child) and time.monotonic() < until:
        time.sleep(0.02)
    assert not _lives(child)
    subprocess.run(["flock", "--timeout", "20", str(lock), "true"], check=True)


def _lives(process):
    try:
        words = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return words.rpartition(")")[2].split()[0] not in "ZX"


# ---- training ----------------------------------------------------------------------------------


@pytest.fixture
def small_folds(monkeypatch):
    """Cut a few small networks as large ones would be."""
    monkeypatch.setattr(loop, "WORTH", 0)


def learn(objective=None, **more):
    data = COHORT.make()
    shifts = [shift for shift in TRANSLATIONS for _ in range(N_FOLDS)]
    fold = torch.arange(data.n_stays) % N_FOLDS
    out = (fold == torch.arange(N_FOLDS)[:, None]).float().repeat(len(TRANSLATIONS), 1)
    return train(
        Bundle.start(network_of(data), range(len(shifts))).to(dtype=torch.float32),
        tensors(data, torch.float32),
        objective or etips_objective(data, shifts, torch.float32),
        weight=1 - out,
        held_out=out,
        settings=replace(SETTINGS, epochs=3, batch_size=15),
        n_folds=N_FOLDS,
        **more,
    )


def same(one, other):
    return all(torch.equal(one.parameters[name], other.parameters[name]) for name in one.parameters)


@pytest.mark.usefixtures("small_folds")
@pytest.mark.parametrize("forked", FORKING)
def test_networks_are_the_same_to_the_bit_on_any_number_of_cores(allowing, forked):
    bundles, reports = [], []
    for n_cores in (1, 2, 3):
        allowing(n_cores, forked)
        reports.append([])
        bundle, state = learn(report=reports[-1].append)
        bundles.append(bundle)
    assert same(bundles[0], bundles[1])
    assert same(bundles[0], bundles[2])
    told = [[(at.loss, at.held_out, at.matching_factor) for at in own] for own in reports]
    assert told[0] == told[1] == told[2]
    assert state.epoch == 3


@pytest.mark.usefixtures("small_folds")
def test_a_state_kept_on_some_cores_is_taken_up_on_others(allowing):
    allowing(1)
    whole, _ = learn()
    for first, second in ((3, 1), (1, 3)):
        allowing(first)
        kept = []
        learn(keep=lambda state, kept=kept: kept.append(copy.deepcopy(state)))
        allowing(second)
        for state in kept[:2]:
            for group in (state.parameters, state.first, state.second):
                for name, value in group.items():  # read to anywhere in memory
                    astray = torch.empty(value.numel() + 1)[1:].view(value.shape)
                    group[name] = astray.copy_(value)
            assert same(whole, learn(state=state)[0])


@pytest.mark.usefixtures("small_folds")
@pytest.mark.parametrize("forked", FORKING)
def test_an_error_of_an_objective_reaches_the_caller(allowing, forked):
    def fail(outputs, seen, these):
        raise ArithmeticError("no such risk")

    allowing(2, forked)
    with pytest.raises(ArithmeticError, match=r"^no such risk$"):
        learn(objective=Sliced(fail))


def test_a_few_steps_and_small_networks_are_not_worth_processes(allowing, monkeypatch):
    def refuse(_):
        raise AssertionError

    allowing(2)
    monkeypatch.setattr(parallel, "_forked", refuse)
    learn()  # small networks
    monkeypatch.setattr(loop, "WORTH", 0)
    with pytest.raises(AssertionError):
        learn()
    monkeypatch.setattr(loop, "FEW", 10**6)
    learn()
