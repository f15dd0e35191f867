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
from etips.tasks import task as tasks
from etips.tasks.task import Task, run_tasks
from etips.tasks.workers import BrokenTaskError

PATHS = list(sys.path)
plain_perform = cluster.perform


def perform(order, terms, parcel):
    """Ray sends this function as it stands here, so that workers know the odd work."""
    import sys

    sys.path[:] = PATHS
    import odd_work

    from etips.tasks import task as tasks
    from etips.tasks.cluster import perform as plain

    tasks.WORK.update(odd_work.KINDS)
    return plain(order, terms, parcel)


def other_version(order, terms, parcel):
    return plain_perform(order, json.dumps({**json.loads(terms), "versions": "etips 0"}), parcel)


def vanish(order, terms, parcel):
    raise ModuleNotFoundError("No module named 'etips'")


def attempt(folder, work, arguments, using=perform, address="local"):
    """What the caller of one task is told."""
    cluster.perform = using
    try:
        return run_tasks([Task("one", work, arguments)], folder, cluster=address)
    except (EtipsError, BrokenTaskError) as error:
        return {"kind": type(error).__name__, "line": str(error), "over": not ray.is_initialized()}


def main():
    torch.set_num_threads(1)
    base, space = Path(sys.argv[1]), json.loads(sys.argv[2])
    tasks.WORK.update(odd_work.KINDS)
    adds = [Task(f"add-{i}", "add", {"numbers": [i, 10]}) for i in range(3)]
    dead = Task("mortal", "die_outside", {"times": 1, "place": str(base / "deaths")})
    cluster.perform = perform
    told = []
    found = {
        "mixed": run_tasks(
            [*adds, dead],
            base / "mixed",
            cluster="local",
            report=lambda what, share: told.append(share),
        ),
        "told": told,
        "refused": attempt(base / "refused", "refuse", {}),
        "broken": attempt(base / "broken", "broken", {}),
        "lost": attempt(base / "lost", "die", {"times": 99}),
        "version": attempt(base / "version", "add", {"numbers": []}, other_version),
        "nobody": attempt(base / "nobody", "add", {"numbers": []}, address="127.0.0.1:1"),
        "missing": attempt(base / "missing", "add", {"numbers": []}, vanish),
    }
    cluster.perform = plain_perform
    from etips.studies.space import read_space

    search = Search(space=read_space(space, "etips"), n_trials=3, batch=2, device="cpu")
    tune(CLINIC.log(60, seed=0), base / "tuned", search, cluster="local")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
