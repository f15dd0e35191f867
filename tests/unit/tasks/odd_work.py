"""Work for tests: some that is done, some that refuses, breaks, dies or sleeps.

Run as a script it is a worker that knows this work beside the package's own.
"""

import os
import signal
import sys
import time
from pathlib import Path

import torch

from etips.errors import DataError
from etips.files.writing import write_file
from etips.tasks import task as tasks
from etips.tasks import worker, workers

NAMES = ("add", "refuse", "broken", "die", "die_outside", "nap", "noisy", "share")
KINDS = {name: f"odd_work:{name}" for name in NAMES}
SECRET = "Jane Doe"


def add(arguments, folder, sharing=None):
    (folder / "more").mkdir(exist_ok=True)
    write_file(folder / "more" / "numbers.txt", str(arguments["numbers"]).encode())
    return {
        "sum": sum(arguments["numbers"]),
        "process": os.getpid(),
        "threads": torch.get_num_threads(),
    }


def share(arguments, folder, sharing=None):
    return {"sharers": None if sharing is None else sharing.n_trainings}


def refuse(arguments, folder, sharing=None):
    raise DataError("dose", "must not be negative", rows=[3], total=9, fix="Mend it.")


def broken(arguments, folder, sharing=None):
    return {SECRET: 1}[f"no {SECRET}"]


def die(arguments, folder, sharing=None):
    """Killed so many times; what it counts by is a file, as a checkpoint would be."""
    return _die(arguments, folder / "deaths.txt")


def die_outside(arguments, folder, sharing=None):
    """The same, counted outside its folder, which is lost with the worker on a cluster."""
    return _die(arguments, Path(arguments["place"]))


def _die(arguments, path):
    deaths = int(path.read_bytes()) if path.exists() else 0
    if deaths < arguments["times"]:
        write_file(path, str(deaths + 1).encode())
        os.kill(os.getpid(), signal.SIGKILL)
    return {"deaths": deaths}


def nap(arguments, folder, sharing=None):
    write_file(folder / "asleep.txt", str(os.getpid()).encode())
    time.sleep(arguments["seconds"])
    return {}


def noisy(arguments, folder, sharing=None):
    print("to standard output")
    os.write(1, b"and below it\n")
    return {"said": True}


if __name__ == "__main__":
    tasks.WORK.update(KINDS)
    if sys.argv[1:]:  # a study of its own, for a test to interrupt
        naps = [tasks.Task(f"nap-{i}", "nap", {"seconds": 60}) for i in range(2)]
        workers.COMMAND = (sys.executable, __file__)
        tasks.run_tasks(naps, Path(sys.argv[1]), jobs=2)
    worker.main()
