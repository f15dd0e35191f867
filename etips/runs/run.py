"""A run folder at work: one process at a time, resumable at any moment, with a log.

What training leaves in `checkpoint/` only saves time: it is determined by data, settings and seed.
So a damaged checkpoint is reported and done without, and the run ends with the same bytes. One that
belongs to other data or settings is refused, since going on or starting anew would both be guesses.
"""

import json
import logging
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Self

import torch

from etips.errors import EtipsError, FileError, SettingError, require_number
from etips.files.fingerprint import fingerprint
from etips.files.lock import Lock
from etips.files.writing import refusing, write_file
from etips.learn.training.epoch_report import EpochReport, Report
from etips.learn.training.settings import Settings
from etips.learn.training.state import State
from etips.models.bundle import Bundle
from etips.runs.checkpoint import (
    DamagedError,
    Mark,
    is_sound,
    load_checkpoint,
    read_mark,
    require_mark,
    save_networks,
    save_state,
)
from etips.runs.places import CHECKPOINT, LOG

EVERY = 10.0
"""Seconds of work, and an epoch, that a killed run may lose."""

_WORTH = 50  # a state is saved if saving costs at most this part of the time since the last
_SUFFIX = ".safetensors"
_FOLDER_MODE = 0o700  # patient data: no other user of the machine looks inside
_logger = logging.getLogger(__name__)


