"""`etips fit` with its defaults, an older revision beside this one, in turns on the same files.

    python -m benchmarks.default_fit                  # full size: an hour and more, most of it old
    python -m benchmarks.default_fit --quick          # small: a few minutes
    python -m benchmarks.default_fit --tasks icu --seeds 0 1 2

Both get the same long tables, written by the worlds, as a user would hand them over. Printed of
each fit: wall and processor seconds, peak memory, the greedy policy's true risk (its likeliest
action everywhere) and the risk of the policy as it is followed, on stays that nobody learned from.
On a machine with other work on it processor seconds are what counts, best with `--threads 1`.
"""

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from etips.data.splitting import split
from etips.data.storage import write_table
from etips.data.trajectories import Trajectories
from etips.worlds import icu_sepsis
from etips.worlds.clinic import Clinic

HERE = Path(__file__).parents[1]
OLD = "ace4296"
"""Before candidates raced and cores were shared out: what all else is measured against."""

JUDGE = """
import json, sys
import numpy as np
import etips
policy, data = etips.load(sys.argv[1]), etips.load(sys.argv[2])
answer = policy.answer(data)
taken, truth = policy.deploy(answer), data.true_logging()
followed = np.where(taken.abstained[:, None], truth, taken.probabilities)
greedy = np.eye(data.n_actions)[answer.probabilities.argmax(axis=1)]
print(json.dumps([data.true_risk(greedy), data.true_risk(followed)]))
"""
"""Asked of each revision about its own run: files of a run may change between them."""


@dataclass(frozen=True)
class Task:
    """Something to fit.

    Args:
        name: On the command line.
        size: Stays at full size.
        quick: Stays of a short trial.
        suffix: Of the table's file.
        options: Of `etips fit` that say what the columns are.
    """

    name: str
    size: int
    quick: int
    suffix: str
    options: tuple[str, ...]


_COLUMNS = ("--stay", "stay", "--action", "action", "--loss", "loss")
_STEPS = (*_COLUMNS, "--step", "step")
TASKS = {
    "icu": Task("icu", 16_000, 1_500, "parquet", (*_STEPS, "--lag", "0", "--n-actions", "25")),
    "icu-lag1": Task("icu-lag1", 16_000, 1_500, "parquet", (*_STEPS, "--n-actions", "25")),
    "digits": Task("digits", 27_000, 1_200, "parquet", (*_STEPS, "--lag", "0")),
    "table": Task("table", 2_000, 600, "csv", (*_COLUMNS, "--step", "step", "--lag", "0")),
}


def make_data(task: Task, n: int, seed: int) -> tuple[Trajectories, Trajectories]:
    """Stays to learn from, and others to be judged on."""
    if task.name == "digits":
        from etips.worlds import digits  # torch, for the logging policy

        logged = digits.rows(n=n + max(n // 5, 200), seed=seed)
        learn, judge = split(logged, test=(logged.n_stays - n) / logged.n_stays, seed=seed)
    elif task.name == "table":
        clinic = Clinic(decisions_per_stay=1, n_features=8, n_contexts=2_000)
        learn, judge = clinic.log(n, seed=seed), clinic.log(5_000, seed=10_000 + seed)
    else:
        lag = int(task.name == "icu-lag1")
        learn = icu_sepsis.simulate(n, seed=seed, lag=lag)
        judge = icu_sepsis.simulate(5_000, seed=10_000 + seed, lag=lag)
    return replace(learn, propensity=None, truth=None), judge


def write_data(folder: Path, task: Task, n: int, seed: int) -> tuple[Path, Path]:
    """A long table to learn from and a folder to judge by; made once, and found again."""
    table = folder / f"{task.name}-{n}-{seed}.{task.suffix}"
    truth = folder / f"{task.name}-{n}-{seed}-truth"
    if not (table.exists() and truth.exists()):
        learn, judge = make_data(task, n, seed)
        judge.save(truth, overwrite=True)
        write_table(learn, table)
    return table, truth


@dataclass(frozen=True)
class Taken:
    """What a fit took, and what it came to."""

    wall: float
    processor: float
    peak: float
    greedy: float
    followed: float


@dataclass(frozen=True)
class Checkout:
    """A revision of the package, and how many threads it may use.

    Args:
        name: What it is called in print.
        root: Where it is.
        threads: Of every process; as many as it takes by itself if None.
        cores: That it may run on; all if None.
    """

    name: str
    root: Path
    threads: int | None
    cores: int | None

    def run(self, *arguments: str) -> tuple[float, float, float, str]:
        """Wall and processor seconds, peak MiB, and what a Python process of it printed."""
        own = {name: v for name, v in os.environ.items() if not name.startswith("OMP_")}
        own["PYTHONPATH"] = str(self.root)
        if self.threads is not None:
            own["OMP_NUM_THREADS"] = str(self.threads)
        with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as errors:
            began = time.perf_counter()
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=self.root,
                env=own,
                stdout=said,
                stderr=errors,
                preexec_fn=self._keep_to_cores,
            )
            _, status, used = os.wait4(process.pid, 0)
            wall = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                errors.seek(0)
                raise SystemExit(f"{self.name}: {errors.read().decode()[-2000:]}")
            said.seek(0)
            text = said.read().decode()
        return wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, text

    def _keep_to_cores(self) -> None:
        if self.cores is not None:
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: self.cores])

    def fit(self, table: Path, truth: Path, options: Sequence[str], *, seed: int) -> Taken:
        """One fit with the defaults, and the truth about it."""
        with tempfile.TemporaryDirectory() as place:
            run = str(Path(place) / "run")
            command = ["-m", "etips", "fit", str(table), "--out", run, "--seed", str(seed)]
            wall, processor, peak, _ = self.run(*command, *options)
            said = self.run("-c", JUDGE, run, str(truth))[3]
        return Taken(wall, processor, peak, *json.loads(said))


