"""What to know of a log before anything is learned: rare actions, codes, a benefit as loss."""

import re

import numpy as np

from etips.data.coded import Floats32
from etips.data.decisions import NO_ACTION, Bools
from etips.data.intake.leaks import note_leaks, words_of
from etips.data.sizes import count_missing_losses
from etips.data.trajectories import Trajectories
from etips.disclosure import FEW, LEAST_PEOPLE, are_few
from etips.errors import as_option
from etips.notes import note

_MOST_NAMED = 8


def remark_on_log(data: Trajectories, *, column: str | None, reward: bool) -> None:
    """Tell what the reader of a log should know before anything is learned from it."""
    if not data.logged or data.n_decisions == 0:
        return
    note_no_action(data)
    note_rare_actions(data)
    note_equal_losses(data)
    ask_missing_codes(data)
    if column is not None:
        ask_direction(data, column=column, reward=reward)
        recipe = data.schema.recipe
        if not reward and recipe is not None and not recipe.outcome.words:
            ask_codes(data, column=column)
    note_leaks(data)


def note_no_action(data: Trajectories) -> None:
    """Tell how many rows have no action."""
    assert data.action is not None
    count = int((data.action == NO_ACTION).sum())
    if count:
        rows = f"{FEW} rows have" if are_few(count) else f"{count:,} of {data.n_steps:,} rows have"
        note(f"{rows} no action and are no decisions")


def note_rare_actions(data: Trajectories) -> None:
    """Tell which actions hardly anybody got, without how many those were."""
    rare, schema = rare_actions(data), data.schema
    taken = np.unique(data.logged_action)
    if taken.size == 1:
        assert data.action is not None
        empty = bool((data.action == NO_ACTION).any())
        fix = ". An empty cell is no decision: write a label where none was given" if empty else ""
        name = schema.action_name(taken[0])
        note(f"every decision has the same action, {name}: nothing compares{fix}")
    if not rare:
        return
    names = [schema.action_name(number) for number in rare]
    shown = "; ".join(names[:_MOST_NAMED]) + ("; ..." if len(names) > _MOST_NAMED else "")
    one = len(rare) == 1
    note(
        f"{len(rare)} of {schema.n_actions} actions {'was' if one else 'were'} taken by fewer than "
        f"{LEAST_PEOPLE} people, or by nobody: {shown}. Little can be learned about "
        f"{'it' if one else 'them'}."
    )


def note_equal_losses(data: Trajectories) -> None:
    """Tell where every decision has the same loss, as if only events had been written down."""
    known = data.logged_loss[~np.isnan(data.logged_loss)]
    if not known.size or (known != known[0]).any():
        return
    missing = count_missing_losses(data)
    cause = "" if missing is None else ". An empty cell is not known: write 0 where it means no"
    note(f"every known loss is the same: nothing compares{cause}")


def rare_actions(data: Trajectories) -> list[int]:
    """Actions that fewer than eleven people got, or nobody."""
    cluster, action, k = data.cluster, data.logged_action, data.n_actions
    if cluster.size and int(cluster.max() + 1) * k <= 8 * cluster.size:  # a mark each is cheapest
        got = np.zeros((int(cluster.max()) + 1, k), bool)
        got[cluster, action] = True
        people = got.sum(axis=0)
    else:
        pairs = np.unique(cluster.astype(np.int64) * k + action)
        people = np.bincount(pairs % k, minlength=k)
    return [int(number) for number in np.flatnonzero(people < LEAST_PEOPLE)]


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
    """Ask by a note whether the numbers of a loss are codes, some of which are the harm."""
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
    """Ask by a note whether the outcome was meant the other way round."""
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


CODES = (-9, -99, -999, -9999, -99999, 99, 999, 9999, 99999)
"""What registries write for a value that nobody has."""

UNKNOWN = ("unknown", "unk", "not known", "not recorded", "missing", "unbekannt", "inconnu")
"""Labels of a treatment, in small letters, that mean the same."""

_CHUNK = 4096  # rows looked at together: they lie side by side, columns do not


def ask_missing_codes(data: Trajectories) -> None:
    """Ask about columns and actions in which a well-known code stands apart from all the rest."""
    schema = data.schema
    kinds = {} if schema.recipe is None else schema.recipe.kinds
    for names, values in ((schema.sequence, data.sequence), (schema.static, data.static)):
        if not isinstance(values, np.ndarray):
            continue
        suspect = _end_in_codes(values)
        for at, name in enumerate(names):
            if suspect[at] and name in kinds and kinds[name].kind == "number":
                code = _code_apart(values[:, at])
                if code is not None:
                    found = f"column {name} holds {code} and nothing near it"
                    _ask(found, "a missing value", f"{name}={code}")
    for label in schema.actions:
        if _means_unknown(label, schema.actions):
            column = (
                ()
                if schema.recipe is None or schema.recipe.action is None
                else (schema.recipe.action.columns)
            )
            mark = f"{column[0]}={label}" if len(column) == 1 else label
            _ask(f"{label} is read as an action", "an unknown one", mark)


def _ask(found: str, what: str, mark: str) -> None:
    note(f"{found}: does it stand for {what}? Then say --na {as_option(mark)}")


def _end_in_codes(values: Floats32) -> Bools:
    """Whether the least or the largest value of each column is a code, shape (d,)."""
    least = np.full(values.shape[1], np.nan, np.float32)
    most = least.copy()
    for start in range(0, len(values), _CHUNK):
        part = values[start : start + _CHUNK]
        least = np.fmin(least, np.fmin.reduce(part, axis=0))
        most = np.fmax(most, np.fmax.reduce(part, axis=0))
    return np.isin(least, CODES) | np.isin(most, CODES)


def _code_apart(values: Floats32) -> int | None:
    """A code at an end of the values, as far from the others as they are from one another."""
    known = values[~np.isnan(values)]
    for end in (known.max(), known.min()) if known.size else ():
        if end not in CODES:
            continue
        rest = known[known != end]
        if rest.size < LEAST_PEOPLE or known.size - rest.size < LEAST_PEOPLE:
            continue
        if np.abs(rest - end).min() > max(float(np.ptp(rest)), 1.0):
            return int(end)
    return None


def _means_unknown(label: str, labels: tuple[str, ...]) -> bool:
    """Whether a label says that nobody knows, or is a code far from the other codes."""
    if label.strip().lower() in UNKNOWN:
        return True
    try:
        numbers = np.array([float(own) for own in labels])
    except ValueError:
        return False
    own = float(label)
    rest = numbers[numbers != own]
    return own in CODES and bool(rest.size and np.abs(rest).max() < abs(own) / 2)
