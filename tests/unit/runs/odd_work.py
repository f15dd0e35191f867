"""Work for tests: some that is done, some that refuses, breaks, dies or sleeps.

Run as a script it is a study of two long naps, for a test to interrupt.
"""

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from etips.errors import DataError
from etips.files.writing import write_file
from etips.runs.tasks import Task, run_tasks

SECRET = "Jane Doe"


@dataclass(frozen=True)
class Add:
    numbers: tuple = ()

    def run(self, folder):
        (folder / "more").mkdir(exist_ok=True)
        write_file(folder / "more" / "numbers.txt", str(list(self.numbers)).encode())
        return {
            "sum": sum(self.numbers),
            "process": os.getpid(),
            "threads": torch.get_num_threads(),
        }


@dataclass(frozen=True)
class Refuse:
    def run(self, folder):
        raise DataError("dose", "must not be negative", rows=[3], total=9, fix="Mend it.")


@dataclass(frozen=True)
class Broken:
    def run(self, folder):
        return {SECRET: 1}[f"no {SECRET}"]


@dataclass(frozen=True)
class Die:
    """Killed so many times; what it counts by is a file, as a checkpoint would be.

    With a `place` it counts outside its folder, which is lost with the worker on a cluster.
    """

    times: int
    place: str = ""

    def run(self, folder):
        path = Path(self.place) if self.place else folder / "deaths.txt"
        deaths = int(path.read_bytes()) if path.exists() else 0
        if deaths < self.times:
            write_file(path, str(deaths + 1).encode())
            os.kill(os.getpid(), signal.SIGKILL)
        return {"deaths": deaths}


@dataclass(frozen=True)
class Nap:
    seconds: float

    def run(self, folder):
        write_file(folder / "asleep.txt", str(os.getpid()).encode())
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            time.sleep(0.001)
        return {}


@dataclass(frozen=True)
class Noisy:
    def run(self, folder):
        print("to standard output")
        os.write(1, b"and below it\n")
        return {"said": True}


def additions(count=3):
    return [Task(f"add-{i}", Add((i, 10))) for i in range(count)]


if __name__ == "__main__":
    import odd_work  # the works must be found by that name

    run_tasks([Task(f"nap-{i}", odd_work.Nap(60)) for i in range(2)], Path(sys.argv[1]), jobs=2)
