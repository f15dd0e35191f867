"""A bench from what was asked to its result: every world, method and seed is a task, done once."""

import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from typing import Any

from etips.bench.bench_worlds import (
    BENCH_WORLDS,
    QUICK_WORLDS,
    TRIAL,
    Arena,
    BenchWorld,
    require_world,
)
from etips.bench.contest import LOSSES, ContestTask, GroundTask
from etips.bench.contestants import PEERS, Contestant
from etips.bench.standings import stand
from etips.bench.stroke_trial import read_trial
from etips.errors import SettingError
from etips.learn.learners.catalogue import METHODS
from etips.machine import cores
from etips.progress import Progress
from etips.results.bench_result import Bench, BenchEntry
from etips.results.records import Record
from etips.runs.tasks import Clock, Json, LostTaskError, Task, run_tasks
from etips.studies.experiment import EVALUATOR, Settings
from etips.studies.study_data import load_array
from etips.version import __version__

TASKS = "tasks"
"""Folder of a bench's tasks, beside its results."""

_QUICK: Settings = {"hidden": 4, "n_folds": 2, "epochs": 1, "batch_size": 64}
_QUICK_GRID = {"strengths": [0.5]}
_LOST = "its process was lost again and again: killed, or out of memory"


@dataclass(frozen=True)
class BenchPlan:
    """What a bench consists of.

    Args:
        quick: A run in minutes, whose figures say little.
        stays: Most stays that are learned from, and that judge, in a world; None for its own.
    """

    worlds: Sequence[BenchWorld]
    contestants: Sequence[Contestant]
    seeds: int = 1
    quick: bool = False
    stays: int | None = None
    trial: Path | None = None
    device: str = "cpu"
    _arenas: Mapping[str, Sequence[Arena]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise SettingError("--seeds", "must be at least 1")
        if self.stays is not None and self.stays < 50:
            raise SettingError("--stays", "must be at least 50")
        sha256 = read_trial(self.trial)[1] if self.trial is not None else ""
        arenas = {world.name: self._seeded(world, sha256) for world in self.worlds}
        object.__setattr__(self, "_arenas", arenas)

    def arenas(self, world: str) -> Sequence[Arena]:
        """A world's own, one a seed."""
        return self._arenas[world]

    def _seeded(self, world: BenchWorld, sha256: str) -> list[Arena]:
        most = self.stays or max(world.learn, world.test)
        learn, test = world.quick if self.quick else (world.learn, world.test)
        learn, test = min(learn, most), min(test, most)
        more: Any = {"quick": self.quick}
        if world.name == TRIAL:
            more |= {"trial": str(Path(self.trial or "").resolve()), "sha256": sha256}
        return [Arena(world.name, learn, test, seed, **more) for seed in range(self.seeds)]

    def grounds(self) -> list[Task]:
        """The tasks that come first."""
        settings = self.settings_of(EVALUATOR)
        return [
            Task(
                ground_name(arena),
                GroundTask(arena, settings, self.device),
                3.0 * arena.n_learn / 1000,
                self.device,
            )
            for arenas in self._arenas.values()
            for arena in arenas
        ]

    def contests(self) -> list[Task]:
        """Every method in every world at every seed; those of a world follow one another."""
        return [
            Task(
                contest_name(arena, own.name),
                ContestTask(
                    arena,
                    own.name,
                    self.settings_of(own.name),
                    ground_name(arena),
                    self.device,
                    PEERS[own.name].version if own.name in PEERS else "",
                ),
                own.cost * arena.n_learn / 1000,
                "cpu" if own.name in PEERS else self.device,
            )
            for arenas in self._arenas.values()
            for arena in arenas
            for own in self.contestants
        ]

    def settings_of(self, method: str) -> Settings:
        """What a method is set to: its defaults, but in a quick run."""
        if not self.quick or method not in METHODS:
            return {}
        known = METHODS[method].parameters
        short: dict[str, object] = dict(_QUICK) if "training" in known else {}
        return {**short, **{key: grid for key, grid in _QUICK_GRID.items() if key in known}}


def choose_worlds(
    names: Sequence[str] | None, trial: Path | None, *, quick: bool = False
) -> list[BenchWorld]:
    """The worlds asked for; all if nobody says, the trial where its file is given."""
    if names is None:
        known = [own for own in BENCH_WORLDS.values() if not quick or own.name in QUICK_WORLDS]
        wanted = {own.name for own in known} | ({TRIAL} if trial is not None else set())
        wanted -= {TRIAL} if trial is None else set()
        return [own for own in BENCH_WORLDS.values() if own.name in wanted]
    chosen = [require_world(name) for name in dict.fromkeys(names)]
    if trial is None and any(own.name == TRIAL for own in chosen):
        fix = "Give it with --trial IST.csv."
        raise SettingError("--worlds", f"{TRIAL} needs its file, which is not shipped", fix=fix)
    return chosen


def run_bench(
    plan: BenchPlan, folder: Path, *, jobs: int = 1, report: Progress | None = None
) -> Bench:
    """Do what is left of a bench and return its result.

    Interrupted, the same call goes on where it stopped; finished tasks are not done again.
    """
    tasks, grounds, contests = folder / TASKS, plan.grounds(), plan.contests()
    total = sum(task.cost for task in [*grounds, *contests])
    found = run_tasks(grounds, tasks, jobs=jobs, clock=Clock(total, report))
    lost: dict[str, Json] = {}
    while True:
        clock = Clock(total, report)
        clock.done_before(sum(task.cost for task in grounds), 0.0)
        left = [task for task in contests if task.name not in lost]
        try:
            found |= run_tasks(left, tasks, jobs=jobs, clock=clock)
        except LostTaskError as error:  # a method that is lost again and again is given up
            lost[error.task] = {"failed": _LOST}
        else:
            return summarize_bench(plan, tasks, {**found, **lost})


def summarize_bench(plan: BenchPlan, tasks: Path, found: Mapping[str, Json]) -> Bench:
    """The result of tasks that are done."""
    entries, standings = [], []
    for world in plan.worlds:
        arenas = plan.arenas(world.name)
        grounds = [found[ground_name(arena)] for arena in arenas]
        own, losses = [], {}
        for arena, one in product(arenas, plan.contestants):
            task = contest_name(arena, one.name)
            values: Any = found[task]
            own.append(BenchEntry(arena.world, one.name, arena.seed, **values))
            if own[-1].risk is not None:
                losses[one.name, arena.seed] = load_array(tasks / task / LOSSES)
        standings.append(stand(arenas, grounds, own, losses, plan.contestants))
        entries += own
    return Bench(
        lead=lead(plan),
        quick=plan.quick,
        seeds=plan.seeds,
        labels={own.name: own.label for own in plan.contestants},
        sentences={own.name: own.sentence for own in plan.contestants},
        standings=tuple(standings),
        entries=tuple(entries),
        machine=describe_machine(),
        absent=tuple(name for name, own in PEERS.items() if not own.installed),
        seconds=sum(entry.processor or 0.0 for entry in entries),
    )


def lead(plan: BenchPlan) -> str:
    """What a reader must know before the figures."""
    if plan.quick:
        size = "QUICK RUN: some hundred stays and one epoch; its figures say nothing of a method. "
    elif plan.stays is not None:
        size = f"REDUCED RUN: at most {plan.stays:,} stays to learn from and to judge by. "
    else:
        size = "Full size. "
    seeds = "one seed" if plan.seeds == 1 else f"{plan.seeds} seeds"
    return (
        f"{size}{len(plan.contestants)} methods in {len(plan.worlds)} worlds, {seeds} each, every "
        "method with its defaults. The estimates do not see the truth that they are held against."
    )


def describe_machine() -> Record:
    """Where this runs, and with which versions."""
    versions = {}
    for name in ["torch", "numpy", "scikit-learn", *sorted({p.package for p in PEERS.values()})]:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    processor = ""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        processor = next(iter(names), "")
    return {
        "processor": processor or platform.processor() or platform.machine(),
        "cores": cores(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "etips": __version__,
        **versions,
    }


def ground_name(arena: Arena) -> str:
    """Of a ground's task."""
    return f"ground-{arena.name}"


def contest_name(arena: Arena, method: str) -> str:
    """Of a method's task."""
    return f"{arena.name}-{method}"
