"""Features that nobody can have known at the decision: they follow from the outcome or the action.

Looked at is what a decision may see, against its own loss and action. A strong predictor is no
leak: a feature is told of only where it leaves next to nothing open.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from etips.data.decisions import Floats, Ints
from etips.data.schema import MISSING_SUFFIX
from etips.data.trajectories import Trajectories
from etips.errors import as_option
from etips.notes import note

_LEAST_DECISIONS = 50  # with fewer, chance alone makes features that fit perfectly
_MOST_DECISIONS = 8_000  # enough to see what is nearly perfect, and a millisecond a column
_PERFECT = 0.99  # of Somers' D (an AUC of 0.995), of the variance explained, of the actions
_MOST_LEVELS = 50  # a column of fewer values is looked at value by value
_PER_LEVEL = 20  # decisions a level, at least, lest many levels explain anything
_DOOMED = 100  # people with a level, at least: among the sickest 30 all may have died
_HEALTHY = 0.05  # of the usual share of the rarer loss: less is hardly true of any group
_EXPECTED = 18.0  # losses at that share, where none is seen: a chance of one in a hundred million

Reason = Literal["loss", "part of the loss", "action", "name"]

_WORDS: dict[Reason, tuple[str, str]] = {
    "loss": ("foretells the loss almost perfectly", "foretell the loss almost perfectly"),
    "part of the loss": (
        "has values with which the loss is certain",
        "have values with which the loss is certain",
    ),
    "action": (
        "tells almost perfectly which action was taken",
        "tell almost perfectly which action was taken",
    ),
    "name": (
        "is called like something that is known only afterwards",
        "are called like something that is known only afterwards",
    ),
}
_LATER = {
    *("dead", "died", "death", "deceased", "dod", "deathtime", "mortality", "survived", "survival"),
    *("alive", "readmission", "readmitted", "followup", "autopsy"),
}
_LATER_TOGETHER = [
    {"discharge", word} for word in ("date", "time", "status", "disposition", "location", "home")
] + [{"length", "stay"}, {"follow", "up"}, {"discharged", "home"}]
_EARLIER = {
    *("risk", "score", "predicted", "prediction", "probability", "previous", "prior", "history"),
    *("family", "before", "admission", "expected", "baseline"),
}


@dataclass(frozen=True)
class Leak:
    """A column of the table that gives away what comes after the decision."""

    column: str
    reason: Reason


def find_leaks(data: Trajectories) -> list[Leak]:
    """Columns that follow from the loss or the action of the decisions; none without a log."""
    if not data.logged or data.n_decisions == 0:
        return []
    schema, n = data.schema, data.n_decisions
    marks = {name + MISSING_SUFFIX for name in schema.indicators}
    names = [name for name in (*schema.sequence, *schema.static) if name not in marks]
    sources = list(dict.fromkeys(_source(name, schema.categories) for name in names))
    named = [Leak(source, "name") for source in sources if _is_later(data, source)]
    if n < _LEAST_DECISIONS:
        return named
    chosen = np.arange(0, n, max(1, n // _MOST_DECISIONS))
    sequence = np.asarray(data.sequence[data.seen_rows[chosen]])
    static = data.static[data.decisions().stay[chosen]]
    columns = [*sequence.T, *static.T]
    values = dict(zip((*schema.sequence, *schema.static), columns, strict=True))
    action = data.logged_action[chosen]  # and the parts that it combines
    actions = [action, *(np.array(part.of_action)[action] for part in schema.components)]
    found = []
    for source in sources:
        own = [values.get(source)]
        if source in schema.categories:
            levels = [values[f"{source}={level}"] for level in schema.categories[source]]
            parts = np.stack(levels, axis=1)
            own = [np.where(np.isnan(parts).any(axis=1), -1, parts.argmax(axis=1))]
        own.append(values.get(source + MISSING_SUFFIX))
        loss, person = data.logged_loss[chosen], data.cluster[chosen]
        reasons = [_reason(o.astype(float), loss, actions, person) for o in own if o is not None]
        reason = next((reason for reason in reasons if reason is not None), None)
        if reason is not None:
            found.append(Leak(source, reason))
    known = {leak.column for leak in found}
    return found + [leak for leak in named if leak.column not in known]


def note_leaks(data: Trajectories) -> None:
    """Say which columns leak, one line for each reason."""
    leaks = find_leaks(data)
    for reason, (one, many) in _WORDS.items():
        columns = [leak.column for leak in leaks if leak.reason == reason]
        if not columns:
            continue
        which, known, them = f"columns {', '.join(columns)}: {many}", "Were they known", "them"
        if len(columns) == 1:
            which, known, them = f"column {columns[0]}: {one}", "Was it known", "it"
        drop = f"--drop {as_option(*columns)}"
        note(f"{which}. {known} before the decision? If not, leave {them} out: {drop}")


def _source(name: str, categories: Mapping[str, tuple[str, ...]]) -> str:
    """The column of the table that a feature was made of."""
    source = name.partition("=")[0]
    return source if source in categories else name


def _reason(column: Floats, loss: Floats, actions: Sequence[Ints], person: Ints) -> Reason | None:
    """What a column gives away, if anything."""
    known = ~np.isnan(column) & ~np.isnan(loss)
    values, loss = column[known], loss[known]
    if values.size < _LEAST_DECISIONS or not np.ptp(values):
        return None
    order = np.argsort(values, kind="stable")
    code, count = _levels(values[order], order)
    few = count.size <= min(_MOST_LEVELS, values.size // _PER_LEVEL)
    if np.ptp(loss):
        if _orders(_ranks(code, count), loss) or (few and _explains(code, loss)):
            return "loss"
        if few and _is_certain(code, loss, person[known]):
            return "part of the loss"
    return "action" if any(_tells(order, code, own[known], few=few) for own in actions) else None


def _levels(ordered: Floats, order: Ints) -> tuple[Ints, Ints]:
    """Number of each value among the different ones, by size, and how often each occurs."""
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    code = np.empty(order.size, np.int64)
    code[order] = np.cumsum(first) - 1
    return code, np.diff(np.flatnonzero(first), append=order.size)


def _orders(ranks: Floats, loss: Floats) -> bool:
    """Whether a feature puts the losses in order: by AUC for two losses, else by rank."""
    bad = loss == loss.max()
    if (bad | (loss == loss.min())).all():
        n_bad, n_good = int(bad.sum()), int((~bad).sum())
        if min(n_bad, n_good) < 5:
            return False
        auc = (ranks[bad].mean() - (n_bad + 1) / 2) / n_good
        return bool(abs(2 * auc - 1) >= _PERFECT)
    _, code, count = np.unique(loss, return_inverse=True, return_counts=True)
    return bool(np.corrcoef(ranks, _ranks(code, count))[0, 1] ** 2 >= _PERFECT)


def _explains(code: Ints, loss: Floats) -> bool:
    """Whether the levels of a feature leave next to no variance of the loss."""
    size = np.bincount(code)
    mean = np.bincount(code, loss) / size
    return bool(
        ((loss - mean[code]) ** 2).sum() <= (1 - _PERFECT) * ((loss - loss.mean()) ** 2).sum()
    )


def _is_certain(code: Ints, loss: Floats, person: Ints) -> bool:
    """Whether some levels settle the loss, beyond what chance or a healthy group explains.

    Either the rarer of two losses always comes with a level that many have, or never with some of
    them though even one twentieth of the usual share would show.
    """
    rare = loss == loss.max()
    if not (rare | (loss == loss.min())).all():
        return False
    rare = rare if rare.mean() <= 0.5 else ~rare
    share, n_rare = float(rare.mean()), np.bincount(code, rare)
    always = n_rare == np.bincount(code)
    if not (always | (n_rare == 0)).any():
        return False
    n_people = int(person.max()) + 1
    pairs = np.unique(code.astype(np.int64) * n_people + person)  # different people with each level
    size = np.bincount(pairs // n_people, minlength=code.max() + 1).astype(np.float64)
    never = float(size[n_rare == 0].sum())
    return bool((size[always] >= _DOOMED).any() or never * share * _HEALTHY >= _EXPECTED)


def _tells(order: Ints, code: Ints, action: Ints, *, few: bool) -> bool:
    """Whether the action follows from a feature: value by value, or from its size."""
    counts = np.bincount(action)
    taken = counts > 0
    counts, action = counts[taken], (np.cumsum(taken) - 1)[action]
    if counts.size < 2 or counts.max() > 0.95 * action.size:
        return False
    if few:
        table = np.zeros((code.max() + 1, counts.size), np.int64)
        np.add.at(table, (code, action), 1)
        return bool(table.max(axis=1).sum() >= (1 - (1 - _PERFECT) / 2) * action.size)
    ordered = action[order]
    changes = int((ordered[1:] != ordered[:-1]).sum())
    slack = min(2 * (counts.size - 1), 0.05 * action.size)  # of many actions each is a short run
    return changes <= max(slack, (1 - _PERFECT) / 2 * action.size)


def _ranks(code: Ints, count: Ints) -> Floats:
    """Ranks from 1, ties in the middle, of values numbered by size that occur so often."""
    middle: Floats = (np.cumsum(count) - (count - 1) / 2)[code]
    return middle


def _is_later(data: Trajectories, source: str) -> bool:
    """Whether a column's name says that it is known afterwards only."""
    words = words_of(source)
    if words & _EARLIER:
        return False
    static = any(_source(name, data.schema.categories) == source for name in data.schema.static)
    later = _LATER | ({"los"} if static or data.lag == 0 else set())
    return bool(words & later) or any(pair <= words for pair in _LATER_TOGETHER)


def words_of(name: str) -> set[str]:
    """The words of a column's name, whether snake_case or CamelCase."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return set(re.findall(r"[a-z]+", spaced.lower()))
