"""Work for tests: some that is done, some that refuses, breaks, dies or sleeps.

Run as a script it is a worker, or a study of its own for a test to interrupt.
"""

import os
import signal
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

import torch

from etips.errors import DataError
from etips.files.writing import write_file
from etips.tasks import runner, worker, workers
from etips.tasks.task import Task, Work

SECRET = "Jane Doe"


class Odd(Work):
    """What the works here have in common: their fields are their JSON."""

    kind: ClassVar[str] = "odd"

    def to_json(self):
        return asdict(self)

    @classmethod
    def from_json(cls, document):
        return cls(**{name: tuple(v) if isinstance(v, list) else v for name, v in document.items()})


@dataclass(frozen=True)
class Add(Odd):
    kind: ClassVar[str] = "add"

    numbers: tuple = ()
    device: str | None = None
    lent: str = ""

    @property
    def trains_on(self):
        return self.device

    @property
    def lenders(self):
        return [self.lent] if self.lent else []

    def run(self, folder, sharing):
        (folder / "more").mkdir(exist_ok=True)
        write_file(folder / "more" / "numbers.txt", str(list(self.numbers)).encode())
        threads = torch.get_num_threads()
        return {"sum": sum(self.numbers), "process": os.getpid(), "threads": threads}


@dataclass(frozen=True)
class Share(Odd):
    number: int = 0

    def run(self, folder, sharing):
        return {"sharers": None if sharing is None else sharing.n_trainings}


@dataclass(frozen=True)
class Refuse(Odd):
    def run(self, folder, sharing):
        raise DataError("dose", "must not be negative", rows=[3], total=9, fix="Mend it.")


@dataclass(frozen=True)
class Broken(Odd):
    def run(self, folder, sharing):
        return {SECRET: 1}[f"no {SECRET}"]


@dataclass(frozen=True)
class Die(Odd):
    """Killed so many times; what it counts by is a file, as a checkpoint would be.

    With a `place` it counts outside its folder, which is lost with the worker on a cluster.
    """

    times: int
    place: str = ""

    def run(self, folder, sharing):
        path = Path(self.place) if self.place else folder / "deaths.txt"
        deaths = int(path.read_bytes()) if path.exists() else 0
        if deaths < self.times:
            write_file(path, str(deaths + 1).encode())
            os.kill(os.getpid(), signal.SIGKILL)
        return {"deaths": deaths}


@dataclass(frozen=True)
class Nap(Odd):
    seconds: float

    def run(self, folder, sharing):
        write_file(folder / "asleep.txt", str(os.getpid()).encode())
        time.sleep(self.seconds)
        return {}


@dataclass(frozen=True)
class Noisy(Odd):
    def run(self, folder, sharing):
        print("to standard output")
        os.write(1, b"and below it\n")
        return {"said": True}


def additions(count=3):
    return [Task(f"add-{i}", Add((i, 10))) for i in range(count)]


if __name__ == "__main__":
    if sys.argv[1:]:
        import odd_work  # the works must be found by that name

        naps = [Task(f"nap-{i}", odd_work.Nap(60)) for i in range(2)]
        workers.COMMAND = (sys.executable, __file__)
        runner.run_tasks(naps, Path(sys.argv[1]), jobs=2)
    worker.main()
