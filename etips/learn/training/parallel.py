"""Parts of a work that know nothing of each other, side by side: a process each.

Processes are forked where the work begins, so stays, objectives and networks are where they were
and nothing is copied; what parts change lies in memory that all of them share (`shared`). The
system deals the cores out among them. Where processes cannot be forked, threads do the same.
"""

import ctypes
import json
import mmap
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, NoReturn

import torch
from torch import Tensor

from etips.errors import ResourceError
from etips.machine import cores

Work = Callable[[int], Any]
"""A part of the work, told how often it was asked before. What it returns must be small, of
numbers and lists."""

_DIE_WITH_PARENT = 1  # prctl's PR_SET_PDEATHSIG
_LOST = "a process that trained was ended, as by a system that runs out of it"


def can_fork() -> bool:
    """Whether processes may be forked: not by macOS's libraries, nor beside threads that use a GPU.

    After torch has met a GPU they may, as long as they leave it alone, which work on a CPU does.
    """
    if sys.platform != "linux" or multiprocessing.current_process().daemon:
        return False
    return threading.active_count() == 1 or not torch.cuda.is_available()


def n_workers() -> int:
    """How many parts can be at work at the same time, by cores and by what torch may use."""
    return int(min(torch.get_num_threads(), cores()))


@contextmanager
def side_by_side(
    works: Sequence[Work], *, in_turn: bool = False
) -> Iterator[Callable[[int], list[Any]]]:
    """Ask all parts of a work again and again: a function that returns what each of them returns.

    Torch's operations do without threads meanwhile. An error of a part is raised by the function.

    Args:
        works: The parts.
        in_turn: One after the other in this process, where that is sooner done.
    """
    before = torch.get_num_threads()
    alone = in_turn or len(works) == 1 or n_workers() == 1
    torch.set_num_threads(1)  # threads of an operation would have to meet after each of them
    try:
        if alone:
            yield lambda number: [work(number) for work in works]
        elif (processes := _forked(works)) is not None:
            try:
                yield processes.ask
            finally:
                processes.end()
        else:
            with ThreadPoolExecutor(min(before, len(works))) as threads:
                yield lambda number: list(threads.map(lambda work: work(number), works))
    finally:
        torch.set_num_threads(before)


def shared(values: Tensor) -> Tensor:
    """The same values in memory that is shared with processes forked from here on."""
    if not values.numel():
        return values.clone()
    place = torch.frombuffer(mmap.mmap(-1, values.nbytes), dtype=values.dtype)
    return place.view(values.shape).copy_(values)


class _Processes:
    """A process for each part of a work."""

    def __init__(self, works: Sequence[Work]) -> None:
        self._works = works
        self._pipes: list[Connection[Any, Any]] = []
        self._processes: list[multiprocessing.process.BaseProcess] = []

    def begin(self) -> None:
        """Fork them. Ctrl-C is for this process alone, which ends them."""
        context, parent = multiprocessing.get_context("fork"), os.getpid()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            for work in self._works:
                mine, theirs = context.Pipe()
                self._pipes.append(mine)
                process = context.Process(target=_serve, args=(theirs, work, parent), daemon=True)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DeprecationWarning)  # torch's threads sleep
                    process.start()
                theirs.close()
                self._processes.append(process)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def ask(self, number: int) -> list[Any]:
        """Have all parts work, and return what each returned."""
        try:
            for pipe in self._pipes:
                pipe.send_bytes(json.dumps(number).encode())
            answers = [json.loads(pipe.recv_bytes()) for pipe in self._pipes]
        except (EOFError, OSError):
            raise ResourceError("memory", _LOST) from None
        for work, (_, error) in zip(self._works, answers, strict=True):
            if error:
                work(number)  # here, so that the error is the work's own
                raise RuntimeError(error)
        return [answer for answer, _ in answers]

    def end(self) -> None:
        """End them at once: what they have done is in shared memory."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()


def _forked(works: Sequence[Work]) -> _Processes | None:
    """Processes at work; None where there can be none, as where a system allows no more."""
    if not can_fork():
        return None
    processes = _Processes(works)
    try:
        processes.begin()
    except OSError:
        processes.end()
        return None
    except BaseException:  # Ctrl-C, since it was held back
        processes.end()
        raise
    return processes


def _serve(pipe: "Connection[Any, Any]", work: Work, parent: int) -> NoReturn:
    """In a process: do the work as often as it is asked for, until the pipe or the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    torch.set_num_threads(1)
    try:
        while os.getppid() == parent:
            pipe.send_bytes(_answer(work, json.loads(pipe.recv_bytes())))
    except (EOFError, OSError):
        pass
    os._exit(0)


def _answer(work: Work, number: int) -> bytes:
    """What the work returns, and its error in words, as a pipe carries them."""
    try:
        answer = work(number), ""
    except Exception as error:  # noqa: BLE001  # raised where the work was asked for
        answer = None, f"{type(error).__name__}: {error}"
    return json.dumps(answer).encode()
