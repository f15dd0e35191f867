"""Processes that share the work of a training on a CPU: none waits for another within a piece.

The operations of a step take microseconds. Threads of one operation would have to meet after every
one of them, which costs ten times the work as soon as somebody else wants a core; threads of one
interpreter would wait for its lock. So whole pieces of work go to processes. They are forked where
the work begins: stays, objectives and networks are where they were, nothing is copied or written
down, and what pieces change lies in memory that all of them share (`shared`).

Where processes cannot be forked, threads do the same pieces.
"""

import json
import mmap
import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn, Protocol

import torch
from joblib import cpu_count
from torch import Tensor

from etips.errors import ResourceError
from etips.learn.training.forking import can_fork, end_children, fork_child, holding_interrupts

Order = tuple[int | str, ...]
"""What to do: words and numbers that the work understands."""

Work = Callable[[Order], Any]
"""Does what an order says; what it returns must be small, of numbers, texts and lists."""

_LOST = "a process that trained was ended, as by a system that runs out of it"


class Crew(Protocol):
    """Some who work at the same time."""

    size: int

    def give(self, worker: int, order: Order) -> None:
        """Let a worker that has nothing to do begin."""

    def finished(self) -> list[tuple[int, Any]]:
        """Wait until some have finished; who, and what their work returned, or its error."""

    def fail(self, order: Order, error: Exception) -> NoReturn:
        """Raise the error of an order."""


def n_workers(n_pieces: int) -> int:
    """How many are of use: as torch may use threads, cores there are, and pieces to do at once."""
    return int(min(torch.get_num_threads(), cpu_count(), n_pieces))


def run(
    crew: Crew, choose: Callable[[int], Order | None], note: Callable[[Order, Any], None]
) -> None:
    """Hand out orders until there are none and all are done.

    Args:
        crew: Who works.
        choose: The next order for one of so many who are free; None if there is none at the moment.
        note: Told of each order that is done, and of what the work returned.
    """
    free, busy = list(range(crew.size)), {}
    while True:
        while free and (order := choose(len(free))) is not None:
            worker = free.pop()
            busy[worker] = order
            crew.give(worker, order)
        if not busy:
            return
        for worker, answer in crew.finished():
            if isinstance(answer, Exception):
                crew.fail(busy[worker], answer)
            note(busy.pop(worker), answer)
            free.append(worker)


def run_all(crew: Crew, orders: Sequence[Order]) -> list[Any]:
    """What the work returns for each of the orders."""
    left, answers = iter(orders), dict[Order, Any]()
    run(crew, lambda _: next(left, None), answers.__setitem__)
    return [answers[order] for order in orders]


@contextmanager
def working(size: int, work: Work) -> Iterator[Crew]:
    """A crew that does this work; it is gone at the end, however that comes.

    Args:
        size: How many work at the same time.
        work: Done by processes with one thread each. What it changes must be `shared`.
    """
    crew = _begun(size, work)
    try:
        yield crew
    finally:
        crew.end()


def _begun(size: int, work: Work) -> "_Processes | _Threads":
    """Processes at work, or threads where there can be none, as where a system allows no more."""
    threads = _Threads(size, work)
    if can_fork():
        processes = _Processes(size, work)
        try:
            processes.begin()
        except OSError:
            processes.end()
        except BaseException:  # Ctrl-C, since it was held back
            processes.end()
            raise
        else:
            return processes
    threads.begin()
    return threads


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch's operations do without threads here; afterwards it is as it was."""
    before = torch.get_num_threads()
    if before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def shared(values: Tensor) -> Tensor:
    """The same values in memory that is shared with processes forked from here on."""
    if not values.numel():
        return values.clone()
    place = torch.frombuffer(mmap.mmap(-1, values.nbytes), dtype=values.dtype)
    return place.view(values.shape).copy_(values)


class _Processes:
    """Forked from this one."""

    def __init__(self, size: int, work: Work) -> None:
        self.size = size
        self._work = work
        self._pipes: list[Connection[Any, Any]] = []
        self._children: list[int] = []

    def begin(self) -> None:
        """Fork them. Ctrl-C is for this process alone, which ends them."""
        with holding_interrupts():
            for _ in range(self.size):
                mine, theirs = Pipe()
                self._pipes.append(mine)
                child = fork_child(theirs, partial(_serve, theirs, self._work, os.getpid()))
                theirs.close()
                self._children.append(child)

    def give(self, worker: int, order: Order) -> None:
        """Let a worker that has nothing to do begin."""
        try:
            self._pipes[worker].send_bytes(json.dumps(order).encode())
        except OSError:
            raise ResourceError("memory", _LOST) from None

    def finished(self) -> list[tuple[int, Any]]:
        """Wait until some have finished; who, and what their work returned, or its error."""
        ready = wait(self._pipes)
        try:
            said = {n: pipe.recv_bytes() for n, pipe in enumerate(self._pipes) if pipe in ready}
        except (EOFError, OSError):
            raise ResourceError("memory", _LOST) from None
        answers = {number: json.loads(words) for number, words in said.items()}
        return [
            (number, RuntimeError(error) if error else answer)
            for number, (answer, error) in answers.items()
        ]

    def fail(self, order: Order, error: Exception) -> NoReturn:
        """Raise the error of an order: do it again, so that the error is the work's own."""
        with one_thread():
            self._work(order)
        raise error

    def end(self) -> None:
        """End them at once: nobody waits for what they do."""
        for pipe in self._pipes:
            pipe.close()
        end_children(self._children)


def _serve(pipe: "Connection[Any, Any]", work: Work, parent: int) -> None:
    """Do what orders say until the pipe or the parent ends."""
    while os.getppid() == parent:
        pipe.send_bytes(_done(work, tuple(json.loads(pipe.recv_bytes()))))


def _done(work: Work, order: Order) -> bytes:
    """What the work returns, and its error in words, as a pipe carries them."""
    try:
        said = work(order), ""
    except Exception as error:  # noqa: BLE001  # raised where the crew is asked
        said = None, f"{type(error).__name__}: {error}"
    return json.dumps(said).encode()


class _Threads:
    """Of this process, each with one thread in its operations."""

    def __init__(self, size: int, work: Work) -> None:
        self.size = size
        self._work = work
        self._orders: list[queue.SimpleQueue[Order | None]] = []
        self._answers: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._before = 1

    def begin(self) -> None:
        """Start them."""
        self._before = torch.get_num_threads()
        torch.set_num_threads(1)
        for number in range(self.size):
            self._orders.append(queue.SimpleQueue())
            self._threads.append(threading.Thread(target=self._serve, args=(number,), daemon=True))
            self._threads[-1].start()

    def give(self, worker: int, order: Order) -> None:
        """Let a worker that has nothing to do begin."""
        self._orders[worker].put(order)

    def finished(self) -> list[tuple[int, Any]]:
        """Wait until one has finished; who, and what its work returned, or its error."""
        return [self._answers.get()]

    def fail(self, order: Order, error: Exception) -> NoReturn:  # noqa: ARG002  # the interface
        """Raise the error of an order."""
        raise error

    def end(self) -> None:
        """Let them end, each after what it does now."""
        for orders in self._orders:
            orders.put(None)
        for thread in self._threads:
            thread.join()
        torch.set_num_threads(self._before)

    def _serve(self, number: int) -> None:
        while (order := self._orders[number].get()) is not None:
            try:
                answer = self._work(order)
            except Exception as error:  # noqa: BLE001  # raised where the crew is asked
                answer = error
            self._answers.put((number, answer))
