"""The tasks of a bench: a world opened at a seed, and a method that learns and is judged there."""

import resource
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from etips.bench.bench_worlds import Arena, Parts, open_arena
from etips.bench.peers import PEERS, PeerPolicy
from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.errors import EtipsError, FileError
from etips.evaluation.assessment import assess
from etips.evaluation.estimators import estimator_names
from etips.evaluation.log import Log
from etips.files.fingerprint import fingerprint
from etips.files.json_documents import finite
from etips.files.writing import write_file
from etips.learn.learners.catalogue import require_method
from etips.learn.learners.direct import DirectMethod
from etips.learn.learners.recipes import make_learner
from etips.machine import still_products
from etips.policies.deployed import Deployed
from etips.results.evaluation_log import Models, make_log
from etips.results.followed_policies import Policy, follow
from etips.runs.checkpoint import ForeignError
from etips.runs.run import Run
from etips.runs.tasks import Json
from etips.studies.experiment import EVALUATOR, Settings
from etips.studies.study_data import save_array

LOSSES = "losses.npy"
"""What a task leaves: of each stay that judges the sum of its true losses, and its decisions."""

RARE = 0.05
"""An action that clinicians take less often in such patients is rare."""

_LOG = "log.npz"
_STATUS, _REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_FORGET_PEAK = "5"  # see proc(5)
_MB = 2**20


@dataclass
class Cost:
    """What some work cost.

    Args:
        processor: Seconds of all cores, processes started for it and ended since included.
        memory: Most megabytes that this process held at a time, data and packages included; None
            where the system does not tell.
    """

    seconds: float = 0.0
    processor: float = 0.0
    memory: float | None = None


@contextmanager
def measured() -> Iterator[Cost]:
    """A `Cost` that is filled in when the block ends."""

    def processor() -> float:
        each = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(own.ru_utime + own.ru_stime for own in each)

    def peak() -> float | None:
        with suppress(OSError):
            found = (line.split() for line in _STATUS.read_text().splitlines() if "VmHWM:" in line)
            return next((1024 * int(words[1]) / _MB for words in found), None)
        return None

    try:  # the system counts the peak from here on, where it can
        _REFS.write_text(_FORGET_PEAK)
        resets = peak() is not None
    except OSError:
        resets = False
    cost, started, used = Cost(), time.perf_counter(), processor()
    try:
        yield cost
    finally:
        cost.seconds = time.perf_counter() - started
        cost.processor = processor() - used
        unit = 1 if sys.platform == "darwin" else 1024
        ever = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MB
        cost.memory = peak() if resets else ever


@dataclass(frozen=True)
class GroundTask:
    """Make what all methods of a world and seed share: data, and the log that they are judged by.

    Args:
        settings: Of the networks that policies are evaluated with; the usual ones if empty.
    """

    arena: Arena
    settings: Settings
    device: str

    def run(self, folder: Path) -> Json:
        """Do it; the findings are what is possible in this world."""
        arena = self.arena
        arena.prepare(folder)
        test = open_arena(arena, folder).test
        learner = make_learner(EVALUATOR, self.settings, device=self.device, seed=arena.seed)
        assert isinstance(learner, DirectMethod)
        models = Models(encoder=learner.encoder, training=learner.training, seed=arena.seed)
        with still_products():
            made = make_log({}, _bare(arena, test), models)
        save_log(made.log, folder)
        return possible(arena, test)


def possible(arena: Arena, test: Trajectories) -> dict[str, object]:
    """True risk of the clinicians and of the best policy, and mortality under the clinicians."""
    abstain = np.zeros((1, test.n_actions))
    stay = arena.stay_outcome(lambda asked: np.repeat(abstain, asked.n_decisions, axis=0))
    if test.truth is None:
        return {"clinicians": float(test.logged_loss.mean()), "best": None, "clinicians_stay": stay}
    return {
        "clinicians": test.true_risk(test.true_logging()),
        "best": float(test.true_expected_loss().min(axis=1).mean()),
        "clinicians_stay": stay,
    }


