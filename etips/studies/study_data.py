"""The data of a study, made once: simulated worlds, or a folder of logged stays.

A source is a description that JSON can hold, so that every task, in whatever process, opens the
same data. What takes long, the logging policy of the digit tasks, is trained by one task and read
by the others.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from etips.data.coded import Coded, Features
from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.errors import FileError, SettingError
from etips.files.writing import canonical, write_file
from etips.studies.experiment import Experiment
from etips.worlds import clinic, digits, icu_sepsis
from etips.worlds.bandit import Answers, to_bandit
from etips.worlds.classifier import StoppedLstm

DATA = "data"
"""Name of the task that makes the data, and of its folder."""

Source = Mapping[str, Any]

_ANSWERS, _NOTES = "logging.npy", "notes.json"


def describe(experiment: Experiment, folder: Path | None = None) -> dict[str, Any]:
    """The source of an experiment.

    Args:
        experiment: Which.
        folder: Where the data are, if they are no world's.
    """
    if folder is not None:
        return {"folder": str(folder.resolve()), "sha256": _seal(folder), "lag": experiment.lag}
    if experiment.world == "data":
        raise SettingError("--data", "must name a folder: this experiment has no world")
    common = {"world": experiment.world, "n": experiment.n, "seed": experiment.seed}
    if not _is_digits(common):
        return {**common, "lag": experiment.lag}
    policy = dict(experiment.logging_policy)
    known = {entry.name for entry in fields(StoppedLstm)}
    for key in policy:
        if key not in known:
            raise SettingError(f"logging_policy.{key}", "is not a setting of the logging policy")
    return {**common, "logging": experiment.logging, "policy": policy}


def make_data(arguments: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Work: train the logging policy of a digit task; of other sources, look whether they open."""
    source = arguments["source"]
    notes: dict[str, str] = {}
    if _is_digits(source):
        trainer = StoppedLstm(**source["policy"])
        answers = trainer(open_labelled(source), seed=source["seed"], progress=digits.silent)
        save_array(folder / _ANSWERS, answers.probabilities)
        write_file(folder / _NOTES, canonical(notes := dict(answers.notes)))
    else:
        open_log(source, folder.parent)
    return {"notes": notes}


def open_log(source: Source, study: Path) -> Trajectories:
    """The logged decisions of a study whose task `data` is done.

    Estimated propensities are the paper's subject, so only the digit tasks keep the true ones.
    """
    return _open(json.dumps(source, sort_keys=True), study)


@lru_cache(maxsize=1)  # tasks done one after the other share it
def _open(text: str, study: Path) -> Trajectories:
    source = json.loads(text)
    if "folder" in source:
        return _open_folder(source)
    n, seed = source["n"], source["seed"]
    if source["world"] == "clinic":
        return replace(clinic.Clinic().log(n, seed=seed), propensity=None)
    if source["world"] == "icu-sepsis":
        stays = icu_sepsis.simulate(n, seed=seed, lag=source["lag"])
        return replace(stays, propensity=None)
    notes = json.loads((study / DATA / _NOTES).read_bytes())
    answers = Answers(open_answers(study), notes)
    return to_bandit(open_labelled(source), answers, logging=source["logging"], seed=seed)


def open_labelled(source: Source) -> Trajectories:
    """The samples of a digit task with their true labels as actions."""
    if source["world"] == "digits-zeros":
        found = digits.labelled_zeros(n=source["n"], seed=source["seed"])
    else:
        found = digits.labelled_rows(n=source["n"])
    return replace(found, sequence=_compact(found.sequence))


def open_answers(study: Path) -> Floats:
    """What the logging policy says of every sample of a digit task, shape (n, n_actions)."""
    return load_array(study / DATA / _ANSWERS)


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


def _is_digits(source: Source) -> bool:
    return str(source.get("world", "")).startswith("digits")


def _open_folder(source: Source) -> Trajectories:
    from etips.data.trajectory_reader import load_trajectories  # noqa: PLC0415  # brings pyarrow

    folder = Path(source["folder"])
    if _seal(folder) != source["sha256"]:
        raise FileError(str(folder), "has changed since the study began")
    stays = load_trajectories(folder)
    if not stays.logged:
        raise FileError(str(folder), "must hold logged actions and losses")
    schema = replace(stays.schema, lag=source["lag"])
    return replace(stays, schema=schema, propensity=None)


def _seal(folder: Path) -> str:
    """Fingerprint of a data folder: its manifest lists the hash of every other file."""
    from etips.data.trajectory_writer import MANIFEST  # noqa: PLC0415

    try:
        return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
    except OSError as error:
        raise FileError(str(folder), f"must be a folder with {MANIFEST}") from error
