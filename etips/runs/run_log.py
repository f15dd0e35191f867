"""The log of a run: a line an epoch, and one for whatever else happened."""

import json
import math
from collections.abc import Mapping
from pathlib import Path

from etips.errors import FileError
from etips.files.writing import write_file
from etips.learn.training.epoch_report import EpochReport


class RunLog:
    """The run's `log.jsonl`: a line an epoch, and one for whatever else happened.

    The file is replaced whole, so that it never holds half a line. A resumed run goes through some
    epochs again; their lines are replaced too.

    Args:
        path: Where it is, or will be.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = read_log(path) if path.exists() else []

    def add(self, standing: EpochReport) -> None:
        """Log an epoch. Infinities and NaN, which JSON lacks, become null."""
        stage, epoch = standing.stage, standing.epoch
        self._lines = [line for line in self._lines if not _repeats(line, stage, epoch)]
        self._lines.append({name: _plain(value) for name, value in standing.to_json().items()})
        self._write()

    def note(self, stage: str, event: str) -> None:
        """Log something else, in words without a value from the data."""
        self._lines.append({"stage": stage, "event": event})
        self._write()

    def _write(self) -> None:
        text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in self._lines)
        write_file(self._path, text.encode())


def read_log(path: Path) -> list[dict[str, object]]:
    """The lines of a `log.jsonl`; half a line at the end, of a copy say, is left out."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise FileError(str(path), f"cannot be read: {error.strerror}") from error
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


def _repeats(line: Mapping[str, object], stage: str, epoch: float) -> bool:
    """Whether a line is of an epoch that the stage goes through again."""
    logged = line.get("epoch")
    return line.get("stage") == stage and isinstance(logged, int | float) and logged >= epoch


def _plain(value: float | str) -> float | str | None:
    return value if isinstance(value, str) or math.isfinite(value) else None
