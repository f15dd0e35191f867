"""The data of a study, made once and dealt into folds: a world, or a folder of logged stays.

What describes them is plain and hashable, so that every task, in whatever process, opens the same
data. What takes long, the logging policy of labelled samples, is trained by one task and read by
the others.
"""

import hashlib
import json
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Self, cast

import numpy as np

from etips.data.alignment import align
from etips.data.coded import Coded
from etips.data.decisions import Bools, Floats
from etips.data.schema import Schema
from etips.data.splitting import assign_folds
from etips.data.trajectories import Trajectories
from etips.errors import FileError, SettingError
from etips.files.json_documents import canonical
from etips.files.writing import write_file
from etips.learn.learners.recipes import kinds_of
from etips.progress import no_progress
from etips.studies.experiment import DATA_FOLDER, Experiment
from etips.worlds.bandit import Answers, Logging, to_bandit
from etips.worlds.classifier import StoppedLstm
from etips.worlds.world_registry import WORLDS, Simulation

DATA = "data"
"""Name of the task that makes the data, and of its folder."""

_ANSWERS, _NOTES = "logging.npy", "notes.json"  # of the logging policy of labelled samples


@dataclass(frozen=True)
class SimulatedData:
    """Stays of a world.

    Args:
        logging: Of labelled samples: how their logging policy acts.
        policy: Of labelled samples: what trains their logging policy.
    """

    world: str
    n: int
    seed: int
    lag: int = 0
    logging: Logging = "sampled"
    policy: StoppedLstm = field(default_factory=StoppedLstm)

    @property
    def has_labels(self) -> bool:
        """Whether the samples have true labels."""
        return WORLDS[self.world].has_labels

    def open_labelled(self) -> Trajectories:
        """The samples with their true labels as actions."""
        labelled = WORLDS[self.world].labelled(self.n, seed=self.seed)
        assert isinstance(labelled.sequence, Coded)
        # A few samples need few of the images.
        used, code = np.unique(labelled.sequence.code, return_inverse=True)
        table = labelled.sequence.table[used]
        few = Coded(table, code.astype(np.int32), labelled.sequence.unit)
        return replace(labelled, sequence=few)

    def make_answers(self, folder: Path) -> dict[str, object]:
        """Train the logging policy of labelled samples and keep its answers; return its notes."""
        answers = self.policy(self.open_labelled(), seed=self.seed, progress=no_progress)
        save_array(folder / _ANSWERS, answers.probabilities)
        write_file(folder / _NOTES, canonical(dict(answers.notes)))
        return dict(answers.notes)

    def open_log(self, folder: Path) -> Trajectories:
        """The logged decisions; those of labelled samples by the answers that the folder holds."""
        if self.has_labels:
            answers = load_answers(folder)
            return to_bandit(self.open_labelled(), answers, logging=self.logging, seed=self.seed)
        wanted = Simulation(self.n, seed=self.seed, lag=self.lag)
        return replace(WORLDS[self.world].simulate(wanted), propensity=None)


@dataclass(frozen=True)
class FolderData:
    """Logged stays of a folder.

    Args:
        sha256: Of its manifest, which lists the hash of every other file.
    """

    folder: str
    sha256: str
    lag: int

    @classmethod
    def of(cls, folder: Path, lag: int) -> Self:
        """That of a folder as it is now."""
        return cls(str(folder.resolve()), _seal(folder), lag)

    def open_log(self, _: Path | None = None) -> Trajectories:
        """The logged decisions; a folder that has changed is refused."""
        from etips.data.storage import load_trajectories  # noqa: PLC0415  # brings pyarrow

        folder = Path(self.folder)
        if _seal(folder) != self.sha256:
            raise FileError(str(folder), "has changed since the study began")
        stays = load_trajectories(folder)
        if not stays.logged:
            raise FileError(str(folder), "must hold logged actions and losses")
        return replace(stays, schema=replace(stays.schema, lag=self.lag), propensity=None)


