"""Tasks: work done once, by this process, by several, or by a Ray cluster.

A task works in a folder of its own and leaves its findings there when it is finished, whole or not
at all. joblib does tasks side by side (scikit-learn's form of it, which hands on our warnings): it
pickles what it sends to our own processes, and nothing of that is ever a file.
"""

import json
import os
import signal
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from math import ceil
from pathlib import Path
from typing import Any, Protocol

from sklearn.utils.parallel import Parallel, delayed

from etips.errors import EtipsError, FileError, ResourceError, SettingError
from etips.files.fingerprint import fingerprint
from etips.files.json_documents import canonical
from etips.files.lock import Lock
from etips.files.writing import write_file
from etips.learn.fitting.prepare import choose_device
from etips.progress import Progress, duration
from etips.runs.checkpoint import ForeignError

DONE = "done.json"
"""What a finished task leaves: its identity, what it found, and how long it took."""

TRIES = 3
"""How often a task may lose its worker before it is given up."""

Json = Mapping[str, object]
"""An object that JSON can hold."""

_BEGUN = "work.json"  # holds the identity of the work whose checkpoints are in a folder
_ON_CPU = 4  # tasks at a time: each holds the data
_IDLE = 20.0  # seconds after which a process that has nothing to do gives its memory back
_NAMED = 3  # tasks at work that progress names; more are counted
_TRUSTED = 0.4  # share of the work after which its own pace is all that counts


class Work(Protocol):
    """What a task does: a frozen dataclass of all that its findings depend on."""

    def run(self, folder: Path) -> Json:
        """Do it and return the findings; large ones, and checkpoints, go into files.

        Args:
            folder: The task's own; what several tasks read lies beside it.
        """


@dataclass(frozen=True)
class Task:
    """One piece of work.

    Args:
        name: Letters, digits and hyphens; the task's folder.
        cost: How long it takes against other tasks, roughly.
        device: Where it trains: auto, cpu or cuda; None if it trains nothing.
        needs: Tasks whose networks it begins with.
    """

    name: str
    work: Work
    cost: float = 1.0
    device: str | None = None
    needs: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """Fingerprint of the work."""
        return fingerprint(work=self.work)


@dataclass(frozen=True)
class Record:
    """What a finished task left."""

    findings: Json
    seconds: float


class RefusedError(EtipsError):
    """A refusal in a worker, in its own words and with its exit code."""

    def __init__(self, line: str, code: int) -> None:
        self.exit_code = code
        super().__init__(line, code)  # both, to survive pickling

    def __str__(self) -> str:
        return str(self.args[0])


class LostTaskError(ResourceError):
    """A task that lost its worker again and again."""

    def __init__(self, task: str) -> None:
        self.task = task
        rule = f"lost its worker {TRIES} times: killed, or out of memory"
        super().__init__(f"task {task}", rule, fix="Use fewer jobs, or a larger machine.")


class BrokenTaskError(RuntimeError):
    """A bug in a worker; carries its traceback as text, without the message."""


class Clock:
    """Reports which share of some work is done, what is at work, and about how long the rest takes.

    Args:
        total: Cost of all tasks, and of what follows them.
        report: Is given the text and the share.
        span: Share of the whole before this work and after it, where it is one of several.
    """

    def __init__(
        self, total: float, report: Progress | None, span: tuple[float, float] = (0.0, 1.0)
    ) -> None:
        self.jobs = 1
        self._total, self._report, self._span = total, report, span
        self._cost = self._seconds = 0.0
        self._at_work: list[str] = []
        self._end: float | None = None

    def expect(self, seconds: float) -> None:
        """The rest is expected to take so long; counts less and less as tasks are done."""
        self._end = time.perf_counter() + seconds

    def done_before(self, cost: float, seconds: float) -> None:
        """A task was done earlier, and took so long."""
        self._cost += cost
        self._seconds += seconds

    def began(self, name: str) -> None:
        """A task was taken up."""
        self._at_work = [*(n for n in self._at_work if n != name), name]  # again, if one was lost
        self._tell()

    def done(self, name: str, cost: float, seconds: float) -> None:
        """A task is done, and took so long."""
        self._at_work = [n for n in self._at_work if n != name]
        self.done_before(cost, seconds)
        self._tell()

    def _tell(self) -> None:
        if self._report is None:
            return
        what = ", ".join(self._at_work[:_NAMED])
        if (more := len(self._at_work) - _NAMED) > 0:
            what += f" and {more} more"
        share = min(self._cost / self._total, 1.0) if self._total else 1.0
        left = self._left(share)
        if left is not None:
            what += f"; about {duration(left)} left"
        low, high = self._span
        self._report(what.removeprefix("; "), low + (high - low) * share)

    def _left(self, share: float) -> float | None:
        """Seconds that the rest takes, by the pace so far and by what was expected."""
        left = self._total - self._cost
        if left <= 1e-9 * self._total:
            return None
        expected = None if self._end is None else max(self._end - time.perf_counter(), 10.0)
        if not self._seconds:
            return expected
        pace = ceil(left / self.jobs) * self._seconds / self._cost
        if expected is None:
            return pace
        trust = min(share / _TRUSTED, 1.0)
        return trust * pace + (1 - trust) * expected


