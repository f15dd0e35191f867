"""Tasks done, each once, by whoever is there: this process, others, threads on a GPU, a cluster."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from importlib import import_module
from pathlib import Path

from etips.errors import SettingError
from etips.files.lock import Lock
from etips.learn.fitting.prepare import choose_device
from etips.learn.training.sharing import Sharing
from etips.progress import Progress
from etips.tasks.streams import run_in_threads
from etips.tasks.task import Json, Record, Task, do, recorded
from etips.tasks.time_left import TaskProgress
from etips.tasks.workers import Event, Events, TaskTexts, run_in_processes

_ON_CPU, _ON_GPU = 4, 6  # tasks at a time: each holds the data, and more hardly help a GPU


def run_tasks(
    tasks: Sequence[Task],
    folder: Path,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    inputs: Sequence[str] = (),
    later: float = 0,
    report: Progress | None = None,
) -> dict[str, Json]:
    """Do every task that is not done yet; return what each found, by its name.

    With one job the tasks are done one after the other in this process, else each by one of several
    processes, or by the machines of a Ray cluster. Tasks that train on a GPU are done by threads of
    this process, which share it, where processes would take turns. A task whose worker is lost is
    done again, a few times. A refusal ends the run; what other tasks have finished stays, and is
    not done again.

    Args:
        tasks: In an order in which they can be done one after the other; lenders among them only
            as `join_waves` allows.
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
            records |= _follow(events, waiting, folder, progress)
    return {task.name: records[task.name].findings for task in tasks}


def join_waves(waves: Sequence[Sequence[Task]], *, cluster: str | None) -> list[list[Task]]:
    """Waves of tasks as `run_tasks` may be given them: in one go, where a task waits for lenders.

    Threads that share a GPU and machines of a cluster take tasks wave by wave.

    Args:
        waves: Each needs what those before it left.
        cluster: Address of a Ray cluster that does them, if one does.
    """
    joined = [task for wave in waves for task in wave]
    if cluster is not None or any(_is_for_gpu(task) for task in joined):
        return [list(wave) for wave in waves]
    return [joined] if joined else []


def jobs_for(device: str) -> int:
    """How many tasks at a time suit this machine, if nobody says."""
    if choose_device(device).type == "cuda":
        return _ON_GPU
    return min(os.cpu_count() or 1, _ON_CPU)


def _follow(
    events: Events, waiting: Mapping[str, Task], folder: Path, progress: TaskProgress
) -> dict[str, Record]:
    """Tell what happens to the tasks; return what they left."""
    records: dict[str, Record] = {}
    for event in events:
        if not event.done:
            progress.began(event.name)
            continue
        task = waiting[event.name]
        record = recorded(task, folder / event.name)
        assert record is not None
        records[event.name] = record
        progress.done(event.name, task.cost, record.seconds)
    return records


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
            return hands, run_in_threads(
                list(waiting), partial(_do_named, waiting, folder), n_threads=hands
            )
        lenders = {name: task.work.lenders for name, task in waiting.items()}
        return hands, run_in_processes(_texts(waiting), folder, n_workers=hands, lenders=lenders)
    return 1, _one_by_one(waiting.values(), folder)


def _do_named(tasks: Mapping[str, Task], folder: Path, name: str, sharing: Sharing) -> None:
    do(tasks[name], folder / name, sharing)


def _is_for_gpu(task: Task) -> bool:
    """Whether the task trains on a GPU."""
    device = task.work.trains_on
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
    gpus = {name for name, task in tasks.items() if task.work.trains_on == "cuda"}
    opened: tuple[int, Events] = ray.open_cluster(
        _texts(tasks), folder, address=address, inputs=inputs, gpus=gpus
    )
    return opened


def _texts(tasks: Mapping[str, Task]) -> TaskTexts:
    return {name: task.to_json() for name, task in tasks.items()}
