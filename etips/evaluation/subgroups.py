"""Risk by subgroup, with small groups hidden."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from etips.disclosure import LEAST_PEOPLE
from etips.errors import DataError, SettingError
from etips.evaluation.checks import Bools, Ints
from etips.evaluation.contrast import Contrast, difference
from etips.evaluation.estimate import Estimate, effective_size
from etips.evaluation.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, View
from etips.evaluation.risk import logged_risk, snips


@dataclass(frozen=True)
class Subgroup:
    """One row of a subgroup table; every number is None where the group is hidden.

    Args:
        label: The level or band.
        n_people: People in it.
        n_decisions: Their decisions.
        effective_n: Kish's effective size of their weights.
        risk: The policy's risk among them.
        gain: The same minus the clinicians' risk among them, paired.
    """

    label: str
    n_people: int | None
    n_decisions: int | None
    effective_n: float | None
    risk: Estimate | None
    gain: Contrast | None


def bands(values: ArrayLike, edges: Sequence[float]) -> NDArray[np.str_]:
    """Labels of the bands of `values` (n,) cut at rising `edges`; an edge opens the band above."""
    numbers = np.asarray(values, dtype=np.float64)
    if not edges or any(high <= low for low, high in pairwise(edges)):
        raise SettingError("edges", "must be one or more rising numbers")
    middle = [f"{low:g} to under {high:g}" for low, high in pairwise(edges)]
    labels = np.array([f"under {edges[0]:g}", *middle, f"{edges[-1]:g} and over", "missing"])
    place = np.where(np.isnan(numbers), len(edges) + 1, np.searchsorted(edges, numbers, "right"))
    return labels[place]


def subgroup_table(
    log: Log,
    policy: View,
    group: ArrayLike,
    *,
    people: ArrayLike | None = None,
    min_cell: int = LEAST_PEOPLE,
    interval: Interval = DEFAULT,
) -> tuple[Subgroup, ...]:
    """Risk and gain in each level of `group`, in the order of the sorted levels.

    Levels with fewer than `min_cell` people are hidden, and so is the smallest other, lest what is
    hidden be worked out from the total (`hide_small`). A level within one cluster has no interval,
    so its risk is None.

    Args:
        log: The decisions.
        policy: The policy, seen through them.
        group: Level of each decision, shape (n,).
        people: Person of each decision, shape (n,); the clusters if left out.
        min_cell: Fewest people shown.
        interval: How the limits are made.
    """
    if min_cell < 1:
        raise SettingError("min_cell", "must be at least 1")
    n = log.n_decisions
    level, place = np.unique(_column("group", group, n), return_inverse=True)
    persons = log.cluster if people is None else _column("people", people, n)
    n_people = _distinct(persons, place, level.size)
    hidden = hide_small(n_people, min_cell=min_cell)
    return tuple(
        _hidden(str(level[j]))
        if hidden[j]
        else _row(log, policy, place == j, str(level[j]), int(n_people[j]), interval)
        for j in range(level.size)
    )


def hide_small(counts: ArrayLike, *, min_cell: int = LEAST_PEOPLE) -> Bools:
    """Which cells of a one-way table with a known total must be hidden, shape (cells,).

    Besides the small cells themselves, the smallest large one is hidden: a single hidden cell is
    the total minus the rest, and several small ones may be pinned by their sum. Empty cells are
    shown.
    """
    n = np.asarray(counts)
    hidden = (n > 0) & (n < min_cell)
    if hidden.any():
        large = np.flatnonzero(n >= min_cell)
        hidden[large[np.argsort(n[large], kind="stable")[:1]]] = True
    return hidden


def _column(where: str, values: ArrayLike, n: int) -> NDArray[Any]:
    column = np.asarray(values)
    if column.ndim != 1 or column.size != n:
        raise DataError(where, "must have one entry a decision")
    return column


def _distinct(persons: NDArray[Any], place: Ints, size: int) -> Ints:
    _, person = np.unique(persons, return_inverse=True)
    pairs = np.unique(place.astype(np.int64) * (int(person.max()) + 1) + person)
    return np.bincount(pairs // (int(person.max()) + 1), minlength=size)


def _hidden(label: str) -> Subgroup:
    return Subgroup(label, None, None, None, None, None)


def _row(
    log: Log, policy: View, inside: Bools, label: str, n_people: int, interval: Interval
) -> Subgroup:
    loss, weight, cluster = log.loss[inside], policy.weight[inside], log.cluster[inside]
    if (cluster == cluster[0]).all():
        return Subgroup(label, n_people, loss.size, effective_size(weight), None, None)
    risk = snips(loss, weight, cluster, interval=interval)
    gain = difference(risk, logged_risk(loss, cluster), interval=interval)
    return Subgroup(label, n_people, int(inside.sum()), risk.effective_n, risk, gain)
