"""Work that waits for nothing that is trained, done by a process beside the training.

While networks learn, on a GPU above all, cores of the host have nothing to do; and some of what is
asked for later needs the log alone. It is begun early, in a process forked from here, and fetched
when it is wanted. Where there is no second core, where no process can be forked, or where it is
lost, the work is done when it is asked for: the same answer, later.
"""

import json
import math
import mmap
import os
import weakref
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from etips.data.trajectories import Trajectories
from etips.learn.training.crew import n_workers
from etips.learn.training.forking import can_fork, end_children, fork_child

Answer = TypeVar("Answer")

Arrays = dict[str, NDArray[Any]]
"""What a process can say: numbers, by name."""

FEWEST = 5_000
"""Decisions from which such work is worth a process."""

CORES = 4
"""Cores from which it is done beside a training on the CPU: two are for the training. On two quiet
ones propensities and what follows took as long either way (ICU-Sepsis, 16,000 stays: 12.4 and 12.1
s), and where somebody else wanted one of them 19 s instead of 15."""

_APART = 64  # arrays begin at multiples of so many bytes


class Beside(Generic[Answer]):
    """Some work under way; call it for the answer, which it then keeps.

    Args:
        work: What is done, here or in a process.
        made: What its arrays stand for.
        data: Logged stays that it is about, of which it needs nothing else.
        device: Where networks are trained meanwhile.
    """

    def __init__(
        self,
        work: Callable[[], Arrays],
        made: Callable[[Arrays], Answer],
        data: Trajectories,
        device: torch.device,
    ) -> None:
        self.data = data  # kept, so that who goes by its number meets no other of the same number
        self._work: Callable[[], Arrays] | None = work
        self._made = made
        self._answer: Answer
        self._line: _Line | None = None
        needed = CORES if device.type == "cpu" else 2
        if data.n_decisions >= FEWEST and n_workers(needed) == needed and can_fork():
            self._begin(work)

    @property
    def under_way(self) -> bool:
        """Whether a process does it, or did."""
        return self._line is not None

    def __call__(self) -> Answer:
        """The answer; waits for it."""
        if self._work is not None:
            self._answer = self._made(self._fetch(self._work))
            self._work = None
        return self._answer

    def _begin(self, work: Callable[[], Arrays]) -> None:
        mine, theirs = Pipe(duplex=False)
        memory = os.memfd_create("etips")
        try:
            child = fork_child(theirs, lambda: _tell(theirs, memory, work), [memory])
        except OSError:  # as where a system allows no more
            mine.close()
            os.close(memory)
        else:
            self._line = _Line(mine, memory)
            weakref.finalize(self, _forget, os.getpid(), child, self._line)  # nobody waits any more
        finally:
            theirs.close()

    def _fetch(self, work: Callable[[], Arrays]) -> Arrays:
        if self._line is not None:
            with suppress(EOFError, OSError):
                return _hear(self._line)
        return work()


class _Line(NamedTuple):
    """To a process: where it says what it wrote, and the memory that it wrote to."""

    pipe: "Connection[Any, Any]"
    memory: int


def _forget(parent: int, child: int, line: _Line) -> None:
    if os.getpid() != parent:  # a process forked from it since, whose own the child is not
        return
    end_children([child])
    line.pipe.close()
    os.close(line.memory)


def _tell(pipe: "Connection[Any, Any]", memory: int, work: Callable[[], Arrays]) -> None:
    """Do the work in the process and write what it comes to; an error is for who does it again."""
    with suppress(Exception):
        arrays = {name: np.ascontiguousarray(own) for name, own in work().items()}
        with os.fdopen(memory, "wb", closefd=False) as file:
            for own in arrays.values():
                file.write(own.data)
                file.write(bytes(-own.nbytes % _APART))
        named = [(name, own.dtype.str, own.shape) for name, own in arrays.items()]
        pipe.send_bytes(json.dumps(named).encode())


def _hear(line: _Line) -> Arrays:
    """What the process wrote, where it lies."""
    arrays: Arrays = {}
    named, start = json.loads(line.pipe.recv_bytes()), 0
    whole = mmap.mmap(line.memory, 0) if os.fstat(line.memory).st_size else b""
    for name, kind, shape in named:
        size = math.prod(shape)
        arrays[name] = np.frombuffer(whole, kind, size, start).reshape(shape)
        start += -(-arrays[name].nbytes // _APART) * _APART
    return arrays
