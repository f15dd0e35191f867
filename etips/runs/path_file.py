"""The translation path of a fitted policy in a file: every candidate, and which one was chosen.

It stands beside the policy, which itself holds nothing but what it needs to answer.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from etips.errors import FileError
from etips.files.json_documents import canonical, finite, read_document
from etips.files.writing import write_file
from etips.learn.fitting.candidates import Candidate

_NUMBERS = ("translation", "risk", "std_error", "matching_factor", "effective_size", "strength")


def write_path(file: Path, path: Sequence[Candidate]) -> None:
    """Write the candidates."""
    write_file(file, canonical({"path": path_to_json(path)}))


def read_path(file: Path) -> tuple[Candidate, ...]:
    """The candidates that a file keeps; none if there is no file."""
    document = read_document(file)
    if document is None:
        return ()
    path = document.get("path")
    if not isinstance(path, list) or not all(isinstance(entry, dict) for entry in path):
        raise FileError(str(file), "is not a translation path", fix="Remove it.")
    return path_from_json(path)


def path_to_json(path: Iterable[Candidate]) -> list[dict[str, object]]:
    """The candidates as files keep them: null where there is no number."""
    return [
        {
            **asdict(candidate),
            **{name: finite(getattr(candidate, name)) for name in _NUMBERS},
        }
        for candidate in path
    ]


def path_from_json(path: Iterable[Mapping[str, object]]) -> tuple[Candidate, ...]:
    """The candidates that `path_to_json` wrote; NaN where there was no number."""
    return tuple(_candidate(entry) for entry in path)


def _candidate(entry: Mapping[str, object]) -> Candidate:
    numbers = {name: finite(entry.get(name)) for name in _NUMBERS}
    told = {name: math.nan if number is None else number for name, number in numbers.items()}
    action, epochs, form = entry.get("action"), entry.get("epochs"), entry.get("form")
    return Candidate(
        translation=told["translation"],
        action=action if isinstance(action, int) else None,
        risk=told["risk"],
        std_error=told["std_error"],
        matching_factor=told["matching_factor"],
        effective_size=told["effective_size"],
        chosen=entry.get("chosen") is True,
        acts="likeliest" if entry.get("acts") == "likeliest" else "draws",
        clinicians=entry.get("clinicians") is True,
        corrected=finite(entry.get("corrected")),
        corrected_error=finite(entry.get("corrected_error")),
        epochs=epochs if isinstance(epochs, int) else None,
        in_race=entry.get("in_race") is not False,
        form=form if isinstance(form, str) else "translated",
        strength=told["strength"],
    )
