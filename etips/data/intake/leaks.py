"""Features that nobody can have known at the decision: they follow from the outcome or the action.

Looked at is what a decision may see, against its own loss and action. A strong predictor is no
leak: a feature is told of only where it leaves next to nothing open.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from etips.data.coded import Floats32
from etips.data.decisions import Floats, Ints
from etips.data.schema import MISSING_SUFFIX
from etips.data.trajectories import Trajectories
from etips.errors import as_option
from etips.notes import note

LEAST_DECISIONS = 50
"""With fewer, chance alone makes features that fit perfectly."""

_MOST_DECISIONS = 8_000  # enough to see what is nearly perfect, and a millisecond a column
_PERFECT = 0.99  # of Somers' D (an AUC of 0.995), of the variance explained, of the actions
_MOST_LEVELS = 50  # a column of fewer values is looked at value by value
_PER_LEVEL = 20  # decisions a level, at least, lest many levels explain anything
_DOOMED = 100  # people with a level, at least: among the sickest 30 all may have died
_HEALTHY = 0.05  # of the usual share of the rarer loss: less is hardly true of any group
_EXPECTED = 18.0  # losses at that share, where none is seen: a chance of one in a hundred million

Reason = Literal["loss", "part of the loss", "action", "name"]

_TELL = {
    "loss": "foretell the loss almost perfectly",
    "part of the loss": "have values with which the loss is certain",
    "action": "tell almost perfectly which action was taken",
    "name": "are called like something that is known only afterwards",
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
    later = [Leak(source, "name") for source in _sources(data) if _is_later(data, source)]
    if data.n_decisions < LEAST_DECISIONS:
        return later
    n = data.n_decisions
    chosen = np.arange(0, n, max(1, n // _MOST_DECISIONS))
    seen = _Seen.of(data, chosen)
    found = []
    for source in _sources(data):
        reasons = (_reason(column, seen) for column in _columns(data, seen, source))
        reason = next((own for own in reasons if own is not None), None)
        if reason is not None:
            found.append(Leak(source, reason))
    told = {leak.column for leak in found}
    return found + [leak for leak in later if leak.column not in told]


def note_leaks(data: Trajectories) -> None:
    """Tell the leaks of a log, one line for each reason."""
    leaks = find_leaks(data)
    for reason, words in _TELL.items():
        columns = [leak.column for leak in leaks if leak.reason == reason]
        if columns:
            one = len(columns) == 1
            verb, _, rest = words.partition(" ")
            singular = {"are": "is", "have": "has"}.get(verb, f"{verb}s")
            said = f"{singular} {rest}" if one else words
            known = "Was it known" if one else "Were they known"
            note(
                f"column{'' if one else 's'} {', '.join(columns)}: {said}. {known} before the "
                f"decision? If not, leave {'it' if one else 'them'} out: "
                f"--drop {as_option(*columns)}"
            )


@dataclass(frozen=True, eq=False)
class _Seen:
    """Some decisions: what they see, their loss and patient; their action, and its parts if any."""

    sequence: Floats32
    static: Floats32
    place: Mapping[str, int]
    loss: Floats
    actions: tuple[Ints, ...]
    person: Ints

    @classmethod
    def of(cls, data: Trajectories, chosen: Ints) -> "_Seen":
        names = (*data.schema.sequence, *data.schema.static)
        action = data.logged_action[chosen]
        return cls(
            np.asarray(data.sequence[data.seen_rows[chosen]]),
            data.static[data.decisions().stay[chosen]],
            {name: place for place, name in enumerate(names)},
            data.logged_loss[chosen],
            (action, *(np.array(part.of_action)[action] for part in data.schema.components)),
            data.cluster[chosen],
        )

    def values(self, name: str) -> Floats:
        """A feature by its name."""
        place, width = self.place[name], self.sequence.shape[1]
        column = self.sequence[:, place] if place < width else self.static[:, place - width]
        return column.astype(np.float64)


def _sources(data: Trajectories) -> list[str]:
    """Columns of the table that features were made of."""
    schema = data.schema
    marks = {name + MISSING_SUFFIX for name in schema.indicators}
    names = [name for name in (*schema.sequence, *schema.static) if name not in marks]
    return list(dict.fromkeys(_source(name, schema.categories) for name in names))


def _source(name: str, categories: Mapping[str, tuple[str, ...]]) -> str:
    source = name.partition("=")[0]
    return source if source in categories else name


def _columns(data: Trajectories, seen: _Seen, source: str) -> list[Floats]:
    """What decisions see of one column of the table: its values or levels, and its gaps."""
    schema = data.schema
    if source in schema.categories:
        names = [f"{source}={level}" for level in schema.categories[source]]
        parts = np.stack([seen.values(name) for name in names], axis=1)
        level = np.where(np.isnan(parts).any(axis=1), -1, parts.argmax(axis=1))
        columns = [level.astype(np.float64)]
    else:
        columns = [seen.values(source)]
    mark = source + MISSING_SUFFIX
    if mark in seen.place:
        columns.append(seen.values(mark))
    return columns


def _reason(column: Floats, seen: _Seen) -> Reason | None:
    """What a column gives away, if anything."""
    told = ~np.isnan(column) & ~np.isnan(seen.loss)
    values, loss = column[told], seen.loss[told]
    if values.size < LEAST_DECISIONS or not np.ptp(values):
        return None
    order = np.argsort(values, kind="stable")
    code, count = _levels(values[order], order)
    few = count.size <= min(_MOST_LEVELS, values.size // _PER_LEVEL)
    if np.ptp(loss):
        if _orders(_ranks(code, count), loss) or (few and _explains(code, loss)):
            return "loss"
        if few and _is_certain(code, loss, seen.person[told]):
            return "part of the loss"
    tells = (_tells(order, code, action[told], few=few) for action in seen.actions)
    return "action" if any(tells) else None


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
    return bool(_correlation(ranks, _ranks(code, count)) ** 2 >= _PERFECT)


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


def _correlation(a: Floats, b: Floats) -> float:
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale else 0.0


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
