"""Whether a loss looks like a benefit, or a reward like a harm: by its name, or by who has it."""

import re

import numpy as np

from etips.data.intake.leaks import words_of
from etips.data.trajectories import Trajectories
from etips.notes import note

_BENEFIT = {
    *("survived", "survival", "survivor", "alive", "recovered", "recovery", "improved", "reward"),
    *("improvement", "cured", "cure", "success", "successful", "remission", "weaned", "benefit"),
    *("responder", "responded", "independent", "qol", "utility", "barthel", "karnofsky"),
}
_BENEFIT_TOGETHER = ({"discharged", "home"}, {"discharge", "home"}, {"free", "days"})
_TIME = {"time", "days", "hours", "until", "duration"}  # until recovery: less is better
_NOT = {"not", "no", "non", "without", "failure", "failed", "fail", "lack", "loss", "unsuccessful"}
_HARM = {
    *("died", "dead", "death", "deceased", "mortality", "expired", "harm", "loss", "cost", "risk"),
    *("readmission", "readmitted", "complication", "bleeding", "relapse", "failure", "adverse"),
}
_MORE_IS_WORSE = {
    *(
        "sofa",
        "qsofa",
        "lactate",
        "age",
        "apache",
        "apacheii",
        "saps",
        "sapsii",
        "nihss",
        "severity",
    ),
    *("news", "mews", "euroscore", "charlson", "elixhauser", "creatinine", "meld", "oasis", "lods"),
    *("mods", "psi", "curb", "timi", "killip", "bun", "mrs", "rankin"),
}
_MORE_IS_BETTER = {"gcs", "glasgow", "barthel", "karnofsky", "albumin", "spo", "pao"}

_CODED = re.compile(r"(code|status|type|class|cd|dispo\w*|destin\w*)$", re.IGNORECASE)
_MOST_CODES = 12
_MOST_LOOKED_AT = 1000  # losses that tell amounts from codes
_CLEAR = 4.0  # standard errors of a correlation that is not by chance
_AT_LEAST = 0.1  # a correlation that means something


def ask_codes(data: Trajectories, *, column: str) -> None:
    """Ask by a note whether the numbers of a loss are codes, some of which are the harm.

    Args:
        data: The log, losses as they stand in the table.
        column: Of the loss.
    """
    known = data.logged_loss[~np.isnan(data.logged_loss)]
    few = np.unique(known[:_MOST_LOOKED_AT]).size <= _MOST_CODES  # cheap, of amounts
    values = np.unique(known) if few else known[:0]
    if not 2 <= values.size <= _MOST_CODES or (values != np.round(values)).any():
        return
    if values.tolist() == [0, 1] or (values.size > 2 and not _CODED.search(column)):
        return
    note(
        f"{column} holds {values.size} different whole numbers: are they codes? Then name those "
        "that are the harm, which count 1 and the others 0: --bad 1,2"
    )


def ask_direction(data: Trajectories, *, column: str, reward: bool) -> None:
    """Ask by a note whether the outcome was meant the other way round.

    Args:
        data: The log, losses as they will be used.
        column: Of the outcome.
        reward: Whether it was given as a reward.
    """
    if reward:
        if is_harm(column):
            note(f"{column} looks like a harm: should it be --loss {column}, not a reward?")
        return
    if is_benefit(column):
        note(f"{column} looks like a benefit: should it be --reward {column}, not a loss?")
    elif not is_harm(column) and (features := _wrong_way(data)):
        shown = ", ".join(features[:3])
        note(
            f"{column} is lower where {shown} is worse, as a benefit would be: should it be "
            f"--reward {column}, not a loss?"
        )


def is_benefit(name: str) -> bool:
    """Whether a column is called like something good."""
    words = words_of(name)
    if words & _NOT:
        return False
    if words & _TIME and not words & {"survival", "survived", "alive", "free"}:
        return False
    return bool(words & _BENEFIT) or any(pair <= words for pair in _BENEFIT_TOGETHER)


def is_harm(name: str) -> bool:
    """Whether a column is called like something bad."""
    words = words_of(name)
    return bool(words & _HARM) and not words & ({"free"} | (_NOT - {"loss", "failure"}))


def _wrong_way(data: Trajectories) -> list[str]:
    """Signs of severity with which the loss falls, if no other says the opposite."""
    if not data.logged or data.n_decisions < 30:
        return []
    loss, stay, seen = data.logged_loss, data.decisions().stay, data.seen_rows
    n_people = np.unique(data.cluster).size
    wrong, right, signs = [], 0, 0
    for place, name in enumerate((*data.schema.sequence, *data.schema.static)):
        words = words_of(name)
        sign = bool(words & _MORE_IS_WORSE) - bool(words & _MORE_IS_BETTER)
        if not sign or words & {"missing"}:
            continue
        width = len(data.schema.sequence)
        values = (
            np.asarray(data.sequence[seen])[:, place]
            if place < width
            else data.static[stay, place - width]
        )
        signs += 1
        size, error = _correlation(values.astype(np.float64), loss, n_people)
        wrong += [name] if sign * size < -max(_AT_LEAST, _CLEAR * error) else []
        right += sign * size > _CLEAR * error
    return wrong if not right and len(wrong) >= min(2, signs) else []


def _correlation(values: np.ndarray, loss: np.ndarray, n_people: int) -> tuple[float, float]:
    """Correlation of what is known of both, and its standard error by patient."""
    known = ~np.isnan(values) & ~np.isnan(loss)
    if known.sum() < 30 or not np.ptp(values[known]) or not np.ptp(loss[known]):
        return 0.0, 1.0
    size = float(np.corrcoef(values[known], loss[known])[0, 1])
    return size, float(np.sqrt(max(1 - size**2, 1e-12) / max(n_people - 2, 1)))
