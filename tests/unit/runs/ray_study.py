"""A study on a local Ray cluster of two workers, in a process of its own: Ray unpickles."""

import json
import sys
from pathlib import Path

import odd_work
import ray
import torch
from small_worlds import CLINIC

from etips.errors import EtipsError
from etips.runs import cluster
from etips.runs.tasks import BrokenTaskError, Clock, Task, run_tasks
from etips.studies.tuning import Search, tune

versions = cluster._versions


def attempt(folder, work, address="local"):
    """What the caller of one task is told."""
    try:
        return run_tasks([Task("one", work)], folder, cluster=address)
    except (EtipsError, BrokenTaskError) as error:
        return {"kind": type(error).__name__, "line": str(error), "over": not ray.is_initialized()}


def main():
    torch.set_num_threads(1)
    base, space = Path(sys.argv[1]), json.loads(sys.argv[2])
    dead = Task("mortal", odd_work.Die(1, str(base / "deaths")))
    told = []
    found = {
        "mixed": run_tasks(
            [*odd_work.additions(3), dead],
            base / "mixed",
            cluster="local",
            clock=Clock(4.0, lambda what, share: told.append(share)),
        ),
        "told": told,
        "refused": attempt(base / "refused", odd_work.Refuse()),
        "broken": attempt(base / "broken", odd_work.Broken()),
        "lost": attempt(base / "lost", odd_work.Die(99)),
        "nobody": attempt(base / "nobody", odd_work.Add(), address="127.0.0.1:1"),
    }
    cluster._versions = lambda: "etips 0"  # here, and not on the workers
    found["version"] = attempt(base / "version", odd_work.Add())
    cluster._versions = versions
    from etips.studies.space import read_space

    search = Search("etips", read_space(space, "etips"), n_trials=3, batch=2, device="cpu")
    tune(CLINIC.log(60, seed=0), base / "tuned", search, cluster="local")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
