"""Processes forked from this one: stays, networks and objectives are where they were."""

import ctypes
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

_DIE_WITH_PARENT = 1  # prctl's PR_SET_PDEATHSIG


def can_fork() -> bool:
    """Whether processes may be forked: not by macOS's libraries, nor beside threads that use a GPU.

    After torch has met a GPU they may, as long as they leave it alone, which work on a CPU does;
    torch's own loaders of data are such processes.
    """
    if sys.platform != "linux":
        return False
    return threading.active_count() == 1 or not torch.cuda.is_available()


@contextmanager
def holding_interrupts() -> Iterator[None]:
    """Ctrl-C waits until what happens here is done."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def fork_child(
    pipe: "Connection[Any, Any]", work: Callable[[], None], files: Collection[int] = ()
) -> int:
    """The number of a process, forked from this one, that does the work with one thread.

    It leaves Ctrl-C to this process and ends with it. Nothing of this process is open in it but
    the pipe, the files named, and the terminal: the parent's locks must end with the parent.

    Args:
        pipe: Its end of one.
        work: After which it ends.
        files: Numbers of files that it may use.
    """
    _clear_away()
    parent = os.getpid()
    with holding_interrupts(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of torch and numpy sleep
        child = os.fork()
        if child:
            return child
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
            if os.getppid() != parent:  # it ended before that was asked for
                os._exit(0)
            held = [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]
            for number in held:
                if number > 2 and number not in (pipe.fileno(), *files):  # 0 to 2: the terminal
                    with suppress(OSError):
                        os.close(number)
            torch.set_num_threads(1)
            work()
        except (EOFError, OSError):
            pass
        finally:
            os._exit(0)


def end_children(children: Collection[int]) -> None:
    """End processes that were forked, at once: nobody waits for what they do.

    Nor for the system, which takes a tenth of a second to clear away three that were forked from a
    process of a gigabyte. What is left of them is gone when the next are forked or ended.
    """
    for child in children:
        with suppress(OSError):
            os.kill(child, signal.SIGKILL)
            _ENDED.add(child)
    _clear_away()


_ENDED: set[int] = set()
"""Processes that were told to end, and that the system has not been asked about since."""


def _clear_away() -> None:
    for child in list(_ENDED):
        with suppress(OSError):  # somebody else's child, as in a process forked from here
            if os.waitpid(child, os.WNOHANG)[0] == 0:
                continue
        _ENDED.discard(child)