@dataclass(frozen=True)
class ContestTask:
    """Learn, be judged, and report what it cost. A method that fails reports so; others go on.

    Args:
        method: Of the catalogue, or a peer.
        ground: Folder of the ground's task, beside this task's own.
        version: Of a peer's package, so that another version is other work.
    """

    arena: Arena
    method: str
    settings: Settings
    ground: str
    device: str
    version: str = ""

    def run(self, folder: Path) -> Json:
        """Do it; the findings are fields of a `BenchEntry`."""
        ground = folder.parent / self.ground
        parts = open_arena(self.arena, ground)
        try:
            policy, cost = self._learn(parts, folder)
            return {**self._judge(policy, parts.test, ground, folder), **asdict(cost)}
        except (ForeignError, FileError, MemoryError):
            raise  # of the folder or the machine, not of the method
        except Exception as error:  # noqa: BLE001  # a line in the table, not the end of the bench
            return {"failed": in_words(error, quotes=self.arena.own.measure != "trial")}

    def _learn(self, parts: Parts, folder: Path) -> tuple[Policy, Cost]:
        arena, bare = self.arena, _bare(self.arena, parts.learn)
        if self.method in PEERS:
            teach = PEERS[self.method].teach
            with measured() as cost:
                peer = PeerPolicy.learned(teach, bare, seed=arena.seed, quick=arena.quick)
            return peer, cost
        if require_method(self.method).known_propensities:
            bare = parts.learn
        learner = make_learner(self.method, self.settings, device=self.device, seed=arena.seed)
        identity = fingerprint(arena=arena, method=self.method, settings=self.settings)
        with Run(folder, identity) as run:
            with measured() as cost:
                learner.fit(bare, run=run)
            run.clear()
        return learner.policy_, cost

    def _judge(
        self, policy: Policy, test: Trajectories, ground: Path, folder: Path
    ) -> dict[str, object]:
        deployed = follow(policy, replace(test, propensity=None)).deployed
        losses = stay_losses(deployed, test)
        save_array(folder / LOSSES, losses)
        risk, error = mean_loss(losses)
        log = load_log(ground)
        with still_products():  # what a user would see, who does not know the truth
            assessment = assess(log, *deployed.judged, estimators=estimator_names(log)[:1])
        head = assessment.estimates[0]
        rare = None
        if test.truth is not None:
            chosen = _without_abstained(deployed)
            rare = float((chosen * (test.true_logging() < RARE)).sum(axis=1).mean())
        return {
            "risk": risk,
            "std_error": error,
            "estimate": finite(head.risk),
            "low": finite(head.low),
            "high": finite(head.high),
            "verdict": assessment.verdict.label,
            "stay_risk": self.arena.stay_outcome(
                lambda asked: _without_abstained(follow(policy, asked).deployed)
            ),
            "abstained": float(deployed.abstained.mean()),
            "rare": rare,
        }


def _bare(arena: Arena, stays: Trajectories) -> Trajectories:
    """The stays as a hospital has them: without propensities, unless a trial's design set them."""
    return stays if arena.by_design else replace(stays, propensity=None)


def _without_abstained(deployed: Deployed) -> Floats:
    """Probabilities of actions, all 0 where the policy leaves the decision to the clinicians."""
    return np.where(deployed.abstained[:, None], 0.0, deployed.probabilities)


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


def in_words(error: Exception, *, quotes: bool) -> str:
    """Why a method failed, in a line; the message, which may quote patients, only if `quotes`."""
    if isinstance(error, EtipsError):
        return str(error)
    kind = type(error).__name__
    if quotes:
        first = " ".join(str(error).split())[:160]
        return f"{kind}: {first}" if first else kind
    places = traceback.extract_tb(error.__traceback__)
    return f"{kind} in {Path(places[-1].filename).name}" if places else kind


def save_log(log: Log, folder: Path) -> None:
    """Write the arrays and numbers of a log; nothing is pickled."""
    values = {own.name: getattr(log, own.name) for own in fields(Log) if own.init}
    kept = {k: own for k, own in values.items() if isinstance(own, np.ndarray | int | float)}
    write_file(folder / _LOG, lambda file: np.savez(file, allow_pickle=False, **kept))


def load_log(folder: Path) -> Log:
    """Read what `save_log` wrote."""
    path = folder / _LOG
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, KeyError) as error:
        fix = "Remove the folder it is in, and run the bench again."
        raise FileError(str(path), "cannot be read", fix=fix) from error
    values: Any = {name: own if own.ndim else own.item() for name, own in arrays.items()}
    return Log(**values)