StudyData = SimulatedData | FolderData
"""What a study learns from."""


def data_of(experiment: Experiment, folder: Path | None = None) -> StudyData:
    """The data of an experiment: its world's, or those of a folder."""
    if folder is not None:
        return FolderData.of(folder, experiment.lag)
    if experiment.world == DATA_FOLDER:
        raise SettingError("--data", "must name a folder: this experiment has no world")
    data = SimulatedData(experiment.world, experiment.n, experiment.seed)
    if not data.has_labels:
        return replace(data, lag=experiment.lag)
    known = kinds_of(StoppedLstm)
    for key, value in experiment.logging_policy.items():
        if key not in known:
            raise SettingError(f"logging_policy.{key}", "is not a setting of the logging policy")
        if not known[key].admits(value):
            raise SettingError(f"logging_policy.{key}", f"must be {known[key].words}")
    settings: Any = experiment.logging_policy
    logging = cast(Logging, experiment.logging)
    return replace(data, logging=logging, policy=StoppedLstm(**settings))


@lru_cache(maxsize=1)  # tasks done one after the other share it
def open_log(data: StudyData, study: Path) -> Trajectories:
    """The logged decisions of a study whose task `data` is done.

    Estimated propensities are the paper's subject, so only labelled samples keep the true ones.
    """
    return data.open_log(study / DATA)


def load_answers(folder: Path) -> Answers:
    """What `SimulatedData.make_answers` left."""
    return Answers(load_array(folder / _ANSWERS), json.loads((folder / _NOTES).read_bytes()))


def open_external(data: FolderData, like: Schema) -> Trajectories:
    """The logged decisions of another source, read as those of the study's own schema."""
    return align(data.open_log(), like)


@dataclass(frozen=True, eq=False)
class Part:
    """One fold of a study: stays a method may learn from and those it is judged on, (n_stays,)."""

    learn: Bools
    held: Bools


@dataclass(frozen=True)
class Dealing:
    """How the stays of a study are dealt into its folds.

    Args:
        table: Which of the paper's two ways: "table1" or "table2".
    """

    table: str
    folds: int
    seed: int

    @property
    def has_test_part(self) -> bool:
        """Whether all folds are judged on one test part, which none learns from."""
        return self.table == "table1"

    def part(self, data: Trajectories, fold: int) -> Part:
        """One fold of the study, from 0.

        Table I: the first tenth is every fold's test part, and nothing is shuffled. The rest is cut
        into folds one after the other; a method learns from all but its own, by which the paper
        stops. Table II: stays (patients, where they are known) are dealt at random, each held out
        once.
        """
        if not self.has_test_part:
            held = assign_folds(data, n_folds=self.folds, seed=self.seed) == fold
            return Part(~held, held)
        n = data.n_stays
        if n < 10 * self.folds:
            raise SettingError("n", f"must be at least {10 * self.folds} for {self.folds} folds")
        place = np.arange(n)
        held = place < n // 10
        spare = np.isin(place, np.array_split(place[~held], self.folds)[fold])
        return Part(~held & ~spare, held)


def save_array(path: Path, values: Floats) -> None:
    """Write an array as a .npy file; no pickle."""
    write_file(path, lambda file: np.save(file, values, allow_pickle=False))


def load_array(path: Path) -> Floats:
    """Read what `save_array` wrote."""
    try:
        return np.asarray(np.load(path, allow_pickle=False), np.float64)
    except (OSError, ValueError, EOFError) as error:
        fix = "Remove the folder it is in, and run the same command again."
        raise FileError(str(path), "cannot be read", fix=fix) from error


def _seal(folder: Path) -> str:
    from etips.data.storage import MANIFEST  # noqa: PLC0415

    try:
        return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
    except OSError as error:
        raise FileError(str(folder), f"must be a folder with {MANIFEST}") from error
