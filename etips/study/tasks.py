"""A study as tasks: each does one piece of work in a folder of its own, once.

A task is data, not code: the name of its work and arguments that JSON can hold. So it can be done
in this process, in another one or on another machine, and nothing is pickled on the way.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from etips.data.files import canonical, write_file
from etips.errors import FileError, SettingError
from etips.learn.fingerprint import fingerprint

DONE = "done.json"
"""What a finished task leaves: its identity, what it found, and how long it took."""

Work = Callable[[Mapping[str, Any], Path], Mapping[str, Any]]
"""Arguments and the task's own folder in, findings that JSON can hold out. Arrays go into files in
the folder; long work keeps its checkpoints there and takes them up when it is called again."""

Told = Callable[[str, float], None]
"""Told what is going on and which share of the tasks is done."""

WORK: Mapping[str, str] = {}
"""Where each kind of work is written: "module:function"."""


@dataclass(frozen=True)
class Task:
    """One piece of work.

    Args:
        name: Letters, digits and hyphens; the task's folder.
        work: Its kind, a key of `WORK`.
        arguments: All that its findings depend on.
    """

    name: str
    work: str
    arguments: Mapping[str, Any]

    @property
    def identity(self) -> str:
        """Fingerprint of the work and its arguments."""
        return fingerprint(work=self.work, arguments=json.dumps(self.arguments, sort_keys=True))


def run_tasks(
    tasks: Sequence[Task], folder: Path, *, report: Told | None = None
) -> dict[str, Mapping[str, Any]]:
    """Do every task that is not done yet; return what each found, by its name.

    Args:
        tasks: In an order in which they can be done one after the other.
        folder: Gets one folder a task; what finished tasks left there is not done again.
        report: Told how far it is.
    """
    found = {}
    for number, task in enumerate(tasks):
        if report is not None:
            report(task.name, number / len(tasks))
        own = folder / task.name
        found[task.name] = finished(task, own)
        if found[task.name] is None:
            found[task.name] = do(task, own)
    return {name: value for name, value in found.items() if value is not None}


def finished(task: Task, folder: Path) -> Mapping[str, Any] | None:
    """What the task found earlier; None if it has still to be done."""
    path = folder / DONE
    if not path.is_file():
        return None
    try:
        document = json.loads(path.read_bytes())
        identity, found = document["identity"], document["found"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileError(str(path), "cannot be read", fix="Remove the folder it is in.") from error
    if identity != task.identity:
        raise FileError(str(folder), "holds other work", fix="Choose another output folder.")
    return found if isinstance(found, Mapping) else None


def do(task: Task, folder: Path) -> Mapping[str, Any]:
    """Do the task here and now, and leave its findings in its folder."""
    if task.work not in WORK:
        raise SettingError("task", f"must be one of {', '.join(WORK)}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    started = time.perf_counter()
    module, _, function = WORK[task.work].partition(":")
    work: Work = getattr(import_module(module), function)
    found = dict(work(task.arguments, folder))
    took = time.perf_counter() - started
    document = {"identity": task.identity, "found": found, "seconds": took}
    write_file(folder / DONE, canonical(document))
    return found
