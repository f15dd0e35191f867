"""A study as tasks: each does one piece of work in a folder of its own, once.

A task is data, not code: the name of its work and arguments that JSON can hold. So it can be done
in this process, in another one or on another machine, and nothing is pickled on the way.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from etips.errors import FileError, SettingError
from etips.files.fingerprint import fingerprint
from etips.files.json_documents import canonical
from etips.files.lock import Lock
from etips.files.writing import write_file
from etips.learn.fitting.prepare import choose_device
from etips.learn.training.sharing import Sharing
from etips.progress import Progress
from etips.runs.checkpoint import ForeignError
from etips.tasks.streams import have_done_here
from etips.tasks.time_left import TaskProgress
from etips.tasks.workers import Event, Events, Orders, have_done

DONE = "done.json"
"""What a finished task leaves: its identity, what it found, and how long it took."""

_ON_CPU, _ON_GPU = 4, 6  # tasks at a time: each holds the data, and more hardly help a GPU

Work = Callable[[Mapping[str, Any], Path, Sharing | None], Mapping[str, Any]]
"""Arguments, the task's own folder and what shares the device with it in, findings that JSON can
hold out. Arrays go into files in
the folder; long work keeps its checkpoints there and takes them up when it is called again. What
several tasks read lies in a folder beside their own: see `run_tasks`, `inputs`."""

WORK: dict[str, str] = {
    "make-data": "etips.studies.study_data:make_data",
    "fit-fold": "etips.studies.fits:fit_fold",
    "fit-evaluation": "etips.studies.fits:fit_evaluation",
    "trials": "etips.studies.trials:run_trials",
}
"""Where each kind of work is written: "module:function"."""


@dataclass(frozen=True)
class Task:
    """One piece of work.

    Args:
        name: Letters, digits and hyphens; the task's folder.
        work: Its kind, a key of `WORK`.
        arguments: All that its findings depend on.
        cost: How long it takes against other tasks, roughly, to say how far they are.
    """

    name: str
    work: str
    arguments: Mapping[str, Any]
    cost: float = 1.0

    @property
    def identity(self) -> str:
        """Fingerprint of the work and its arguments."""
        return fingerprint(work=self.work, arguments=json.dumps(self.arguments, sort_keys=True))

    def to_json(self) -> str:
        """The task as text, on its way to a worker."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The task that `to_json` wrote."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class Record:
    """What a finished task left.

    Args:
        found: Its findings.
        seconds: How long it took.
    """

    found: Mapping[str, Any]
    seconds: float


def run_tasks(
    tasks: Sequence[Task],
    folder: Path,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    inputs: Sequence[str] = (),
    later: float = 0,
    report: Progress | None = None,
) -> dict[str, Mapping[str, Any]]:
    """Do every task that is not done yet; return what each found, by its name.

    With one job the tasks are done one after the other in this process, else each by one of several
    processes, or by the machines of a Ray cluster. Tasks that train on a GPU are done by threads of
    this process, which share it, where processes would take turns. A task whose worker is lost is
    done again, a few times. A refusal ends the run; what other tasks have finished stays, and is
    not done again.

    Args:
        tasks: In an order in which they can be done one after the other.
        folder: Gets one folder a task; one process at a time works in it.
        jobs: How many at a time.
        cluster: Address of a Ray cluster to do them on; "local" starts a small one here.
        inputs: Folders within `folder` that the tasks read; a cluster is sent them.
        later: What the tasks of later calls cost; they count in what `report` is told.
        report: Told which share of the cost is behind.
    """
    _check(tasks, jobs)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with Lock(folder):
        progress = TaskProgress(sum(task.cost for task in tasks) + later, report)
        records: dict[str, Record] = {}
        for task in tasks:
            if (record := recorded(task, folder / task.name)) is not None:
                records[task.name] = record
                progress.done_before(task.cost, record.seconds)
        waiting = {task.name: task for task in tasks if task.name not in records}
        progress.hands, events = _events(waiting, folder, jobs, cluster, inputs)
        with closing(events):
            for event in events:
                if not event.done:
                    progress.began(event.name)
                    continue
                task = waiting[event.name]
                record = recorded(task, folder / event.name)
                assert record is not None
                records[event.name] = record
                progress.done(event.name, task.cost, record.seconds)
    return {task.name: records[task.name].found for task in tasks}


def jobs_for(device: str) -> int:
    """How many tasks at a time suit this machine, if nobody says."""
    if choose_device(device).type == "cuda":
        return _ON_GPU
    return min(os.cpu_count() or 1, _ON_CPU)


