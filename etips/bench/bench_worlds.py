"""The worlds of the bench: one entry each, with its sizes; and one of them opened for a seed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from etips.bench.stroke_trial import read_trial
from etips.data.splitting import split
from etips.data.trajectories import Trajectories
from etips.errors import FileError, SettingError
from etips.studies.study_data import SimulatedData
from etips.worlds.classifier import StoppedLstm
from etips.worlds.clinic import Clinic
from etips.worlds.deployment import HistoryPolicy
from etips.worlds.icu_sepsis import deploy_policy
from etips.worlds.simulation import Simulation
from etips.worlds.world_registry import WORLDS

Kind = Literal["labelled", "icu-sepsis", "clinic", "trial"]
Measure = Literal["accuracy", "risk", "trial"]

TRIAL = "stroke-trial"
"""The one world that needs a file, and whose truth is the trial's own odds."""

DEPLOYED = 5_000
"""Stays that a policy treats from admission to their end, where a world can be walked through."""

_TEST_SEED = 500_000  # stays that judge come from another seed than those that teach
_QUICK_LOGGING: Mapping[str, float] = {"hidden": 8, "target": 0.5, "tolerance": 0.49}


@dataclass(frozen=True)
class BenchWorld:
    """A world with what is asked of it.

    Args:
        name: On the command line.
        learn: Stays that are learned from.
        test: Stays that judge.
        quick: Both in a quick run.
        world: Of labelled samples: name in the registry of worlds.
        clinic: Of the clinic: its settings.
    """

    name: str
    sentence: str
    kind: Kind
    learn: int
    test: int
    quick: tuple[int, int] = (60, 60)
    world: str = ""
    lag: int = 0
    clinic: Mapping[str, float] = field(default_factory=dict)

    @property
    def measure(self) -> Measure:
        """What is told of a policy: share of right answers, true risk, or the trial's estimate."""
        return {"labelled": "accuracy", "trial": "trial"}.get(self.kind, "risk")  # type: ignore[return-value]

    @property
    def deploys(self) -> bool:
        """Whether the outcome of whole stays under a policy is known."""
        return self.kind == "icu-sepsis"


def _clinic(name: str, sentence: str, **settings: float) -> BenchWorld:
    return BenchWorld(name, sentence, "clinic", 2_000, 4_000, clinic=settings)


_WORLDS = (
    BenchWorld(
        "digits-zeros",
        "how many of a sequence of images show a zero",
        "labelled",
        9_000,
        1_000,
        world="digits-zeros",
    ),
    BenchWorld(
        "digits-rows",
        "which digit an image shows, read row by row",
        "labelled",
        63_000,
        7_000,
        world="digits-rows",
    ),
    BenchWorld(
        "icu-sepsis-lag0",
        "ICU-Sepsis, the present state visible",
        "icu-sepsis",
        20_000,
        10_000,
    ),
    BenchWorld(
        "icu-sepsis-lag1",
        "ICU-Sepsis, the present state hidden as in the paper: confounded",
        "icu-sepsis",
        20_000,
        10_000,
        lag=1,
    ),
    _clinic("clinic-little", "a clinic with little overlap between treatments", overlap=0.05),
    _clinic("clinic-usual", "a clinic with usual overlap", overlap=0.3),
    _clinic("clinic-random", "a clinic that treats at random", overlap=1.0),
    _clinic(
        "clinic-hidden",
        "a clinic whose clinicians see what the log does not (Gamma 3)",
        overlap=0.3,
        confounding=3.0,
    ),
    BenchWorld(
        TRIAL,
        "the International Stroke Trial: six arms at known odds",
        "trial",
        9_717,
        9_718,
        quick=(300, 300),
    ),
)

BENCH_WORLDS: Mapping[str, BenchWorld] = {world.name: world for world in _WORLDS}
"""Every world of the bench by its name, in the order of the page."""