def run_tasks(
    tasks: Sequence[Task],
    folder: Path,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    inputs: Sequence[str] = (),
    clock: Clock | None = None,
) -> dict[str, Json]:
    """Do every task that is not done yet; return what each found, by its name.

    With one job the tasks are done one after the other in this process, otherwise by several
    processes, or by the machines of a Ray cluster. A task whose worker is lost is done again, a few
    times. A refusal ends the run; what other tasks have finished stays, and is not done again.

    Args:
        tasks: None of which needs another one.
        folder: Gets one folder a task; one process at a time works in it.
        jobs: How many at a time.
        cluster: Address of a Ray cluster to do them on; "local" starts a small one here.
        inputs: Folders within `folder` that the tasks read; a cluster is sent them.
        clock: Reports how far they are.
    """
    if jobs < 1:
        raise SettingError("jobs", "must be at least 1")
    if not all(task.name.replace("-", "").isalnum() and task.name.isascii() for task in tasks):
        raise SettingError("task", "must be named by letters, digits and hyphens")
    if len({task.name for task in tasks}) < len(tasks):
        raise SettingError("task", "must have a name of its own")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    clock = clock or Clock(sum(task.cost for task in tasks), None)
    with Lock(folder):
        found: dict[str, Json] = {}
        for task in tasks:
            if (record := recorded(task, folder / task.name)) is not None:
                found[task.name] = record.findings
                clock.done_before(task.cost, record.seconds)
        waiting = [task for task in tasks if task.name not in found]
        if cluster is None and jobs == 1:
            finishing = _one_by_one(waiting, folder, clock)
        else:
            finishing = _side_by_side(waiting, folder, jobs, cluster, inputs, clock)
        with closing(finishing):
            for task in finishing:
                record = recorded(task, folder / task.name)
                assert record is not None
                found[task.name] = record.findings
                clock.done(task.name, task.cost, record.seconds)
    return {task.name: found[task.name] for task in tasks}


def jobs_for(device: str) -> int:
    """How many tasks at a time suit this machine, unless the user says."""
    return 1 if choose_device(device).type == "cuda" else min(os.cpu_count() or 1, _ON_CPU)


def recorded(task: Task, folder: Path) -> Record | None:
    """What the task left in its folder; None if it has still to be done."""
    path = folder / DONE
    if not path.is_file():
        return None
    try:
        document = json.loads(path.read_bytes())
        identity, findings, seconds = (document[key] for key in ("identity", "found", "seconds"))
        record = Record(dict(findings), float(seconds))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileError(str(path), "cannot be read", fix="Remove the folder it is in.") from error
    if identity != task.identity:
        raise _other_work(folder)
    return record


