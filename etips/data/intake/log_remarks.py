"""What to know of a log before anything is learned: rare actions, codes, a benefit as loss."""

import re

import numpy as np

from etips.data.coded import Floats32
from etips.data.decisions import NO_ACTION, Bools, Floats
from etips.data.intake.leaks import note_leaks, words_of
from etips.data.sizes import count_missing_losses
from etips.data.trajectories import Trajectories
from etips.disclosure import FEW, LEAST_PEOPLE, are_few, shown_or_few, tells_few
from etips.errors import as_option
from etips.notes import note

_MOST_NAMED = 8  # rare actions

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
    *("sofa", "qsofa", "lactate", "age", "apache", "apacheii", "saps", "sapsii", "nihss"),
    *("news", "mews", "euroscore", "charlson", "elixhauser", "creatinine", "meld", "oasis", "lods"),
    *("mods", "psi", "curb", "timi", "killip", "bun", "mrs", "rankin", "severity"),
}
_MORE_IS_BETTER = {"gcs", "glasgow", "barthel", "karnofsky", "albumin", "spo", "pao"}

_CODED = re.compile(r"(code|status|type|class|cd|dispo\w*|destin\w*)$", re.IGNORECASE)
_MOST_CODES = 12
_MOST_LOOKED_AT = 1000  # losses that tell amounts from codes
_CLEAR = 4.0  # standard errors of a correlation that is not by chance
_AT_LEAST = 0.1  # a correlation that means something
_FEWEST_DECISIONS = 30  # that tell one

_CODES = (-9, -99, -999, -9999, -99999, 99, 999, 9999, 99999)  # of registries, for not known
_UNKNOWN = ("unknown", "unk", "not known", "not recorded", "missing", "unbekannt", "inconnu")
_CHUNK = 4096  # rows looked at together: they lie side by side, columns do not


def remark_on_log(data: Trajectories, *, column: str | None, reward: bool) -> None:
    """Say what the reader of a log should know before anything is learned from it."""
    if not data.logged or data.n_decisions == 0:
        return
    _on_no_action(data)
    _on_rare_actions(data)
    known = data.logged_loss[~np.isnan(data.logged_loss)]
    if known.size and (known == known[0]).all():
        gaps = ". An empty cell is not known: write 0 where it means no"
        cause = "" if count_missing_losses(data) is None else gaps
        note(f"every known loss is the same: nothing compares{cause}")
    _on_missing_codes(data)
    if column is not None:
        _on_direction(data, column, reward=reward)
        recipe = data.schema.recipe
        if not reward and recipe is not None and not recipe.outcome.words:
            _on_codes_of_loss(known, column)
    note_leaks(data)


def remark_on_lag(data: Trajectories, *, fixed: bool = False) -> None:
    """Say how many steps with an action and a loss are no decisions as nothing comes before."""
    if data.schema.lag != 1 or data.action is None or data.loss is None:
        return
    first = data.offsets[:-1]
    known: Bools = data.action[first] != NO_ACTION
    if data.missing_loss == "drop":
        known = known & ~np.isnan(data.loss[first])
    if data.eligible is not None:
        known = known & data.eligible[first]
    count = int(known.sum())
    if not count:
        return
    people = np.unique(data.cluster).size
    others = (data.n_stays, data.n_steps, data.n_decisions, people, data.n_steps - data.n_decisions)
    apart = not tells_few(count, others) or are_few(count)
    shown = shown_or_few(count) if apart else f"about {round(count, -1):,}"
    remedy = "" if fixed else "; --lag 0 keeps them"
    note(f"lag 1: {shown} first steps of stays are no decisions{remedy}")


def _on_no_action(data: Trajectories) -> None:
    assert data.action is not None
    count = int((data.action == NO_ACTION).sum())
    if count:
        rows = f"{FEW} rows have" if are_few(count) else f"{count:,} of {data.n_steps:,} rows have"
        note(f"{rows} no action and are no decisions")
    taken = np.unique(data.logged_action)
    if taken.size == 1:
        fix = ". An empty cell is no decision: write a label where none was given" if count else ""
        name = data.schema.action_name(taken[0])
        note(f"every decision has the same action, {name}: nothing compares{fix}")