QUICK_WORLDS = ("digits-rows", "icu-sepsis-lag1", "clinic-usual", "clinic-hidden")
"""Of a quick run, if nobody says: one of each kind."""


def require_world(name: str) -> BenchWorld:
    """The world of this name; any other is refused."""
    if name not in BENCH_WORLDS:
        raise SettingError("--worlds", f"must be some of {', '.join(BENCH_WORLDS)}")
    return BENCH_WORLDS[name]


@dataclass(frozen=True, eq=False)
class Parts:
    """Whom methods learn from, and who judges them; both with all that the world knows."""

    learn: Trajectories
    test: Trajectories


@dataclass(frozen=True)
class Arena:
    """One world at one seed and size: what every method meets there is the same.

    Args:
        world: Name of a world of the bench.
        n_learn: Stays that are learned from.
        n_test: Stays that judge.
        seed: Of the world and of the learners in it.
        quick: Whether the logging policy of labelled samples is stopped at once.
        sha256: Of that file.
    """

    world: str
    n_learn: int
    n_test: int
    seed: int
    quick: bool = False
    trial: str = ""
    sha256: str = ""

    @property
    def own(self) -> BenchWorld:
        """The entry of its world."""
        return require_world(self.world)

    @property
    def name(self) -> str:
        """Of its tasks."""
        return f"{self.world}-{self.seed}"

    def prepare(self, ground: Path) -> None:
        """Leave in a folder what takes long and all methods need: the logging policy of samples."""
        if self.own.kind != "labelled":
            return
        self._samples.make_answers(ground)

    def open(self, ground: Path) -> Parts:
        """The stays; `prepare` has been here."""
        return _open(self, ground)

    def stay_outcome(self, policy: HistoryPolicy) -> float | None:
        """Mortality where a policy treats from admission to the end; None where nobody knows."""
        if not self.own.deploys:
            return None
        n_stays = min(DEPLOYED, max(self.n_test, 1))
        deployed = deploy_policy(policy, n_stays=n_stays, seed=self.seed, lag=self.own.lag)
        return float(deployed.stay_risk("sum").risk)

    def make(self, ground: Path) -> Parts:
        """The stays, made anew."""
        kind = self.own.kind
        if kind == "labelled":
            log = self._samples.open_log(ground)
            return Parts(log.subset(slice(self.n_test, None)), log.subset(slice(0, self.n_test)))
        if kind == "trial":
            return self._halves()
        return Parts(
            self._simulate(self.n_learn, self.seed),
            self._simulate(self.n_test, self.seed + _TEST_SEED),
        )

    def _simulate(self, n_stays: int, seed: int) -> Trajectories:
        own = self.own
        if own.kind == "clinic":
            settings: Any = own.clinic
            return Clinic(**settings, world=self.seed).log(n_stays, seed=seed)
        return WORLDS["icu-sepsis"].simulate(Simulation(n_stays, seed=seed, lag=own.lag))

    @property
    def _samples(self) -> SimulatedData:
        settings: Any = _QUICK_LOGGING if self.quick else {}
        n = self.n_learn + self.n_test
        return SimulatedData(self.own.world, n, self.seed, policy=StoppedLstm(**settings))

    def _halves(self) -> Parts:
        whole, found = read_trial(Path(self.trial))
        if found != self.sha256:
            raise FileError(self.trial, "has changed since the bench began")
        learn, test = split(whole, test=0.5, seed=self.seed)
        few = np.arange(learn.n_stays)[: self.n_learn]
        return Parts(learn.subset(few), test.subset(np.arange(test.n_stays)[: self.n_test]))


@lru_cache(maxsize=1)  # tasks done one after the other share it
def _open(arena: Arena, ground: Path) -> Parts:
    return arena.make(ground)


def without_propensities(stays: Trajectories) -> Trajectories:
    """The stays as a hospital has them."""
    return replace(stays, propensity=None)