@contextmanager
def unpacked(revision: str) -> Iterator[Path]:
    """The files of a revision, in a folder of their own that goes away."""
    with tempfile.TemporaryDirectory() as place:
        packed = subprocess.run(
            ["git", "archive", revision], cwd=HERE, check=True, stdout=subprocess.PIPE
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(place, filter="data")
        yield Path(place)


def compare(
    checkouts: Sequence[Checkout], task: Task, n: int, folder: Path, *, seeds: Sequence[int]
) -> None:
    """Fit by each revision in turn, print every fit, then medians and ratios."""
    print(f"\n{task.name}, {n:,} stays")
    print(f"  {'':6}{'seed':>5}{'wall s':>9}{'CPU s':>9}{'MiB':>7}{'greedy':>10}{'followed':>10}")
    each: dict[str, list[Taken]] = {own.name: [] for own in checkouts}
    for seed in seeds:
        table, truth = write_data(folder, task, n, seed)
        for own in checkouts:
            one = own.fit(table, truth, task.options, seed=seed)
            each[own.name].append(one)
            print(
                f"  {own.name:6}{seed:5}{one.wall:9.1f}{one.processor:9.1f}{one.peak:7.0f}"
                f"{one.greedy:10.5f}{one.followed:10.5f}",
                flush=True,
            )
    if len(checkouts) == 2:
        _print_ratios(*each.values())


def _print_ratios(old: Sequence[Taken], new: Sequence[Taken]) -> None:
    for name in ("wall", "processor", "peak"):
        ratios = [getattr(a, name) / getattr(b, name) for a, b in zip(old, new, strict=True)]
        middle = statistics.median(ratios)
        print(f"  {name}: old over new {middle:.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    for name in ("greedy", "followed"):
        gaps = [getattr(b, name) - getattr(a, name) for a, b in zip(old, new, strict=True)]
        error = statistics.stdev(gaps) / len(gaps) ** 0.5 if len(gaps) > 1 else float("nan")
        print(f"  {name} true risk: new less old {statistics.mean(gaps):+.5f} +- {error:.5f}")


def main() -> None:
    """Everything."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--old", default=OLD, help="revision to compare with; 'none' for nothing")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=["icu", "digits", "table"])
    parser.add_argument("--stays", type=int, help="in place of each task's own size")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--threads", type=int, help="of every process; its own choice if left out")
    parser.add_argument("--cores", type=int, help="that a process may run on; all if left out")
    parser.add_argument("--data", type=Path, help="folder where the tables are kept, to be reused")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = (options.data or Path(place)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        with unpacked(options.old if options.old != "none" else "HEAD") as root:
            old = Checkout("old", root, options.threads, options.cores)
            new = Checkout("new", HERE, options.threads, options.cores)
            for name in options.tasks:
                task = TASKS[name]
                n = options.stays or (task.quick if options.quick else task.size)
                sides = [new] if options.old == "none" else [old, new]
                compare(sides, task, n, folder, seeds=options.seeds)


if __name__ == "__main__":
    main()