def _on_rare_actions(data: Trajectories) -> None:
    """Which actions hardly anybody got, without how many those were."""
    cluster, action, k = data.cluster, data.logged_action, data.n_actions
    if int(cluster.max() + 1) * k <= 8 * cluster.size:  # a mark each is cheapest
        got = np.zeros((int(cluster.max()) + 1, k), bool)
        got[cluster, action] = True
        people = got.sum(axis=0)
    else:
        people = np.bincount(np.unique(cluster.astype(np.int64) * k + action) % k, minlength=k)
    names = [data.schema.action_name(int(rare)) for rare in np.flatnonzero(people < LEAST_PEOPLE)]
    if names:
        shown = "; ".join(names[:_MOST_NAMED]) + ("; ..." if len(names) > _MOST_NAMED else "")
        were, them = ("was", "it") if len(names) == 1 else ("were", "them")
        note(
            f"{len(names)} of {k} actions {were} taken by fewer than "
            f"{LEAST_PEOPLE} people, or by nobody: {shown}. Little can be learned about {them}."
        )


def _on_codes_of_loss(known: Floats, column: str) -> None:
    """Ask whether the numbers of a loss are codes, some of which are the harm."""
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


def _on_direction(data: Trajectories, column: str, *, reward: bool) -> None:
    """Ask whether the outcome was meant the other way round."""
    words = words_of(column)
    harm = words & _HARM and not words & ({"free"} | (_NOT - {"loss", "failure"}))
    benefit = words & _BENEFIT or any(pair <= words for pair in _BENEFIT_TOGETHER)
    until = words & _TIME and not words & {"survival", "survived", "alive", "free"}
    if reward:
        if harm:
            note(f"{column} looks like a harm: should it be --loss {column}, not a reward?")
    elif benefit and not (words & _NOT or until):
        note(f"{column} looks like a benefit: should it be --reward {column}, not a loss?")
    elif not harm and (features := _falling_with_severity(data)):
        shown = ", ".join(features[:3])
        note(
            f"{column} is lower where {shown} is worse, as a benefit would be: should it be "
            f"--reward {column}, not a loss?"
        )


def _falling_with_severity(data: Trajectories) -> list[str]:
    """Signs of severity with which the loss falls, if no other says the opposite."""
    if data.n_decisions < _FEWEST_DECISIONS:
        return []
    loss, stay, seen = data.logged_loss, data.decisions().stay, data.seen_rows
    n_people = np.unique(data.cluster).size
    wrong, right, signs = [], 0, 0
    width = len(data.schema.sequence)
    for place, name in enumerate((*data.schema.sequence, *data.schema.static)):
        words = words_of(name)
        sign = bool(words & _MORE_IS_WORSE) - bool(words & _MORE_IS_BETTER)
        if not sign or "missing" in words:
            continue
        signs += 1
        static = place >= width
        values = data.static[stay, place - width] if static else data.sequence[seen][:, place]
        known = ~np.isnan(values) & ~np.isnan(loss)
        enough = known.sum() >= _FEWEST_DECISIONS
        if not enough or not np.ptp(values[known]) or not np.ptp(loss[known]):
            continue
        size = sign * float(np.corrcoef(values[known].astype(np.float64), loss[known])[0, 1])
        error = _CLEAR * float(np.sqrt(max(1 - size**2, 1e-12) / max(n_people - 2, 1)))
        wrong += [name] if size < -max(_AT_LEAST, error) else []
        right += size > error
    return wrong if not right and len(wrong) >= min(2, signs) else []


def _on_missing_codes(data: Trajectories) -> None:
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
    reading = None if schema.recipe is None else schema.recipe.action
    for label in schema.actions:
        if _means_unknown(label, schema.actions):
            alone = reading is not None and len(reading.columns) == 1
            mark = f"{reading.columns[0]}={label}" if alone and reading is not None else label
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
    return np.isin(least, _CODES) | np.isin(most, _CODES)


def _code_apart(values: Floats32) -> int | None:
    """A code at an end of the values, as far from the others as they are from one another."""
    known = values[~np.isnan(values)]
    for end in (known.max(), known.min()) if known.size else ():
        rest = known[known != end]
        if end not in _CODES or min(rest.size, known.size - rest.size) < LEAST_PEOPLE:
            continue
        if np.abs(rest - end).min() > max(float(np.ptp(rest)), 1.0):
            return int(end)
    return None


def _means_unknown(label: str, labels: tuple[str, ...]) -> bool:
    """Whether a label says that it is not known, or is a code far from the other codes."""
    if label.strip().lower() in _UNKNOWN:
        return True
    try:
        numbers = np.array([float(own) for own in labels])
    except ValueError:
        return False
    own = float(label)
    rest = numbers[numbers != own]
    return own in _CODES and bool(rest.size and np.abs(rest).max() < abs(own) / 2)
