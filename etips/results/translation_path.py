"""The translation path of a fitted policy: every candidate, and which one was chosen."""

import math
from collections.abc import Sequence
from dataclasses import replace

from etips.disclosure import shown_count
from etips.files.json_documents import finite
from etips.learn.fitting.candidates import Candidate
from etips.learn.learners.learner import Learner
from etips.results.path_candidate import PathCandidate


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
            acts=candidate.acts,
            clinicians=candidate.clinicians,
            corrected=candidate.corrected,
            corrected_error=candidate.corrected_error,
            epochs=candidate.epochs,
            in_race=candidate.in_race,
            form=candidate.form,
            strength=finite(candidate.strength),
        )
        for candidate in path
    )


def shown_path(path: Sequence[PathCandidate]) -> tuple[PathCandidate, ...]:
    """The candidates fit to be shown: with equal weights an effective size is a count."""
    return tuple(
        replace(
            candidate,
            effective_size=None
            if candidate.effective_size is None
            else shown_count(candidate.effective_size),
        )
        for candidate in path
    )


def restore_path(path: Sequence[PathCandidate]) -> tuple[Candidate, ...]:
    """The candidates from what results show of them; NaN where there is no number."""
    return tuple(
        Candidate(
            translation=_number(shown.translation),
            action=shown.action,
            risk=_number(shown.risk),
            std_error=_number(shown.std_error),
            matching_factor=_number(shown.matching_factor),
            effective_size=_number(shown.effective_size),
            chosen=shown.chosen,
            acts="likeliest" if shown.acts == "likeliest" else "draws",
            clinicians=shown.clinicians,
            corrected=shown.corrected,
            corrected_error=shown.corrected_error,
            epochs=shown.epochs,
            in_race=shown.in_race,
            form=shown.form,
            strength=_number(shown.strength),
        )
        for shown in path
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else value
