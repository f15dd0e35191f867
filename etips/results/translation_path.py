"""The translation path of a fitted policy: every candidate, and which one was chosen.

A run folder keeps it in `path.json` beside the policy, which itself holds nothing but what it needs
to answer.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from etips.errors import FileError
from etips.files.json_documents import canonical, finite, read_document
from etips.files.writing import write_file
from etips.learn.learners.selection import Candidate
from etips.results.exhibits import PathCandidate

PATH, RESULTS = "path.json", "results.json"
_NUMBERS = ("translation", "risk", "std_error", "matching_factor", "effective_size")


def path_of(learner: object) -> tuple[Candidate, ...]:
    """The candidates a learner looked at; none for one that looks at none."""
    path = getattr(learner, "path_", ())
    return tuple(candidate for candidate in path if isinstance(candidate, Candidate))


def summarize_path(path: Sequence[Candidate]) -> tuple[PathCandidate, ...]:
    """The candidates as results show them; None where there is no number."""
    return tuple(
        PathCandidate(
            translation=finite(candidate.translation),
            action=candidate.action,
            risk=finite(candidate.risk),
            std_error=finite(candidate.std_error),
            matching_factor=finite(candidate.matching_factor),
            effective_size=finite(candidate.effective_size),
            chosen=bool(candidate.chosen),
            sound=bool(candidate.sound),
        )
        for candidate in path
    )


def path_to_json(path: Sequence[Candidate]) -> list[dict[str, object]]:
    """The candidates as files keep them."""
    return [
        {
            "action": candidate.action,
            "chosen": candidate.chosen,
            **{name: finite(getattr(candidate, name)) for name in _NUMBERS},
        }
        for candidate in path
    ]


def path_from_json(path: Sequence[Mapping[str, object]]) -> tuple[Candidate, ...]:
    """The candidates from what `path_to_json` made of them; NaN where there was no number."""
    return tuple(_candidate(entry) for entry in path)


def _candidate(entry: Mapping[str, object]) -> Candidate:
    numbers = {name: finite(entry.get(name)) for name in _NUMBERS}
    action = entry.get("action")
    return Candidate(
        action=action if isinstance(action, int) else None,
        chosen=bool(entry.get("chosen", False)),
        **{name: math.nan if number is None else number for name, number in numbers.items()},
    )


def keep_path(folder: Path, learner: object) -> None:
    """Write the path of a freshly fitted policy; results of an earlier policy go."""
    write_file(folder / PATH, canonical({"path": path_to_json(path_of(learner))}))
    (folder / RESULTS).unlink(missing_ok=True)


def read_path(folder: Path) -> tuple[Candidate, ...]:
    """The path a run folder keeps; empty if there is none."""
    document = read_document(folder / PATH)
    if document is None:
        return ()
    path = document.get("path")
    if not isinstance(path, list) or not all(isinstance(entry, dict) for entry in path):
        raise FileError(str(folder / PATH), "is not a translation path", fix="Remove it.")
    return path_from_json(path)
