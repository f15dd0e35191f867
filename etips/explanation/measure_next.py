"""What to measure next: which missing or old value would most likely change the recommendation.

For each such column, values are drawn from logged decisions that resemble this one and where it had
just been measured. The policy is asked with each of them in place of what is known.
"""

from dataclasses import dataclass

import numpy as np
import torch

from etips.data.coded import Floats32
from etips.data.decisions import Bools, Floats, Ints
from etips.data.history_rows import LOG_SHIFT, summary_columns
from etips.data.schema import MISSING_SUFFIX, Schema
from etips.data.trajectories import Trajectories
from etips.disclosure import LEAST_PEOPLE
from etips.explanation.attribution import place_of
from etips.explanation.preference import Histories
from etips.explanation.similar import Neighbourhood, nearness
from etips.policies.policy import Answer

DOUBT = 0.1
"""A policy wavers where its two likeliest actions are no further apart than this."""

_DRAWS = 9  # values of each column, spread evenly over those of similar decisions
_MAX_TRIED = 24  # columns, those without any value first, then the oldest
_VARIES = 0.2  # share of the steps at which a column changes, if its age can be known from that
_OLD = 2  # steps without a change from which a value counts as old


@dataclass(frozen=True)
class Measurement:
    """A column that could be measured now.

    Args:
        age: Steps since it was measured; None if it never was.
        changes: Share of likely values with which the policy would recommend something else, or no
            longer abstain.
        shift: Mean change of the probabilities, between 0 and 1.
        settles: Share of likely values with which the policy neither abstains nor wavers.
    """

    column: str
    age: int | None
    changes: float
    shift: float
    settles: float


@dataclass(frozen=True)
class _Candidate:
    """A column that was not measured just now: its feature, the mark of a gap, and its age."""

    feature: int
    mark: int | None
    age: int | None
    name: str


def what_to_measure(neighbours: Neighbourhood, stay: Trajectories, step: int) -> list[Measurement]:
    """Columns that could be measured now, the one that would most likely change the answer first.

    Likely values come from the log that the neighbours are of.
    """
    place = place_of(stay, step)
    own = neighbours.preference.read(stay).take(np.array([place]))
    last = int(stay.seen_rows[place] - stay.offsets[0])
    near = neighbours.without(stay, np.ones(len(neighbours.person))) > 0
    distance = neighbours.distances(own)
    drawn: list[tuple[_Candidate, Ints]] = []
    for candidate in _candidates(stay.sequence[: last + 1], neighbours):
        rows = _likely(neighbours, candidate, distance, near)
        if rows is not None:
            drawn.append((candidate, rows))
    if not drawn:
        return []
    answer = neighbours.preference.answer(_histories(neighbours, own, drawn))
    now = neighbours.preference.answer(own)
    settled, before = ~wavers(answer), now.probabilities[0]
    changed = answer.probabilities.argmax(axis=1) != before.argmax()
    changed |= answer.abstained != now.abstained[0]
    shift = np.abs(answer.probabilities - before).sum(axis=1) / 2
    figures = np.stack([changed, shift, settled], axis=1).reshape(len(drawn), _DRAWS, 3)
    measured = [
        Measurement(candidate.name, candidate.age, *means)
        for (candidate, _), means in zip(drawn, figures.mean(axis=1).tolist(), strict=True)
    ]
    return sorted(measured, key=lambda one: (-one.changes, -one.shift))


def wavers(answer: Answer) -> Bools:
    """Where a policy abstains or its two likeliest actions are nearly alike, shape (n,)."""
    ordered = np.sort(answer.probabilities, axis=1)
    close = ordered[:, -1] - ordered[:, -2] < DOUBT
    return np.asarray(answer.abstained | close)


