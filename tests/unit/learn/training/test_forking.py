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

from etips.learn.training import forking
from etips.learn.training.forking import can_fork, end_child, fork_child

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
    end_child(child)


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
    end_child(child)


def test_a_child_that_is_ended_is_gone():
    _, theirs = Pipe()
    child = fork_child(theirs, lambda: time.sleep(60))
    end_child(child)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    end_child(child)  # nobody is there any more: nothing happens


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


def test_beside_threads_that_may_use_a_gpu_nothing_is_forked(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert not forking.can_fork()
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    assert forking.can_fork()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not forking.can_fork()
