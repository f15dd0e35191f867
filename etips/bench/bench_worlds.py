"""The worlds of the bench: one entry each, with its sizes; and one of them opened for a seed."""

import csv
import gzip
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from etips.data.decisions import Floats
from etips.data.splitting import split
from etips.data.tables.arrays import from_arrays
from etips.data.trajectories import Trajectories
from etips.errors import FileError, SettingError
from etips.studies.study_data import SimulatedData
from etips.worlds.classifier import StoppedLstm
from etips.worlds.clinic import Clinic
from etips.worlds.deployment import HistoryPolicy
from etips.worlds.icu_sepsis import deploy_policy
from etips.worlds.world_registry import WORLDS, Simulation

Kind = Literal["labelled", "icu-sepsis", "clinic", "trial"]
Measure = Literal["accuracy", "risk", "trial"]

TRIAL = "stroke-trial"
"""The one world that needs a file, and whose truth is the trial's own odds."""

DEPLOYED = 5_000
"""Stays that a policy treats from admission to their end, where a world can be walked through."""

_TEST_SEED = 500_000  # stays that judge come from another seed than those that teach


NUMBERS = ("AGE", "RSBP", "RDELAY")
LEVELS = {
    "SEX": ("M",),
    "RCONSC": ("D", "U"),
    "STYPE": ("TACS", "LACS", "POCS", "OTH"),
    **dict.fromkeys(("RSLEEP", "RATRIAL", "RCT", "RVISINF", "RHEP24", "RASP3"), ("Y",)),
    **{f"RDEF{k}": ("Y",) for k in range(1, 9)},
}
"""Features at entry: numbers, and the levels that get a column each."""

HEPARIN = {"N": 0, "L": 1, "M": 2, "H": 2}
"""Arms of heparin; the pilot called medium high."""

DEAD_OR_DEPENDENT = ("1", "2")
"""Of the outcome at six months."""

_ARM, _OUTCOME = ("RXASP", "RXHEP"), "OCCODE"


@dataclass(frozen=True)
class BenchWorld:
    """A world with what is asked of it.

    Args:
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
        """How a policy is judged: right answers, true risk, or the trial's own estimate."""
        if self.kind == "trial":
            return "trial"
        return "accuracy" if self.kind == "labelled" else "risk"


