"""The translation path of a fitted policy: every candidate, and which one was chosen."""

from collections.abc import Sequence

from etips.files.json_documents import finite
from etips.learn.fitting.candidates import Candidate
from etips.learn.learners.learner import Learner
from etips.results.exhibits import PathCandidate


def path_of(learner: object) -> tuple[Candidate, ...]:
    """The candidates a learner looked at; none for one that looks at none."""
    return learner.path_ if isinstance(learner, Learner) else ()


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