def do(task: Task, folder: Path) -> None:
    """Do the task here and now, and leave its findings in its folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    claim, own = folder / _BEGUN, canonical({"work": task.identity})
    if not claim.is_file():
        write_file(claim, own)
    elif claim.read_bytes() != own:  # before its checkpoints are taken up
        raise _other_work(folder)
    started = time.perf_counter()
    try:
        findings = dict(task.work.run(folder))
    except ForeignError as error:  # the work is the same, or the folder had been refused before
        rule = (
            "was begun, or was lent networks, by another version of etips or torch or on another "
            "device"
        )
        names = " and ".join(dict.fromkeys([task.name, *task.needs]))
        fix = f"Remove {names} in {folder.parent} to do them anew; the rest stays."
        raise FileError(str(folder), rule, fix=fix) from error
    took = time.perf_counter() - started
    document = {"identity": task.identity, "found": findings, "seconds": took}
    write_file(folder / DONE, canonical(document))


def outcome_of(task: Task, folder: Path) -> Exception | None:
    """Do the task in a worker; return what its command is to raise, without a value of the data."""
    try:
        do(task, folder)
    except EtipsError as error:
        return RefusedError(str(error), error.exit_code)
    except MemoryError:
        return RefusedError("not enough memory", ResourceError.exit_code)
    except Exception as error:  # noqa: BLE001  # a bug; its message may quote a patient
        places = "".join(traceback.format_tb(error.__traceback__))
        kind = type(error).__name__
        return BrokenTaskError(
            f"task {task.name} broke in its worker\n{places}{kind}, its message left out: it may "
            "quote the data; one job shows it"
        )
    return None


@dataclass(frozen=True, eq=False)
class Pool:
    """Workers that do tasks side by side.

    Args:
        size: How many tasks at a time.
        backend: What joblib calls them, and their settings.
        work: Does a task there. What it returns may be pickled.
        finish: Takes what `work` returned; raises what went wrong.
        losses: What is raised when a worker is gone.
    """

    size: int
    backend: Mapping[str, object]
    work: Callable[[Task], object]
    finish: Callable[[Task, Any], None]
    losses: tuple[type[Exception], ...] = (BrokenExecutor,)


def _one_by_one(tasks: Sequence[Task], folder: Path, clock: Clock) -> Generator[Task, None, None]:
    for task in tasks:
        clock.began(task.name)
        do(task, folder / task.name)
        yield task


def _side_by_side(
    tasks: Sequence[Task],
    folder: Path,
    jobs: int,
    cluster: str | None,
    inputs: Sequence[str],
    clock: Clock,
) -> Generator[Task, None, None]:
    """Have the tasks done by several workers; yield each when it is done."""
    if not tasks:
        return
    waiting = {task.name: task for task in tasks}
    losses: Counter[str] = Counter()
    with _pool(tasks, folder, jobs, cluster, inputs) as pool:
        clock.jobs = pool.size
        parallel = Parallel(
            n_jobs=max(pool.size, 2),  # of one joblib makes no worker
            return_as="generator_unordered",
            pre_dispatch=pool.size,
            batch_size=1,
            **pool.backend,
        )
        while waiting:
            # Of tasks that were at work when a worker was lost each is tried alone: so it shows
            # which of them it was.
            suspects = [name for name in waiting if losses[name]]
            batch = [waiting[name] for name in suspects[:1]] or list(waiting.values())
            at_work: list[str] = []

            def begin(batch: Sequence[Task] = batch, at_work: list[str] = at_work) -> Iterator[Any]:
                for task in batch:
                    at_work.append(task.name)
                    clock.began(task.name)
                    yield delayed(_named)(pool.work, task)

            try:
                with _ended_early(parallel(begin())) as answers:
                    for name, answer in answers:
                        pool.finish(waiting[name], answer)
                        yield waiting.pop(name)
            except pool.losses:
                for name in at_work:
                    losses[name] += name in waiting
                    if losses[name] >= TRIES:
                        raise LostTaskError(name) from None


@contextmanager
def _ended_early(answers: Generator[Any, None, None]) -> Iterator[Generator[Any, None, None]]:
    """Close the answers without joblib's warning of those not waited for: a refusal says enough."""
    try:
        yield answers
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            answers.close()


def _named(work: Callable[[Task], Any], task: Task) -> tuple[str, Any]:
    return task.name, work(task)


@contextmanager
def _pool(
    tasks: Sequence[Task], folder: Path, jobs: int, cluster: str | None, inputs: Sequence[str]
) -> Iterator[Pool]:
    if cluster is None:
        process = partial(_do_in_process, folder=folder, parent=os.getpid())
        backend = {"backend": "loky", "idle_worker_timeout": _IDLE}
        yield Pool(min(jobs, len(tasks)), backend, process, _raise_any)
        return
    try:
        ray = import_module("etips.runs.cluster")
    except ImportError:
        fix = "Install it with: pip install 'etips[ray]'."
        raise SettingError("cluster", "needs ray", fix=fix) from None
    on_gpu = any(task.device == "cuda" for task in tasks)
    with ray.cluster_pool(cluster, folder, inputs, on_gpu=on_gpu) as pool:
        yield pool


def _do_in_process(task: Task, folder: Path, parent: int) -> Exception | None:
    _become_worker(parent)
    return outcome_of(task, folder / task.name)


def _raise_any(_: Task, problem: Exception | None) -> None:
    """Raise what `outcome_of` returned, if anything."""
    if problem is not None:
        raise problem


@cache
def _become_worker(parent: int) -> None:
    """Once a process: end with the command, however it ends, and leave the terminal to it."""
    os.dup2(2, 1)  # what some library prints is no part of the command's output
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command ends its workers

    def end_with_command() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(0)  # or it would work on in a folder that another command may take

    threading.Thread(target=end_with_command, daemon=True).start()


def _other_work(folder: Path) -> FileError:
    rule = "holds other work: its data, settings, seed or device differ"
    fix = "Choose another output folder, or remove this one to do the task anew."
    return FileError(str(folder), rule, fix=fix)
