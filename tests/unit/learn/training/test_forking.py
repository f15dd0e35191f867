"""Processes that are forked: they hold nothing of the parent but their pipe, and end with it."""

import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import Pipe
from pathlib import Path

import pytest
import torch
from training_runs import is_gone

from etips.learn.training import forking
from etips.learn.training.forking import can_fork, end_children, fork_child

pytestmark = pytest.mark.skipif(not can_fork(), reason="cannot fork")


def test_a_child_holds_the_pipe_and_the_terminal_alone(tmp_path):
    mine, theirs = Pipe()
    with (tmp_path / "lock").open("w"):

        def work():
            named = {int(own.name) for own in Path("/proc/self/fd").iterdir()}
            held = [own for own in named if Path(f"/proc/self/fd/{own}").exists()]  # not the list
            theirs.send_bytes(str(set(held) - {0, 1, 2, theirs.fileno()}).encode())

        child = fork_child(theirs, work)
        assert mine.recv_bytes() == b"set()"
    end_children([child])


def test_a_child_leaves_ctrl_c_to_its_parent():
    mine, theirs = Pipe()

    def work():
        theirs.send_bytes(b"begun")
        theirs.recv_bytes()
        theirs.send_bytes(b"still here")

    child = fork_child(theirs, work)
    mine.recv_bytes()
    os.kill(child, signal.SIGINT)
    mine.send_bytes(b"go on")
    assert mine.recv_bytes() == b"still here"
    end_children([child])


def test_a_child_that_is_ended_is_gone():
    _, theirs = Pipe()
    child = fork_child(theirs, lambda: time.sleep(60))
    end_children([child])
    assert is_gone(child)
    end_children([child])  # nobody is there any more: nothing happens
    assert child not in forking._ENDED


def test_nobody_waits_for_a_child_that_ends_and_the_next_one_clears_it_away(monkeypatch):
    asked, waitpid = [], os.waitpid
    monkeypatch.setattr(forking, "_ENDED", set())
    monkeypatch.setattr(os, "waitpid", lambda child, how: asked.append((child, how)) or (0, 0))
    _, theirs = Pipe()
    child = fork_child(theirs, lambda: time.sleep(60))
    end_children([child])
    assert asked == [(child, os.WNOHANG)]  # it is still ending
    monkeypatch.setattr(os, "waitpid", waitpid)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    end_children([fork_child(theirs, lambda: time.sleep(60))])
    assert child not in forking._ENDED
    assert not Path(f"/proc/{child}").exists()


def test_a_child_ends_with_its_parent():
    code = (
        "import time; from multiprocessing import Pipe\n"
        "from etips.learn.training.forking import fork_child\n"
        "_, theirs = Pipe()\n"
        "print(fork_child(theirs, lambda: time.sleep(60)), flush=True)\n"
        "time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    for _ in range(100):
        state = Path(f"/proc/{child}/stat")
        if not state.exists() or state.read_text().split(") ")[1][0] == "Z":
            return
        time.sleep(0.1)
    pytest.fail("the child lives on")


def test_a_child_whose_parent_ended_before_it_began_does_nothing(monkeypatch):
    mine, theirs = Pipe(duplex=False)
    monkeypatch.setattr(os, "getppid", lambda: 1)
    child = fork_child(theirs, lambda: theirs.send_bytes(b"begun"))
    theirs.close()
    with pytest.raises(EOFError):
        mine.recv_bytes()
    end_children([child])


def test_beside_threads_that_may_use_a_gpu_nothing_is_forked(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert not forking.can_fork()
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    assert forking.can_fork()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not forking.can_fork()
