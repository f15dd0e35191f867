"""Trainings that share a GPU: how many there are, and whether they are still wanted.

A captured step of one bundle leaves most of a GPU idle. Processes would take turns on it, but
streams of one process work at the same time, so several learners train in threads of one process.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field

import torch


class UnwantedError(Exception):
    """A training was stopped from outside; nobody waits for it."""


@dataclass(frozen=True, eq=False)
class Sharing:
    """Trainings that share a device.

    Args:
        n_trainings: How many, at most, at a time.
        halt: Set when they are to stop.
    """

    n_trainings: int = 1
    halt: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def take_part(self) -> Iterator[None]:
        """What this thread trains is one of them, on a stream of its own where there is a GPU."""
        gpu = torch.cuda.is_available()
        # Its own stream waits for nobody; whoever reads results of another reads them from disk.
        stream = torch.cuda.stream(torch.cuda.Stream()) if gpu else nullcontext()  # type: ignore[no-untyped-call]
        token = _HERE.set(self)
        try:
            with stream:
                yield
        finally:
            _HERE.reset(token)


_HERE: ContextVar[Sharing] = ContextVar("sharing", default=Sharing())  # noqa: B039  # never halted


def sharers() -> int:
    """How many trainings share the device with this thread's, itself included."""
    return _HERE.get().n_trainings


def require_wanted() -> None:
    """Stop here if nobody waits for what this thread trains."""
    if _HERE.get().halt.is_set():
        raise UnwantedError
