"""Freed memory stays with commands that train and with workers, and with nobody else."""

import os
import platform
import subprocess
import sys

import pytest
from typer.main import get_command

from etips import machine as heap
from etips.cli import main as cli
from etips.tasks import worker

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")

SET_UP = ("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")

TAKE_AND_FREE = """
import resource, sys
import numpy as np
from etips.machine import keep_freed
if sys.argv[1] == "keep":
    assert keep_freed()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def work():
    for _ in range(50):
        np.ones(2**23)  # 64 MiB: more than malloc keeps by itself
work()
before = faults()
work()
print(faults() - before)
"""


def faults(kind):
    """Pages that the system had to hand out for the same work again, in a process of its own."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(SET_UP)}
    command = [sys.executable, "-c", TAKE_AND_FREE, kind]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=own)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@glibc
def test_what_was_freed_is_taken_again_without_the_system():
    assert faults("keep") < faults("leave") / 10


def test_an_allocation_set_up_by_the_user_is_left_alone(monkeypatch):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    assert not heap.keep_freed()


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_a_c_library_that_cannot_do_it_is_no_error(monkeypatch, error):
    def missing(_):
        raise error

    for name in [n for n in os.environ if n.startswith(SET_UP)]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(heap.ctypes, "CDLL", missing)
    assert not heap.keep_freed()


def test_a_worker_keeps_its_own_before_all_else(monkeypatch):
    """Once there are threads, some of it has no effect."""

    def stop():
        raise RuntimeError("reached")

    def too_late(_):
        raise AssertionError

    with monkeypatch.context() as own:
        own.setattr(worker, "keep_freed", stop)
        own.setattr(worker.os, "dup", too_late)  # or it would wait for orders
        with pytest.raises(RuntimeError, match="reached"):
            worker.main()


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_commands_that_train_keep_theirs(monkeypatch, name):
    kept = []
    monkeypatch.setattr(cli, "keep_freed", lambda: kept.append(name))
    get_command(cli.app).get_command(None, name)
    assert kept == ([name] if name in ("demo", "fit", "tune", "reproduce") else [])


def test_importing_the_library_leaves_the_allocation_alone():
    code = (
        "import sys, etips.machine as heap\n"
        "heap.keep_freed = lambda: sys.exit('changed')\n"
        "import etips, etips.learn, etips.studies.study, etips.tasks.streams\n"
        "etips.EtIPS()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
