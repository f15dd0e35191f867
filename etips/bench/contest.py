"""The task of a bench: one method learns in one world at one seed, and is judged there."""

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from etips.bench.bench_worlds import Arena, Parts, without_propensities
from etips.bench.costs import Cost, measured
from etips.bench.ground import load_log
from etips.bench.peers.peer import PeerPolicy
from etips.bench.peers.peer_registry import PEERS
from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.errors import EtipsError, FileError
from etips.evaluation.assessment import assess
from etips.evaluation.estimators import estimator_names
from etips.evaluation.log import Log
from etips.files.fingerprint import fingerprint
from etips.files.json_documents import finite
from etips.learn.learners.catalogue import require_method
from etips.learn.learners.recipes import make_learner
from etips.learn.training.sharing import Sharing
from etips.machine import still_products
from etips.policies.deployed import Deployed
from etips.results.followed_policies import Policy, follow
from etips.runs.checkpoint import ForeignError
from etips.runs.run import Run
from etips.studies.experiment import Settings
from etips.studies.study_data import save_array
from etips.tasks.task import Json, Work

LOSSES = "losses.npy"
"""What a task leaves: of each stay that judges the sum of its true losses, and its decisions."""

RARE = 0.05
"""An action that clinicians take less often in such patients is rare."""


@dataclass(frozen=True)
class ContestTask(Work):
    """Learn, be judged, and say what it cost. A method that fails says so; the others go on.

    Args:
        arena: World, size and seed.
        method: Of the catalogue, or a peer.
        settings: Of the method.
        ground: Folder of the ground's task, beside this task's own.
        device: auto, cpu or cuda.
        version: Of a peer's package, so that another version is other work.
    """

    kind: ClassVar[str] = "bench-contest"

    arena: Arena
    method: str
    settings: Settings
    ground: str
    device: str
    version: str = ""

    @property
    def trains_on(self) -> str:
        """The device; peers use a processor."""
        return "cpu" if self.method in PEERS else self.device

    @property
    def lenders(self) -> tuple[str, ...]:
        """The ground that it reads."""
        return (self.ground,)

    def to_json(self) -> dict[str, object]:
        """As an object that JSON can hold."""
        return {**vars(self), "arena": self.arena.to_json(), "settings": dict(self.settings)}

    @classmethod
    def from_json(cls, document: Json) -> Self:
        """What `to_json` wrote."""
        values: Any = dict(document)
        return cls(Arena.from_json(values.pop("arena")), **values)

    def run(self, folder: Path, sharing: Sharing | None = None) -> Json:
        """Do it; the findings are fields of a `BenchEntry`."""
        ground = folder.parent / self.ground
        parts = self.arena.open(ground)
        try:
            policy, cost = self._learn(parts, folder, sharing)
            return {**self._judge(policy, parts.test, ground, folder), **_told(cost)}
        except (ForeignError, FileError, MemoryError):
            raise  # of the folder or the machine, not of the method
        except Exception as error:  # noqa: BLE001  # a line in the table, not the end of the bench
            return {"failed": in_words(error, quotes=self.arena.own.measure != "trial")}

    def _learn(self, parts: Parts, folder: Path, sharing: Sharing | None) -> tuple[Policy, Cost]:
        by_design = self.arena.own.measure == "trial"
        bare = parts.learn if by_design else without_propensities(parts.learn)
        if self.method in PEERS:
            teach = PEERS[self.method].load()
            with measured() as cost:
                learned = PeerPolicy.learned(
                    teach, bare, seed=self.arena.seed, quick=self.arena.quick
                )
            return learned, cost
        told = require_method(self.method).known_propensities
        settings = dict(self.settings)
        learner = make_learner(self.method, settings, device=self.device, seed=self.arena.seed)
        identity = fingerprint(arena=self.arena.to_json(), method=self.method, settings=settings)
        with Run(folder, identity) as run:
            with measured() as cost:
                learner.fit(parts.learn if told else bare, run=run, sharing=sharing)
            run.clear()
        return learner.policy_, cost

    def _judge(
        self, policy: Policy, test: Trajectories, ground: Path, folder: Path
    ) -> dict[str, object]:
        deployed = follow(policy, without_propensities(test)).deployed
        losses = stay_losses(deployed, test)
        save_array(folder / LOSSES, losses)
        risk, error = mean_loss(losses)

        def act(asked: Trajectories) -> Floats:
            said = follow(policy, asked).deployed
            return np.where(said.abstained[:, None], 0.0, said.probabilities)

        return {
            "risk": risk,
            "std_error": error,
            **_estimated(deployed, _log_of(ground)),
            "stay_risk": self.arena.stay_outcome(act),
            "abstained": float(deployed.abstained.mean()),
            "rare": _rare(deployed, test),
        }


