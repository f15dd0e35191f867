"""Work that waits for nothing that is trained, done by a process beside the training.

While networks learn, on a GPU above all, cores of the host have nothing to do; and some of what is
asked for later needs the log alone. It is begun early, in a process forked from here, and fetched
when it is wanted. Where there is no second core, where no process can be forked, or where it is
lost, the work is done when it is asked for: the same answer, later.
"""

import json
import weakref
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from etips.data.trajectories import Trajectories
from etips.learn.training.crew import n_workers
from etips.learn.training.forking import can_fork, end_child, fork_child

Answer = TypeVar("Answer")

Arrays = dict[str, NDArray[Any]]
"""What a process can say: numbers, by name."""

FEWEST = 5_000
"""Decisions from which such work is worth a process."""


class Beside(Generic[Answer]):
    """Some work under way; call it for the answer, which it then keeps.

    Args:
        work: What is done, here or in a process.
        made: What its arrays stand for.
        data: Logged stays that it is about, of which it needs nothing else.
    """

    def __init__(
        self, work: Callable[[], Arrays], made: Callable[[Arrays], Answer], data: Trajectories
    ) -> None:
        self.data = data
        self._work: Callable[[], Arrays] | None = work
        self._made = made
        self._answer: Answer
        self._pipe: Connection[Any, Any] | None = None
        if data.n_decisions >= FEWEST and n_workers(2) > 1 and can_fork():
            self._begin(work)

    def __call__(self) -> Answer:
        """The answer; waits for it."""
        if self._work is not None:
            self._answer = self._made(self._fetch(self._work))
            self._work = None
        return self._answer

    def _begin(self, work: Callable[[], Arrays]) -> None:
        mine, theirs = Pipe(duplex=False)
        try:
            child = fork_child(theirs, lambda: _tell(theirs, work))
        except OSError:  # as where a system allows no more
            mine.close()
            theirs.close()
            return
        theirs.close()
        self._pipe = mine
        weakref.finalize(self, end_child, child)  # nobody waits for it any more

    def _fetch(self, work: Callable[[], Arrays]) -> Arrays:
        if self._pipe is not None:
            with self._pipe as pipe, suppress(EOFError, OSError):
                return _hear(pipe)
        return work()


def _tell(pipe: "Connection[Any, Any]", work: Callable[[], Arrays]) -> None:
    """Do the work in the process and send what it comes to; an error is for who does it again."""
    with suppress(Exception):
        arrays = {name: np.ascontiguousarray(own) for name, own in work().items()}
        named = [(name, own.dtype.str, own.shape) for name, own in arrays.items()]
        pipe.send_bytes(json.dumps(named).encode())
        for own in arrays.values():
            pipe.send_bytes(own.data.cast("B") if own.size else b"")


def _hear(pipe: "Connection[Any, Any]") -> Arrays:
    """What the process sent."""
    arrays: Arrays = {}
    for name, kind, shape in json.loads(pipe.recv_bytes()):
        arrays[name] = own = np.empty(shape, kind)
        if own.size:
            pipe.recv_bytes_into(own.data.cast("B"))
        else:
            pipe.recv_bytes()
    return arrays
