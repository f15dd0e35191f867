"""The translation path of a fitted policy: every candidate, and which one was chosen.

A run folder keeps it in `path.json` beside the policy, which itself holds nothing but what it needs
to answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from etips.errors import FileError
from etips.files.json_documents import canonical, finite, read_document
from etips.files.writing import write_file
from etips.learn.learners.selection import Candidate

PATH, RESULTS = "path.json", "results.json"


def path_of(learner: object) -> list[dict[str, object]]:
    """The candidates a learner looked at, JSON-ready; empty for one that looks at none."""
    found = getattr(learner, "path_", ())
    return [_plain(c) for c in found if isinstance(c, Candidate)]


def keep_path(folder: Path, learner: object) -> None:
    """Write the path of a freshly fitted policy; results of an earlier policy go."""
    write_file(folder / PATH, canonical({"path": path_of(learner)}))
    (folder / RESULTS).unlink(missing_ok=True)


def read_path(folder: Path) -> Sequence[Mapping[str, object]]:
    """The path a run folder keeps; empty if there is none."""
    document = read_document(folder / PATH)
    if document is None:
        return ()
    found = document.get("path")
    if not isinstance(found, list) or not all(isinstance(c, dict) for c in found):
        raise FileError(str(folder / PATH), "is not a translation path", fix="Remove it.")
    return found


def _plain(candidate: Candidate) -> dict[str, object]:
    values = asdict(candidate)
    numbers = {name: finite(value) for name, value in values.items()}
    return {**numbers, "action": candidate.action, "chosen": candidate.chosen}