@lru_cache(maxsize=1)  # tasks done one after the other share it
def _log_of(ground: Path) -> Log:
    return load_log(ground)


def _estimated(deployed: Deployed, log: Log) -> dict[str, object]:
    """What a user would be told, who does not know the truth."""
    with still_products():
        found = assess(log, *deployed.judged, estimators=estimator_names(log)[:1])
    head = found.estimates[0]
    return {
        "estimate": finite(head.risk),
        "low": finite(head.low),
        "high": finite(head.high),
        "verdict": found.verdict.label,
    }


def _told(cost: Cost) -> Mapping[str, object]:
    return {"seconds": cost.seconds, "processor": cost.processor, "memory": cost.memory}


def stay_losses(deployed: Deployed, test: Trajectories) -> Floats:
    """Of each stay the sum of its true losses and its number of decisions, shape (2, n_stays).

    Without a truth, the trial's known odds give a loss of each patient whose mean is unbiased:
    the mean loss, plus the weight times what the patient's loss has beyond it.
    """
    stay = test.decisions().stay
    if test.truth is not None:
        taken = deployed.left_to(test.true_logging())
        each = (taken * test.true_expected_loss()).sum(axis=1)
    else:
        rows = np.arange(test.n_decisions)
        own = deployed.probabilities[rows, test.logged_action] / test.logged_propensity
        weight, mean = np.where(deployed.abstained, 1.0, own), test.logged_loss.mean()
        each = mean + weight * (test.logged_loss - mean)
    return np.stack(
        [np.bincount(stay, each, test.n_stays), np.bincount(stay, minlength=test.n_stays)]
    ).astype(np.float64)


def mean_loss(losses: Floats) -> tuple[float, float | None]:
    """Mean loss of a decision and its standard error over stays, of what `stay_losses` gives."""
    total, count = losses
    mean = float(total.sum() / count.sum())
    n = int((count > 0).sum())
    if n < 2:
        return mean, None
    apart = ((total - mean * count) ** 2).sum() * n / (n - 1)
    return mean, float(np.sqrt(apart) / count.sum())


def _rare(deployed: Deployed, test: Trajectories) -> float | None:
    """Share of decisions at which it does what clinicians hardly do; None where nobody knows."""
    if test.truth is None:
        return None
    rare = test.true_logging() < RARE
    own = np.where(deployed.abstained[:, None], 0.0, deployed.probabilities)
    return float((own * rare).sum(axis=1).mean())


def in_words(error: Exception, *, quotes: bool) -> str:
    """Why a method failed, in a line.

    Args:
        error: What it raised.
        quotes: Whether the message may be shown: where the data are of patients it may quote them.
    """
    if isinstance(error, EtipsError):
        return str(error)
    kind = type(error).__name__
    if quotes:
        first = " ".join(str(error).split())[:160]
        return f"{kind}: {first}" if first else kind
    places = traceback.extract_tb(error.__traceback__)
    return f"{kind} in {Path(places[-1].filename).name}" if places else kind
