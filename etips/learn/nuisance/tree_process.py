"""Trees that grow in a process of their own, beside what this one does.

Importing scikit-learn takes a second and growing trees a few, while this process reads, imports
torch and trains networks, most of it under one lock. A command, whose process is ours alone, may
`start` one as soon as it knows that trees will be wanted. Where there is none, or it is lost, trees
grow here: the same trees, later.
"""

import atexit
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import BinaryIO, cast

from etips.data.history_rows import has_past
from etips.data.trajectories import Trajectories
from etips.learn.nuisance.tree_grower import (
    Orders,
    Rounds,
    grow_members,
    read_rounds,
    write_orders,
)
from etips.machine import cores

FEWEST = 1000
"""Decisions from which a process is worth its start."""


class TreeProcess:
    """A process that grows trees."""

    def __init__(self, n_threads: int) -> None:
        command = [sys.executable, "-m", "etips.learn.nuisance.tree_grower", str(n_threads)]
        self._answers: dict[int, list[Rounds]] = {}
        self._expected: list[int] = []  # members of each order
        self._process = subprocess.Popen(  # noqa: S603  # our own module
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # what goes wrong there goes wrong here again, and is told
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def give(self, orders: Orders) -> Callable[[], list[Rounds]]:
        """Let it grow something; what is returned waits for it."""
        write_orders(cast(BinaryIO, self._process.stdin), orders)
        self._expected.append(len(orders.rounds))
        number = len(self._expected) - 1
        return lambda: self._take(number)

    def _take(self, number: int) -> list[Rounds]:
        """What an order came to; answers come in the order of giving, and some may be unwanted."""
        stream = cast(BinaryIO, self._process.stdout)
        for earlier in range(len(self._answers), number + 1):
            self._answers[earlier] = [read_rounds(stream) for _ in range(self._expected[earlier])]
        return self._answers[number]

    def end(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.communicate()


_RUNNING: list[TreeProcess] = []  # one, or none


def start(data: Trajectories) -> None:
    """Start a process if trees of such data will be wanted and another core can grow them.

    Args:
        data: Logged stays.
    """
    told = os.environ.get("OMP_NUM_THREADS", "")
    n_cores = min(cores(), int(told)) if told.isdigit() else cores()
    wanted = data.n_decisions >= FEWEST and not has_past(data) and find_spec("sklearn") is not None
    if wanted and n_cores > 1 and not _RUNNING:
        _RUNNING.append(TreeProcess(n_cores))
        atexit.register(stop)


def stop() -> None:
    """End the process, if there is one."""
    while _RUNNING:
        _RUNNING.pop().end()


def begin(orders: Orders, n_threads: int) -> Callable[[], list[Rounds]]:
    """Let somebody grow trees; what is returned waits for them.

    Args:
        orders: What to grow.
        n_threads: Members that grow at once, where no other process does.
    """
    if not _RUNNING:
        return lambda: grow_members(orders, n_threads)
    try:
        wait = _RUNNING[0].give(orders)
    except OSError:
        stop()
        return lambda: grow_members(orders, n_threads)

    def finish() -> list[Rounds]:
        try:
            return wait()
        except (OSError, EOFError, ValueError):  # it was ended, for memory say
            stop()
            return grow_members(orders, n_threads)

    return finish
