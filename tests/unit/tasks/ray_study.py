"""A study on a local Ray cluster of two workers, in a process of its own: Ray unpickles."""

import json
import sys
from pathlib import Path

import odd_work
import ray
import torch
from small_worlds import CLINIC

from etips.errors import EtipsError
from etips.studies.tuning import Search, tune
from etips.tasks import cluster
from etips.tasks.runner import run_tasks
from etips.tasks.task import Task
from etips.tasks.workers import BrokenTaskError

PATHS = list(sys.path)
plain_perform = cluster.perform


def perform(text, terms, archive):
    """Ray sends this function as it stands here, so that workers find the odd work."""
    import sys

    sys.path[:] = PATHS
    from etips.tasks.cluster import perform as plain

    return plain(text, terms, archive)


def other_version(text, terms, archive):
    return plain_perform(text, json.dumps({**json.loads(terms), "versions": "etips 0"}), archive)


def vanish(text, terms, archive):
    raise ModuleNotFoundError("No module named 'etips'")


def attempt(folder, work, using=perform, address="local"):
    """What the caller of one task is told."""
    cluster.perform = using
    try:
        return run_tasks([Task("one", work)], folder, cluster=address)
    except (EtipsError, BrokenTaskError) as error:
        return {"kind": type(error).__name__, "line": str(error), "over": not ray.is_initialized()}


def main():
    torch.set_num_threads(1)
    base, space = Path(sys.argv[1]), json.loads(sys.argv[2])
    dead = Task("mortal", odd_work.Die(1, str(base / "deaths")))
    cluster.perform = perform
    told = []
    found = {
        "mixed": run_tasks(
            [*odd_work.additions(3), dead],
            base / "mixed",
            cluster="local",
            report=lambda what, share: told.append(share),
        ),
        "told": told,
        "refused": attempt(base / "refused", odd_work.Refuse()),
        "broken": attempt(base / "broken", odd_work.Broken()),
        "lost": attempt(base / "lost", odd_work.Die(99)),
        "version": attempt(base / "version", odd_work.Add(), other_version),
        "nobody": attempt(base / "nobody", odd_work.Add(), address="127.0.0.1:1"),
        "missing": attempt(base / "missing", odd_work.Add(), vanish),
    }
    cluster.perform = plain_perform
    from etips.studies.space import read_space

    search = Search(space=read_space(space, "etips"), n_trials=3, batch=2, device="cpu")
    tune(CLINIC.log(60, seed=0), base / "tuned", search, cluster="local")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
