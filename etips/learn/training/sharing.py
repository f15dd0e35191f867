"""Trainings that share a GPU: how many there are, and whether they are still wanted.

A captured step of one bundle leaves most of a GPU idle. Processes would take turns on it, but
streams of one process work at the same time, so several learners train in threads of one process.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import partial

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
        token = _HERE.set(self)
        try:
            with torch.cuda.stream(_own_stream()) if torch.cuda.is_available() else nullcontext():
                yield
        finally:
            _HERE.reset(token)


_HERE: ContextVar[Sharing] = ContextVar("sharing", default=Sharing())  # noqa: B039  # never halted


def _own_stream() -> torch.cuda.Stream:
    """A stream that nothing is captured on (`captured.py`): of a higher priority than usual."""
    return torch.cuda.Stream(priority=-1)  # type: ignore[no-untyped-call]


def carried_over(work: Callable[[], None]) -> Callable[[], None]:
    """The work for another thread: it takes part in what this one does, on the same stream."""
    context = copy_context()
    awake = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    stream = torch.cuda.current_stream() if awake else None

    def run() -> None:
        with nullcontext() if stream is None else torch.cuda.stream(stream):
            work()

    return partial(context.run, run)


def sharers() -> int:
    """How many trainings share the device with this thread's, itself included."""
    return _HERE.get().n_trainings


def require_wanted(halt: threading.Event | None = None) -> None:
    """Stop here if nobody waits for what is trained.

    Args:
        halt: Set when it is to stop; that of this thread if left out.
    """
    if (halt or _HERE.get().halt).is_set():
        raise UnwantedError
