"""The data of a study, made once: simulated worlds, or a folder of logged stays.

What describes them can be written as JSON, so that every task, in whatever process, opens the same
data. What takes long, the logging policy of labelled samples, is trained by one task and read by
the others.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np

from etips.data.alignment import align
from etips.data.coded import Coded, Features
from etips.data.decisions import Floats
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.errors import FileError, SettingError
from etips.files.json_documents import canonical
from etips.files.writing import write_file
from etips.learn.training.sharing import Sharing
from etips.progress import no_progress
from etips.studies.experiment import DATA_FOLDER, Experiment
from etips.tasks.task import Json, Work
from etips.worlds.bandit import Answers, Logging, to_bandit
from etips.worlds.classifier import StoppedLstm
from etips.worlds.simulation import Simulation
from etips.worlds.world_registry import WORLDS

DATA = "data"
"""Name of the task that makes the data, and of its folder."""

ANSWERS, NOTES = "logging.npy", "notes.json"
"""What it leaves for labelled samples: answers of the logging policy, and how that was trained."""


@dataclass(frozen=True)
class SimulatedData:
    """Stays of a world.

    Args:
        world: Which.
        n: How many stays, or samples.
        seed: Of the simulation.
        lag: 0 or 1.
        logging: Of labelled samples: how their logging policy acts.
        policy: Of labelled samples: settings of `StoppedLstm`.
    """

    world: str
    n: int
    seed: int
    lag: int = 0
    logging: Logging = "sampled"
    policy: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """As JSON holds it."""
        return asdict(self)

    @property
    def has_labels(self) -> bool:
        """Whether the samples have true labels."""
        return WORLDS[self.world].has_labels

    @property
    def trainer(self) -> StoppedLstm:
        """What trains the logging policy of labelled samples."""
        settings: Any = self.policy  # checked by `data_of`, and by the trainer itself
        return StoppedLstm(**settings)

    def open_labelled(self) -> Trajectories:
        """The samples with their true labels as actions."""
        labelled = WORLDS[self.world].labelled(self.n, seed=self.seed)
        return replace(labelled, sequence=_compact(labelled.sequence))

    def open_log(self, study: Path) -> Trajectories:
        """The logged decisions; see `open_log`."""
        if self.has_labels:
            notes = json.loads((study / DATA / NOTES).read_bytes())
            answers = Answers(open_answers(study), notes)
            return to_bandit(self.open_labelled(), answers, logging=self.logging, seed=self.seed)
        wanted = Simulation(self.n, seed=self.seed, lag=self.lag)
        return replace(WORLDS[self.world].simulate(wanted), propensity=None)


@dataclass(frozen=True)
class FolderData:
    """Logged stays of a folder.

    Args:
        folder: Where they are.
        sha256: Of its manifest, which lists the hash of every other file.
        lag: 0 or 1.
    """

    folder: str
    sha256: str
    lag: int

    @classmethod
    def of(cls, folder: Path, lag: int) -> Self:
        """That of a folder as it is now."""
        return cls(str(folder.resolve()), _seal(folder), lag)

    def to_json(self) -> dict[str, object]:
        """As JSON holds it."""
        return asdict(self)

    def open_log(self, _: Path) -> Trajectories:
        """The logged decisions; see `open_log`."""
        from etips.data.trajectory_reader import load_trajectories  # noqa: PLC0415  # brings pyarrow

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
    """The data of an experiment.

    Args:
        experiment: Which.
        folder: Where the data are, if they are no world's.
    """
    if folder is not None:
        return FolderData.of(folder, experiment.lag)
    if experiment.world == DATA_FOLDER:
        raise SettingError("--data", "must name a folder: this experiment has no world")
    data = SimulatedData(experiment.world, experiment.n, experiment.seed)
    if not data.has_labels:
        return replace(data, lag=experiment.lag)
    known = {entry.name for entry in fields(StoppedLstm)}
    for key in experiment.logging_policy:
        if key not in known:
            raise SettingError(f"logging_policy.{key}", "is not a setting of the logging policy")
    logging = cast(Logging, experiment.logging)
    return replace(data, logging=logging, policy=dict(experiment.logging_policy))


def data_from_json(document: object) -> StudyData:
    """What `to_json` wrote."""
    values: Any = document
    return FolderData(**values) if "folder" in values else SimulatedData(**values)


@dataclass(frozen=True)
class DataTask(Work):
    """Train the logging policy of labelled samples; of other data, look whether they open.

    Args:
        data: Of the study.
    """

    kind: ClassVar[str] = "make-data"

    data: StudyData

    def to_json(self) -> dict[str, object]:
        """As an object that JSON can hold."""
        return {"data": self.data.to_json()}

    @classmethod
    def from_json(cls, document: Json) -> Self:
        """What `to_json` wrote."""
        return cls(data_from_json(document["data"]))

    def run(self, folder: Path, _: Sharing | None = None) -> Json:
        """Do it."""
        data = self.data
        if not isinstance(data, SimulatedData) or not data.has_labels:
            open_log(data, folder.parent)
            return {"notes": {}}
        answers = data.trainer(data.open_labelled(), seed=data.seed, progress=no_progress)
        save_array(folder / ANSWERS, answers.probabilities)
        write_file(folder / NOTES, canonical(dict(answers.notes)))
        return {"notes": dict(answers.notes)}


def open_log(data: StudyData, study: Path) -> Trajectories:
    """The logged decisions of a study whose task `data` is done.

    Estimated propensities are the paper's subject, so only labelled samples keep the true ones.
    """
    return _open(json.dumps(data.to_json(), sort_keys=True), study)


@lru_cache(maxsize=1)  # tasks done one after the other share it
def _open(text: str, study: Path) -> Trajectories:
    return data_from_json(json.loads(text)).open_log(study)


def open_external(data: FolderData, like: Schema) -> Trajectories:
    """The logged decisions of another source, read as those that a study learns from.

    Args:
        data: The other source.
        like: Schema of the study's own data.
    """
    return align(data.open_log(Path()), like)


def open_answers(study: Path) -> Floats:
    """What the logging policy says of every sample of labelled samples, shape (n, n_actions)."""
    return load_array(study / DATA / ANSWERS)


def save_array(path: Path, values: Floats) -> None:
    """Write an array as a .npy file; no pickle."""
    write_file(path, lambda file: np.save(file, values, allow_pickle=False))


def load_array(path: Path) -> Floats:
    """Read what `save_array` wrote."""
    try:
        return np.asarray(np.load(path, allow_pickle=False), np.float64)
    except (OSError, ValueError, EOFError) as error:
        fix = "Remove the folder it is in, and run the study again."
        raise FileError(str(path), "cannot be read", fix=fix) from error


def _compact(sequence: Features) -> Features:
    """The same rows from a table without those that never occur; a few samples need few images."""
    assert isinstance(sequence, Coded)
    used, code = np.unique(sequence.code, return_inverse=True)
    return Coded(sequence.table[used], code.astype(np.int32), sequence.unit)


def _seal(folder: Path) -> str:
    """Fingerprint of a data folder: its manifest lists the hash of every other file."""
    from etips.data.trajectory_writer import MANIFEST  # noqa: PLC0415

    try:
        return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
    except OSError as error:
        raise FileError(str(folder), f"must be a folder with {MANIFEST}") from error