def _candidates(rows: Floats32, neighbours: Neighbourhood) -> list[_Candidate]:
    """Columns without a value at the last visible step, or with an old one.

    Where the data do not mark gaps, a value that has not changed for some steps is taken to be old,
    unless the column hardly ever changes in the log: a patient's age is not measured again.
    """
    found, schema = [], neighbours.schema
    derived = {f"{name}={level}" for name, own in schema.categories.items() for level in own}
    derived |= {f"{name}{MISSING_SUFFIX}" for name in schema.indicators}
    for number, name in enumerate(schema.sequence):
        values, marked = rows[:, number], f"{name}{MISSING_SUFFIX}"
        mark = schema.sequence.index(marked) if marked in schema.sequence else None
        constant = mark is None and neighbours.varies[number] < _VARIES
        if name in derived or (constant and not np.isnan(values[-1])):
            continue
        if mark is not None:
            fresh = rows[:, mark] == 0
        else:
            fresh = np.concatenate([[True], values[1:] != values[:-1]])
        measured = np.flatnonzero(fresh & ~np.isnan(values))
        age = None if not measured.size else len(rows) - 1 - int(measured[-1])
        if age is None or age >= (1 if mark is not None else _OLD):
            found.append(_Candidate(number, mark, age, name))
    found.sort(key=lambda own: (own.age is not None, -(own.age or 0)))
    return found[:_MAX_TRIED]


def _likely(
    neighbours: Neighbourhood, own: _Candidate, distance: Floats, near: Bools
) -> Ints | None:
    """Logged decisions whose value of a column is likely here; None if too few had one.

    Those within reach, or as many of the nearest as it takes to have enough people.
    """
    fresh = near & ~np.isnan(neighbours.rows[:, own.feature])
    if own.mark is not None:
        fresh &= neighbours.rows[:, own.mark] == 0
    rows = np.flatnonzero(fresh)
    enough = 2 * LEAST_PEOPLE
    order = rows[np.argsort(distance[rows], kind="stable")]
    first = np.unique(neighbours.person[order], return_index=True)[1]
    values = neighbours.rows[rows, own.feature]
    if first.size < enough or len(np.unique(values)) < 2:
        return None
    farthest = distance[order[np.sort(first)[enough - 1]]]
    weight = nearness(distance[rows], max(neighbours.reach, 1.3 * farthest))
    by_value = np.argsort(values, kind="stable")
    below = np.cumsum(weight[by_value])
    if not below[-1] > 0:
        return None
    wanted = (np.arange(_DRAWS) + 0.5) / _DRAWS * below[-1]
    return np.asarray(rows[by_value[np.searchsorted(below, wanted)]])


def _histories(
    neighbours: Neighbourhood, own: Histories, drawn: list[tuple[_Candidate, Ints]]
) -> Histories:
    """The history once for every likely value, with that in place of what is known."""
    n, schema = len(drawn) * _DRAWS, neighbours.schema
    steps, table = own.steps.repeat(n, 1, 1), np.repeat(own.rows, n, axis=0)
    summaries = {reads: np.repeat(one, n, axis=0) for reads, one in own.summaries.items()}
    for place, (candidate, rows) in enumerate(drawn):
        part = slice(place * _DRAWS, (place + 1) * _DRAWS)
        for column in (candidate.feature, candidate.mark):
            if column is not None:
                steps[part, -1, column] = torch.from_numpy(neighbours.scaled[rows, column])
                table[part, column] = neighbours.rows[rows, column]
        for reads, summary in summaries.items():
            names = summary_columns(schema, extremes=reads == "history")
            values = neighbours.rows[rows, candidate.feature]
            _put(summary[part], candidate.name, values, schema, names)
    return Histories(steps, own.static.repeat(n, 1), own.last.repeat(n), table, summaries)


def _put(
    summary: Floats, name: str, values: Floats, schema: Schema, names: tuple[str, ...]
) -> None:
    """Write values of a column, measured now, into what a summary of these columns holds of it."""
    if name in schema.logarithms:
        values = np.log(LOG_SHIFT + values)
    past = {which: summary[:, place].copy() for place, which in enumerate(names)}
    mean = past[f"mean {name}"]
    so_far = np.where(np.isnan(mean), values, mean)
    before, first = past[f"last {name}"], past.get(f"first {name}", values)
    now = {
        "last": values,
        "mean": so_far + (values - so_far) / np.maximum(past["steps"], 1),
        "change": np.where(np.isnan(before), 0.0, values - before),
        "steps since": np.zeros(len(values)),
        "lowest": np.fmin(past.get(f"lowest {name}", values), values),
        "highest": np.fmax(past.get(f"highest {name}", values), values),
        "first": np.where(np.isnan(first), values, first),
    }
    for which, new in now.items():
        if f"{which} {name}" in names:
            summary[:, names.index(f"{which} {name}")] = new
