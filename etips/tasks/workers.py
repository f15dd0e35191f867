"""Tasks done by processes of this machine: fed with JSON, replaced when lost, stopped with us.

Written by hand, though loky and concurrent.futures run processes too: those pickle what they send,
and a worker that is killed for its memory breaks the whole pool. Here nothing is pickled, a lost
worker is replaced and its task done again, and workers end with the process that started them.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path

from etips.errors import EtipsError, ResourceError

COMMAND = (sys.executable, "-m", "etips.tasks.worker")
"""Starts a worker; see there for what it reads and writes."""

TRIES = 3
"""How often a task may lose its worker before it is given up."""

TaskTexts = Mapping[str, str]
"""Tasks as text, by name."""


@dataclass(frozen=True)
class Event:
    """A task was taken up, or is done.

    Args:
        name: Which task.
        done: Its findings are in its folder.
    """

    name: str
    done: bool = False


Events = Generator[Event, None, None]
"""What happens to tasks, as it happens; closed, it stops whoever is at work."""


class RefusedError(EtipsError):
    """A refusal elsewhere, in its own words.

    Args:
        line: What was said there.
        code: Exit code of the command.
    """

    def __init__(self, line: str, code: int) -> None:
        self.exit_code = code
        super().__init__(line)


class LostTaskError(ResourceError):
    """A task that lost its worker again and again.

    Args:
        task: Its name.
    """

    def __init__(self, task: str) -> None:
        self.task = task
        rule = f"lost its worker {TRIES} times: killed, or out of memory"
        super().__init__(f"task {task}", rule, fix="Use fewer jobs, or a larger machine.")


class BrokenTaskError(RuntimeError):
    """A bug elsewhere; carries its traceback as text, without the message."""


@dataclass(frozen=True)
class Outcome:
    """What a worker says when it is through with a task.

    Args:
        status: "done", "refused" or "broken".
        text: The refusal, or the traceback.
        code: Exit code of a refusal.
    """

    status: str
    text: str = ""
    code: int = 0

    def require_done(self, name: str) -> None:
        """Raise here what was raised there."""
        if self.status == "refused":
            raise RefusedError(self.text, self.code)
        if self.status != "done":
            raise BrokenTaskError(f"task {name} broke in its worker\n{self.text}")


def count_loss(name: str, losses: Counter[str]) -> None:
    """Count a lost worker; refuse to try the task for ever."""
    losses[name] += 1
    if losses[name] >= TRIES:
        raise LostTaskError(name)


def run_in_processes(
    texts: TaskTexts, folder: Path, *, n_workers: int, lenders: Mapping[str, Collection[str]]
) -> Events:
    """Have every task done by `n_workers` processes; close the iterator to stop them.

    Whoever is free takes a task whose lenders are done, by itself if possible.

    Args:
        texts: The tasks, each behind its lenders.
        folder: Holds the folder of each.
        n_workers: How many processes; the cores are shared out among them.
        lenders: Of a task those that must be done before it; none for one that is left out.
    """
    pool = _Pool(texts, folder, lenders, threads=max(1, (os.cpu_count() or 1) // n_workers))
    try:
        for _ in range(n_workers):
            pool.start_worker()
        yield from pool.work()
    finally:
        pool.stop_all()


class _Worker:
    """A process that does one task at a time."""

    def __init__(self, threads: int) -> None:
        self.at: str | None = None
        self.did: set[str] = set()
        # A session of its own: the terminal's interrupt is for us alone, and we stop the workers.
        self.process = subprocess.Popen(  # noqa: S603  # our own module
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, "OMP_NUM_THREADS": str(threads)},
            start_new_session=True,
        )

    def take(self, name: str, text: str, folder: Path) -> None:
        """Give it a task; one that has died meanwhile is found out when it is listened to."""
        self.at = name
        line = json.dumps({"folder": str(folder), "task": text}) + "\n"
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(line.encode())

    def hear(self) -> Outcome | None:
        """How its task went; None if it is lost."""
        assert self.process.stdout is not None
        line = b""
        while not line.endswith(b"\n"):
            part = self.process.stdout.readline()
            if not part:
                return None
            line += part
        return Outcome(**json.loads(line))

    def stop(self) -> None:
        """End it, whatever it is doing: what it writes appears whole or not at all."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


class _Pool:
    """Workers and what there is to do."""

    def __init__(
        self,
        texts: TaskTexts,
        folder: Path,
        lenders: Mapping[str, Collection[str]],
        *,
        threads: int,
    ) -> None:
        self._texts, self._folder, self._threads = texts, folder, threads
        self._lenders, self._undone = lenders, set(texts)
        self._waiting = list(texts)
        self._losses: Counter[str] = Counter()
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()

    def start_worker(self) -> None:
        """Start one more worker."""
        worker = _Worker(self._threads)
        self._workers.append(worker)
        assert worker.process.stdout is not None
        self._selector.register(worker.process.stdout, selectors.EVENT_READ, worker)

    def work(self) -> Events:
        """Hand out tasks and listen, until all are done."""
        while self._waiting or any(worker.at is not None for worker in self._workers):
            for worker in self._workers:
                if worker.at is None and (name := self._next(worker)) is not None:
                    worker.take(name, self._texts[name], self._folder / name)
                    yield Event(name)
            for key, _ in self._selector.select():
                yield from self._listen(key.data)

    def _next(self, worker: _Worker) -> str | None:
        """Of the tasks that need not wait for another the one with most lenders done here.

        Its worker may remember what it found out about the same stays; the first, if several have.
        """
        lent = {name: set(self._lenders.get(name, ())) for name in self._waiting}
        ready = [name for name in self._waiting if self._undone.isdisjoint(lent[name])]
        if not ready:
            return None
        name = max(ready, key=lambda own: len(lent[own] & worker.did))
        self._waiting.remove(name)
        return name

    def _listen(self, worker: _Worker) -> Events:
        name, outcome = worker.at, worker.hear()
        if outcome is None:
            self._replace(worker)
        elif name is not None:
            outcome.require_done(name)
            worker.at = None
            worker.did.add(name)
            self._undone.remove(name)
            yield Event(name, done=True)

    def _replace(self, worker: _Worker) -> None:
        self._selector.unregister(worker.process.stdout)  # type: ignore[arg-type]  # is a pipe
        self._workers.remove(worker)
        worker.stop()
        if worker.at is not None:
            count_loss(worker.at, self._losses)
            self._waiting.insert(0, worker.at)
        if self._waiting:
            self.start_worker()

    def stop_all(self) -> None:
        """Stop all workers, whatever they are doing."""
        for worker in self._workers:
            worker.stop()
        self._selector.close()