def _digits(name: str, sentence: str, n: int) -> BenchWorld:
    return BenchWorld(name, sentence, "labelled", n - n // 10, n // 10, world=name)


def _clinic(name: str, sentence: str, **settings: float) -> BenchWorld:
    return BenchWorld(name, sentence, "clinic", 2_000, 4_000, clinic=settings)


def _icu_sepsis(lag: int, sentence: str) -> BenchWorld:
    name = f"icu-sepsis-lag{lag}"
    return BenchWorld(name, f"ICU-Sepsis, {sentence}", "icu-sepsis", 20_000, 10_000, lag=lag)


_WORLDS = (
    _digits("digits-zeros", "how many of a sequence of images show a zero", 10_000),
    _digits("digits-rows", "which digit an image shows, read row by row", 70_000),
    _icu_sepsis(0, "the present state visible"),
    _icu_sepsis(1, "the present state hidden as in the paper: confounded"),
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
"""The worlds of a quick run, unless others are asked for: one of each kind."""


def require_world(name: str) -> BenchWorld:
    """The world of this name; any other is refused."""
    if name not in BENCH_WORLDS:
        raise SettingError("--worlds", f"must be some of {', '.join(BENCH_WORLDS)}")
    return BENCH_WORLDS[name]


@dataclass(frozen=True, eq=False)
class Parts:
    """Stays that teach, and stays that judge; both with all that the world knows."""

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
        trial: File of the stroke trial, and its hash in `sha256`.
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
        """What its tasks are called by."""
        return f"{self.world}-{self.seed}"

    @property
    def by_design(self) -> bool:
        """Whether a hospital would know the propensities too, since a trial's design set them."""
        return self.own.kind == "trial"

    def prepare(self, ground: Path) -> None:
        """Leave in a folder what takes long and all methods need: the logging policy of samples."""
        if self.own.kind == "labelled":
            self._samples.make_answers(ground)

    def stay_outcome(self, policy: HistoryPolicy) -> float | None:
        """Mortality where a policy treats from admission to the end; None where it is not known."""
        if self.own.kind != "icu-sepsis":
            return None
        n_stays = min(DEPLOYED, max(self.n_test, 1))
        deployed = deploy_policy(policy, n_stays=n_stays, seed=self.seed, lag=self.own.lag)
        return float(deployed.stay_risk("sum").risk)

    def make(self, ground: Path) -> Parts:
        """The stays; `prepare` must have been called for the folder."""
        n, kind = self.n_test, self.own.kind
        if kind == "labelled":
            log = self._samples.open_log(ground)
            return Parts(log.subset(slice(n, None)), log.subset(slice(0, n)))
        if kind == "trial":
            whole, sha256 = read_trial(Path(self.trial))
            if sha256 != self.sha256:
                raise FileError(self.trial, "has changed since the bench began")
            learn, test = split(whole, test=0.5, seed=self.seed)
            return Parts(learn.subset(slice(0, self.n_learn)), test.subset(slice(0, n)))
        return Parts(
            self._simulate(self.n_learn, self.seed), self._simulate(n, self.seed + _TEST_SEED)
        )

    def _simulate(self, n_stays: int, seed: int) -> Trajectories:
        if self.own.kind == "clinic":
            settings: Any = self.own.clinic
            return Clinic(**settings, world=self.seed).log(n_stays, seed=seed)
        wanted = Simulation(n_stays, seed=seed, lag=self.own.lag)
        return WORLDS["icu-sepsis"].simulate(wanted)

    @property
    def _samples(self) -> SimulatedData:
        policy = StoppedLstm(hidden=8, target=0.5, tolerance=0.49) if self.quick else StoppedLstm()
        n = self.n_learn + self.n_test
        return SimulatedData(self.own.world, n, self.seed, policy=policy)


@lru_cache(maxsize=1)  # tasks done one after the other share it
def open_arena(arena: Arena, ground: Path) -> Parts:
    """What `Arena.make` makes."""
    return arena.make(ground)


def read_trial(path: Path) -> tuple[Trajectories, str]:
    """The International Stroke Trial, one decision a patient with its known odds; the file's hash.

    The data may not be shipped: a user who has downloaded IST.csv, or the same packed by gzip,
    names the file.
    """
    try:
        content = path.read_bytes()
        packed = content[:2] == b"\x1f\x8b"
        text = (gzip.decompress(content) if packed else content).decode("latin-1")
    except (OSError, EOFError) as error:
        raise FileError(str(path), "cannot be read", fix="--trial names IST.csv.") from error
    rows = list(csv.DictReader(io.StringIO(text)))
    names = set(rows[0]) if rows else set()
    lacking = [name for name in (*NUMBERS, *LEVELS, *_ARM, _OUTCOME) if name not in names]
    if lacking:
        rule = f"must have the columns of the stroke trial; {', '.join(lacking[:3])} is not there"
        raise FileError(str(path), rule, fix="--trial names IST.csv as published.")
    try:
        arm = np.array([3 * (row["RXASP"] == "Y") + HEPARIN[row["RXHEP"]] for row in rows])
        features = _features(rows)
    except (KeyError, ValueError):
        rule = "holds a treatment or a number that the published trial does not have"
        raise FileError(str(path), rule, fix="--trial names IST.csv as published.") from None
    loss = np.array([row[_OUTCOME] in DEAD_OR_DEPENDENT for row in rows], np.float64)
    odds = np.where(arm % 3 == 0, 1 / 4, 1 / 8)
    stays = from_arrays(features, arm, loss, propensity=odds, n_actions=6)
    return stays, hashlib.sha256(content).hexdigest()


def _features(rows: Sequence[dict[str, str]]) -> Floats:
    numbers = [[float(row[name]) for name in NUMBERS] for row in rows]
    levels = [
        [float(row[name].strip() == level) for name, own in LEVELS.items() for level in own]
        for row in rows
    ]
    return np.concatenate([np.array(numbers), np.array(levels)], axis=1)
