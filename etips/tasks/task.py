"""A task: one piece of work in a folder of its own, done once.

A task is data, not code: a frozen dataclass that can be written as JSON. So it can be done in this
process, in another one or on another machine, and nothing is pickled on the way.
"""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import ClassVar, Self

from etips.errors import FileError, SettingError
from etips.files.fingerprint import fingerprint
from etips.files.json_documents import canonical
from etips.files.writing import write_file
from etips.learn.training.sharing import Sharing
from etips.runs.checkpoint import ForeignError

DONE = "done.json"
"""What a finished task leaves: its identity, what it found, and how long it took."""

_BEGUN = "work.json"  # says whose checkpoints a folder holds

Json = Mapping[str, object]
"""An object that JSON can hold."""


class Work(ABC):
    """What a task does: a frozen dataclass of all that its findings depend on.

    Arrays go into files in the task's folder; long work keeps its checkpoints there and takes them
    up when it is called again. What several tasks read lies in a folder beside their own.
    """

    kind: ClassVar[str]
    """Name on record, which must not change with the class."""

    @property
    def trains_on(self) -> str | None:
        """The device asked for: auto, cpu or cuda; None if nothing is trained."""
        return None

    @property
    def lenders(self) -> Sequence[str]:
        """Tasks whose networks it begins with."""
        return ()

    @abstractmethod
    def to_json(self) -> dict[str, object]:
        """As an object that JSON can hold."""

    @classmethod
    @abstractmethod
    def from_json(cls, document: Json) -> Self:
        """The work that `to_json` wrote."""

    @abstractmethod
    def run(self, folder: Path, sharing: Sharing | None) -> Json:
        """Do it; return the findings.

        Args:
            folder: The task's own.
            sharing: Tasks that share the device with it.
        """


@dataclass(frozen=True)
class Task:
    """One piece of work.

    Args:
        name: Letters, digits and hyphens; the task's folder.
        work: What it does.
        cost: How long it takes against other tasks, roughly, to say how far they are.
    """

    name: str
    work: Work
    cost: float = 1.0

    @property
    def identity(self) -> str:
        """Fingerprint of the work."""
        arguments = json.dumps(self.work.to_json(), sort_keys=True)
        return fingerprint(work=self.work.kind, arguments=arguments)

    def to_json(self) -> str:
        """The task as text, on its way to a worker."""
        own = type(self.work)
        document = {
            "name": self.name,
            "home": f"{own.__module__}:{own.__qualname__}",
            "work": self.work.to_json(),
            "cost": self.cost,
        }
        return json.dumps(document, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The task that `to_json` wrote."""
        document = json.loads(text)
        work = _find_work(document["home"])
        return cls(document["name"], work.from_json(document["work"]), document["cost"])


@dataclass(frozen=True)
class Record:
    """What a finished task left.

    Args:
        findings: What it found.
        seconds: How long it took.
    """

    findings: Json
    seconds: float


def finished(task: Task, folder: Path) -> Json | None:
    """What the task found earlier; None if it has still to be done."""
    record = recorded(task, folder)
    return None if record is None else record.findings


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
        raise other_work(folder)
    return record


def other_work(folder: Path) -> FileError:
    """The refusal of a task's folder in which a task of the same name was done or begun."""
    rule = "holds other work: its data, settings, seed or device differ"
    fix = "Choose another output folder, or remove this one to do the task anew."
    return FileError(str(folder), rule, fix=fix)


def do(task: Task, folder: Path, sharing: Sharing | None = None) -> None:
    """Do the task here and now, and leave its findings in its folder.

    Args:
        task: What to do.
        folder: Its own.
        sharing: Tasks that share the device with it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _claim(task, folder)
    started = time.perf_counter()
    try:
        findings = dict(task.work.run(folder, sharing))
    except ForeignError as error:
        raise _outdated(task, folder) from error
    took = time.perf_counter() - started
    document = {"identity": task.identity, "found": findings, "seconds": took}
    write_file(folder / DONE, canonical(document))


def _claim(task: Task, folder: Path) -> None:
    """Refuse a folder in which other work was begun, before its checkpoints are taken up."""
    path, own = folder / _BEGUN, canonical({"work": task.identity})
    if not path.is_file():
        write_file(path, own)
    elif path.read_bytes() != own:
        raise other_work(folder)


def _find_work(home: str) -> type[Work]:
    """The class of a piece of work, by module and name; whatever else lies there is refused."""
    module, _, name = home.partition(":")
    own = vars(import_module(module)).get(name)
    if not isinstance(own, type) or not issubclass(own, Work):
        raise SettingError("task", "must be a kind of work that this version of etips has")
    return own


def _outdated(task: Task, folder: Path) -> FileError:
    """The refusal of checkpoints, the task's own or those it was lent, that no longer fit.

    Its work is the same, or the folder had been refused before.
    """
    rule = (
        "was begun, or was lent networks, by another version of etips or torch or on another device"
    )
    names = dict.fromkeys([task.name, *task.work.lenders])
    fix = f"Remove {' and '.join(names)} in {folder.parent} to do them anew; the rest stays."
    return FileError(str(folder), rule, fix=fix)
