"""A bench from what was asked to its result: every world, method and seed is a task, done once."""

import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from itertools import chain, product
from pathlib import Path
from typing import Any

from etips.bench.bench_worlds import (
    BENCH_WORLDS,
    QUICK_WORLDS,
    TRIAL,
    Arena,
    BenchWorld,
    read_trial,
    require_world,
)
from etips.bench.contest import LOSSES, ContestTask, GroundTask
from etips.bench.peers import PEERS
from etips.bench.standings import Contestant, stand
from etips.errors import SettingError
from etips.learn.learners.baselines import MostFrequent, RandomPolicy
from etips.learn.learners.catalogue import METHODS
from etips.machine import cores
from etips.progress import Progress
from etips.results.bench_result import Bench, BenchEntry, Group
from etips.results.records import Record
from etips.runs.tasks import Clock, Json, LostTaskError, Task, run_tasks
from etips.studies.experiment import EVALUATOR, Settings
from etips.studies.study_data import load_array
from etips.version import __version__

TASKS = "tasks"
"""Folder of a bench's tasks, beside its results."""

_QUICK: Settings = {"hidden": 4, "n_folds": 2, "epochs": 1, "batch_size": 64}
_LOST = "its process was lost again and again: killed, or out of memory"


@dataclass(frozen=True)
class BenchPlan:
    """What a bench consists of.

    Args:
        quick: A run in minutes, whose figures say little.
        stays: Most stays that are learned from, and that judge, in a world; None for its own.
        trial: File of the stroke trial.
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
        arenas: dict[str, list[Arena]] = {}
        for world in self.worlds:
            learn, test = world.quick if self.quick else (world.learn, world.test)
            most = self.stays or max(learn, test)
            trial = ""
            if world.name == TRIAL:
                trial = str(Path(self.trial or "").resolve())
            arenas[world.name] = [
                Arena(
                    world.name,
                    min(learn, most),
                    min(test, most),
                    seed,
                    quick=self.quick,
                    trial=trial,
                    sha256=sha256 if trial else "",
                )
                for seed in range(self.seeds)
            ]
        object.__setattr__(self, "_arenas", arenas)

    def arenas(self, world: str) -> Sequence[Arena]:
        """A world's own, one a seed."""
        return self._arenas[world]

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
            for arena in chain.from_iterable(self._arenas.values())
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
            for arena, own in product(chain.from_iterable(self._arenas.values()), self.contestants)
        ]

    def settings_of(self, method: str) -> Settings:
        """What a method is set to: its defaults, but in a quick run."""
        if not self.quick or method not in METHODS:
            return {}
        known = METHODS[method].parameters
        short = _QUICK if "training" in known else {}
        return {**short, **({"strengths": [0.5]} if "strengths" in known else {})}

    @property
    def lead(self) -> str:
        """What a reader must know before the figures."""
        if self.quick:
            size = "QUICK RUN: some hundred stays and one epoch; its figures say nothing of a "
            size += "method. "
        elif self.stays is not None:
            size = f"REDUCED RUN: at most {self.stays:,} stays to learn from and to judge by. "
        else:
            size = "Full size. "
        seeds = "one seed" if self.seeds == 1 else f"{self.seeds} seeds"
        return (
            f"{size}{len(self.contestants)} methods in {len(self.worlds)} worlds, {seeds} each, "
            "every method with its defaults. The estimates do not see the truth that they are held "
            "against."
        )


def choose_worlds(
    names: Sequence[str] | None, trial: Path | None, *, quick: bool = False
) -> list[BenchWorld]:
    """The worlds asked for; without names all, the trial where its file is given."""
    if names is None:
        wanted = set(QUICK_WORLDS if quick else BENCH_WORLDS) - {TRIAL}
        wanted |= {TRIAL} if trial is not None else set()
        return [own for own in BENCH_WORLDS.values() if own.name in wanted]
    chosen = [require_world(name) for name in dict.fromkeys(names)]
    if trial is None and any(own.name == TRIAL for own in chosen):
        fix = "Give it with --trial IST.csv."
        raise SettingError("--worlds", f"{TRIAL} needs its file, which is not shipped", fix=fix)
    return chosen


def all_contestants() -> dict[str, Contestant]:
    """Every method and every peer by name, whether installed or not."""
    known = {}
    for name, method in METHODS.items():
        simple = method.imitates or issubclass(method.learner, MostFrequent | RandomPolicy)
        group: Group = "simple" if simple else "told" if method.known_propensities else "ours"
        cost = 0.2 + 2.0 * len(method.stages)
        known[name] = Contestant(name, method.label, method.sentence, group, cost)
    for name, peer in PEERS.items():
        known[name] = Contestant(name, peer.label, peer.sentence, "peer", 2.0)
    return known


def choose_contestants(names: Sequence[str] | None, *, peers: bool) -> list[Contestant]:
    """Those asked for, in the order of the catalogue; without names all methods."""
    known = all_contestants()
    if unknown := [name for name in names or () if name not in known]:
        rule = f"must be some of {', '.join(known)}"
        raise SettingError("--methods", f"{rule}; {len(unknown)} are not")
    lacking = [name for name in names or () if name in PEERS and not PEERS[name].installed]
    if lacking:
        fix = "Install the peers with: pip install 'etips[peers]'."
        raise SettingError("--methods", f"{lacking[0]} is not installed", fix=fix)
    wanted = set(METHODS) if names is None else set(names)
    if peers:
        wanted |= {name for name, own in PEERS.items() if own.installed}
    return [own for name, own in known.items() if name in wanted]


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
        lead=plan.lead,
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
    """Name of the task that makes what all methods share."""
    return f"ground-{arena.name}"


def contest_name(arena: Arena, method: str) -> str:
    """Name of a method's task."""
    return f"{arena.name}-{method}"