class RunLog:
    """The run's `log.jsonl`: a line an epoch, and one for whatever else happened.

    The file is replaced whole, so that it never holds half a line. A resumed run goes through some
    epochs again; their lines are replaced too.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = read_log(path) if path.exists() else []

    def add(self, at: EpochReport) -> None:
        """Log an epoch. Infinities and NaN, which JSON lacks, become null."""

        def comes_again(line: dict[str, object]) -> bool:
            epoch = line.get("epoch")
            past = isinstance(epoch, int | float) and epoch >= at.epoch
            return line.get("stage") == at.stage and past

        self._lines = [line for line in self._lines if not comes_again(line)]
        self._append(
            {
                name: value if isinstance(value, str) or math.isfinite(value) else None
                for name, value in at.to_json().items()
            }
        )

    def note(self, stage: str, event: str) -> None:
        """Log something else, in words without a value from the data."""
        self._append({"stage": stage, "event": event})

    def _append(self, line: dict[str, object]) -> None:
        self._lines.append(line)
        text = "".join(json.dumps(own, allow_nan=False) + "\n" for own in self._lines)
        write_file(self._path, text.encode())


def read_log(path: Path) -> list[dict[str, object]]:
    """The lines of a `log.jsonl`; half a line at the end, of a copy say, is left out."""
    with refusing(path, "cannot be read"):
        lines = path.read_bytes().split(b"\n")
    entries: list[dict[str, object]] = []
    for number, line in enumerate(lines, start=1):
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines):
                break
            raise FileError(str(path), f"line {number} is not JSON", fix="Remove it.") from error
        if not isinstance(values, dict):
            raise FileError(str(path), f"line {number} must be an object", fix="Remove it.")
        entries.append(values)
    return entries


class KeptStage:
    """Where a training stood when it was begun, and a way to keep where it stands.

    Args:
        name: What it is called in the run folder.
        path: Its checkpoint, and what that belongs to, `mark`.
        every: Seconds between two checkpoints.
        earlier: What an earlier process left.
    """

    def __init__(
        self,
        name: str,
        path: Path,
        mark: Mark,
        log: RunLog,
        *,
        every: float = EVERY,
        earlier: State | Bundle | None = None,
    ) -> None:
        self.name = name
        self.state = earlier if isinstance(earlier, State) else None
        self.networks = earlier if isinstance(earlier, Bundle) else None
        self._path, self._mark, self._log, self._every = path, mark, log, every
        self._saved, self._cost = time.monotonic(), 0.0

    def keep(self, state: State) -> None:
        """Save the state if it is time, or if saving is cheap."""
        began = time.monotonic()
        since = began - self._saved
        if since >= min(self._every, _WORTH * self._cost):
            if is_sound(state):
                save_state(self._path, state, self._mark)
            self._saved = time.monotonic()
            self._cost = self._saved - began

    def finish(self, networks: Bundle) -> Bundle:
        """Save the networks in place of the state, so that a resumed run skips the stage.

        Returns them laid out in memory as a resumed run will find them, since what comes after may
        round by that.
        """
        save_networks(self._path, networks, self._mark)
        return networks.select(range(networks.n_members))

    def reporting(self, report: Report | None) -> Report:
        """A report that also says which stage it is, and writes the log."""

        def both(standing: EpochReport) -> None:
            named = replace(standing, stage=self.name)
            self._log.add(named)
            if report is not None:
                report(named)

        return both


class Run:
    """A run folder in use; `with` takes its lock. It is the `Checkpoints` of one learner.

    Args:
        folder: Made if it is not there; its parent must be.
        identity: Fingerprint of the learner and its data.
        every: Seconds between two checkpoints; 0 keeps every epoch.
    """

    def __init__(self, folder: str | Path, identity: str, *, every: float = EVERY) -> None:
        require_number("every", every)
        if not every >= 0:
            raise SettingError("every", "must be 0 or more seconds")
        self.folder = Path(folder)
        self._checkpoints = self.folder / CHECKPOINT
        self._identity = fingerprint(work=identity, torch=torch.__version__)
        self._every = every
        self._lock = Lock(self.folder)
        self._log: RunLog | None = None

    def __enter__(self) -> Self:
        self._made = not self.folder.exists()
        _make(self.folder)
        self._lock.__enter__()
        try:
            _make(self._checkpoints)
            self._refuse_others()
            self._log = RunLog(self.folder / LOG)
        except BaseException:
            self._lock.__exit__()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        refused = kind is not None and issubclass(kind, EtipsError)
        # Only what this process began, and only for its input: hours of work are not thrown away
        # because a resumed run finds no GPU, or because the policy cannot be written.
        take_back = refused and self._made and not issubclass(kind or object, FileError)
        if take_back:
            self.clear()
            (self.folder / LOG).unlink(missing_ok=True)
        self._lock.__exit__()
        if take_back and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def stage(self, name: str, start: Bundle, settings: Settings) -> KeptStage:
        """Begin a training, or take it up where an earlier process was stopped."""
        log = self._log_in_use()
        if not name.replace("-", "").isalnum() or not name.isascii():
            raise SettingError("stage", "must be named by letters, digits and hyphens")
        own = fingerprint(
            name=name, start=start.parameters, settings=settings, device=start.device.type
        )
        mark = Mark(self._identity, own)
        path = stage_file(self.folder, name)
        earlier = self._find(name, path, start, mark)
        return KeptStage(name, path, mark, log, every=self._every, earlier=earlier)

    def part_size(self, name: str) -> int | None:
        """Networks a part of a stage that was cut into parts; None if it was not, or is new."""
        for path in self._checkpoints.glob(f"{name}-0-*{_SUFFIX}"):
            stop = path.name[len(f"{name}-0-") : -len(_SUFFIX)]
            if stop.isdecimal() and int(stop) > 0:
                return int(stop)
        return None

    def note(self, stage: str, event: str) -> None:
        """Write a line into the log, in words without a value from the data."""
        self._log_in_use().note(stage, event)

    def clear(self) -> None:
        """Remove the checkpoints, once what they led to is safely written."""
        for path in self._checkpoints.iterdir():
            if path.suffix in (_SUFFIX, ".part"):
                path.unlink()
        if not any(self._checkpoints.iterdir()):  # what is not ours stays
            self._checkpoints.rmdir()

    def _log_in_use(self) -> RunLog:
        """The log, which a run that nobody entered does not have."""
        if self._log is None:
            raise SettingError("run", "must be a run in use", fix="Use with Run(...) as run.")
        return self._log

    def _find(self, name: str, path: Path, start: Bundle, mark: Mark) -> State | Bundle | None:
        if not path.exists():
            return None
        try:
            earlier = load_checkpoint(path, start, mark)
        except DamagedError as error:
            _logger.warning("%s Stage %s starts from its beginning.", error, name)
            self._log_in_use().note(name, "checkpoint damaged, started from the beginning")
            return None
        if isinstance(earlier, State):
            self._log_in_use().note(name, f"resumed in epoch {earlier.epoch + 1}")
        return earlier

    def _refuse_others(self) -> None:
        """Refuse another run's checkpoints now, not hours later at the stage they belong to."""
        for path in sorted(self._checkpoints.glob(f"*{_SUFFIX}")):
            try:
                mark = read_mark(path)
            except DamagedError:
                continue  # reported by the stage it belongs to
            require_mark(path, mark, Mark(self._identity, mark.stage))


def stage_file(folder: Path, name: str) -> Path:
    """Where a run folder keeps a stage of training."""
    return folder / CHECKPOINT / f"{name}{_SUFFIX}"


def _make(folder: Path) -> None:
    if not folder.parent.is_dir():
        raise FileError(str(folder.parent), "must be a folder that exists")
    if folder.exists() and not folder.is_dir():
        raise FileError(str(folder), "must be a folder")
    with refusing(folder, "cannot be made"):
        folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
