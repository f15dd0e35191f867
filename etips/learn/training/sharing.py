"""Trainings that share a GPU: how many there are, and whether they are still wanted.

A captured step of one bundle leaves most of a GPU idle. Processes would take turns on it, but
streams of one process work at the same time, so several learners train in threads of one process.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

import torch


class UnwantedError(Exception):
    """A training was stopped from outside; nobody waits for it."""


@dataclass(frozen=True, eq=False)
class Sharing:
    """Trainings that share a device; handed to whatever trains as one of them.

    Args:
        n_trainings: How many, at most, at a time.
        halt: Set when they are to stop.
    """

    n_trainings: int = 1
    halt: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def on_own_stream(self) -> Iterator[None]:
        """What this thread trains is one of them, on a stream of its own where there is a GPU."""
        with torch.cuda.stream(_own_stream()) if torch.cuda.is_available() else nullcontext():
            yield


def require_wanted(halt: threading.Event | None) -> None:
    """Stop here if nobody waits for what is trained.

    Args:
        halt: Set when it is to stop; None never stops.
    """
    if halt is not None and halt.is_set():
        raise UnwantedError


def _own_stream() -> torch.cuda.Stream:
    """A stream that nothing is captured on (`captured.py`): of a higher priority than usual."""
    return torch.cuda.Stream(priority=-1)  # type: ignore[no-untyped-call]