def finished(task: Task, folder: Path) -> Mapping[str, Any] | None:
    """What the task found earlier; None if it has still to be done."""
    record = recorded(task, folder)
    return None if record is None else record.found


def recorded(task: Task, folder: Path) -> Record | None:
    """What the task left in its folder; None if it has still to be done."""
    path = folder / DONE
    if not path.is_file():
        return None
    try:
        document = json.loads(path.read_bytes())
        identity, found, seconds = (document[key] for key in ("identity", "found", "seconds"))
        record = Record(dict(found), float(seconds))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileError(str(path), "cannot be read", fix="Remove the folder it is in.") from error
    if identity != task.identity:
        raise other_work(folder)
    return record


def other_work(folder: Path) -> FileError:
    """The refusal of a task's folder in which a task of the same name was done or begun."""
    rule = "holds other work: its data, settings, seed or device differ"
    fix = "Choose another output folder, or remove this one to do the task anew."
    return FileError(str(folder), rule, fix=fix)


def do(task: Task, folder: Path, sharing: Sharing | None = None) -> Mapping[str, Any]:
    """Do the task here and now, and leave its findings in its folder.

    Args:
        task: What to do.
        folder: Its own.
        sharing: Tasks that share the device with it.
    """
    if task.work not in WORK:
        raise SettingError("task", f"must be one of {', '.join(WORK)}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    started = time.perf_counter()
    module, _, function = WORK[task.work].partition(":")
    work: Work = getattr(import_module(module), function)
    try:
        found = dict(work(task.arguments, folder, sharing))
    except ForeignError as error:
        raise _outdated(task, folder) from error
    took = time.perf_counter() - started
    document = {"identity": task.identity, "found": found, "seconds": took}
    write_file(folder / DONE, canonical(document))
    return found


def _outdated(task: Task, folder: Path) -> FileError:
    """The refusal of checkpoints, the task's own or those it was lent, that no longer fit.

    Its arguments are the same, or the folder had been refused before.
    """
    rule = (
        "was begun, or was lent networks, by another version of etips or torch or on another device"
    )
    names = dict.fromkeys([task.name, *task.arguments.get("lent", {}).values()])
    fix = f"Remove {' and '.join(names)} in {folder.parent} to do them anew; the rest stays."
    return FileError(str(folder), rule, fix=fix)


def _check(tasks: Sequence[Task], jobs: int) -> None:
    if jobs < 1:
        raise SettingError("jobs", "must be at least 1")
    for task in tasks:
        if not task.name.replace("-", "").isalnum() or not task.name.isascii():
            raise SettingError("task", "must be named by letters, digits and hyphens")
    if len({task.name for task in tasks}) < len(tasks):
        raise SettingError("task", "must have a name of its own")


def _events(
    waiting: Mapping[str, Task],
    folder: Path,
    jobs: int,
    cluster: str | None,
    inputs: Sequence[str],
) -> tuple[int, Events]:
    """How many tasks are done at a time, and what becomes of each."""
    if cluster is not None and waiting:
        return _on_cluster(waiting, folder, cluster, inputs)
    if jobs > 1 and waiting:
        hands = min(jobs, len(waiting))
        if all(_is_for_gpu(task) for task in waiting.values()):
            return hands, have_done_here(
                list(waiting), partial(_do_named, waiting, folder), n_threads=hands
            )
        return hands, have_done(_orders(waiting), folder, n_workers=hands)
    return 1, _one_by_one(waiting.values(), folder)


def _do_named(tasks: Mapping[str, Task], folder: Path, name: str, sharing: Sharing) -> None:
    do(tasks[name], folder / name, sharing)


def _is_for_gpu(task: Task) -> bool:
    """Whether the task trains on a GPU."""
    device = task.arguments.get("device")
    return device is not None and choose_device(device).type == "cuda"


def _one_by_one(tasks: Iterable[Task], folder: Path) -> Events:
    for task in tasks:
        yield Event(task.name)
        do(task, folder / task.name)
        yield Event(task.name, done=True)


def _on_cluster(
    tasks: Mapping[str, Task], folder: Path, address: str, inputs: Sequence[str]
) -> tuple[int, Events]:
    try:
        ray = import_module("etips.tasks.cluster")
    except ImportError:
        fix = "Install it with: pip install 'etips[ray]'."
        raise SettingError("cluster", "needs ray", fix=fix) from None
    gpus = {name for name, task in tasks.items() if task.arguments.get("device") == "cuda"}
    found: tuple[int, Events] = ray.open_cluster(
        _orders(tasks), folder, address=address, inputs=inputs, gpus=gpus
    )
    return found


def _orders(tasks: Mapping[str, Task]) -> Orders:
    return {name: task.to_json() for name, task in tasks.items()}
