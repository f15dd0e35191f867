"""The files of a run folder by name, where a run may be written, and where it may train.

Without torch, which opening a run folder needs: a place that is taken is refused at once.
"""

from enum import StrEnum
from pathlib import Path

from etips.errors import FileError
from etips.files.lock import LOCK_NAME
from etips.policies.policy_manifest import MANIFEST

POLICY, PROPENSITY = "policy", "propensity"
CONFIG, PATH, CHOICE, RESULTS = "config.toml", "path.json", "choice.json", "results.json"
LOG, CHECKPOINT = "log.jsonl", "checkpoint"


class Device(StrEnum):
    """Where to train."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


def holds_policy(place: Path) -> bool:
    """Whether a policy is in a run folder."""
    return (place / POLICY / MANIFEST).is_file()


def require_room(place: Path, *, overwrite: bool) -> None:
    """Refuse before the work is done what could not be written after it."""
    if not place.parent.is_dir():
        raise FileError(str(place.parent), "must be a folder that exists")
    if not (place.exists() or place.is_symlink()):
        return
    if (place / CHECKPOINT).is_dir() and not place.is_symlink():
        return  # an interrupted run: the same command takes it up
    if place.is_dir() and all(path.name == LOCK_NAME for path in place.iterdir()):
        return  # empty, or killed before it had begun
    if not overwrite:
        raise FileError(str(place), "exists already", fix="Choose another, or --overwrite.")
    if not holds_policy(place):
        raise FileError(str(place), "is not a run folder, so it stays", fix="Choose another.")
