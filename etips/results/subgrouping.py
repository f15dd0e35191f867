"""Subgroups of a data set that a report shows: bands and levels of static features, and time."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from etips.data.decisions import Floats
from etips.data.schema import MISSING_SUFFIX
from etips.data.trajectories import Trajectories
from etips.disclosure import are_few, hide_steps, hide_together, is_small
from etips.evaluation.assessment import assess
from etips.evaluation.inference.checks import Bools, Ints
from etips.evaluation.log import Log, View
from etips.evaluation.risk import logged_risk
from etips.evaluation.subgroups import bands
from etips.files.json_documents import finite
from etips.results.exhibits import Subgroup, SubgroupTable

MOST_TABLES = 12
MOST_LEVELS = 6
MOST_YEARS = 130  # an age beyond this is in days, as the sepsis cohort has it
WITHHELD = "level not shown"


@dataclass(frozen=True, eq=False)
class Grouping:
    """A way to part the decisions.

    Args:
        name: Of the feature.
        labels: Of the levels.
        place: Level of each decision, shape (n,).
        telling: Whether a label is taken from the data, so that a rare one may name somebody.
    """

    name: str
    labels: tuple[str, ...]
    place: Ints
    telling: bool


def subgroups(data: Trajectories, log: Log, policy: View) -> tuple[SubgroupTable, ...]:
    """A table for each static feature, the first twelve, and one for the time in the stay."""
    groupings = [each for each in _groupings(data) if len(each.labels) > 1][:MOST_TABLES]
    if not groupings:
        everybody = np.zeros(log.n_decisions, np.int64)
        groupings = [Grouping("all", ("all decisions",), everybody, telling=False)]
    return tuple(SubgroupTable(each.name, _rows(each, log, policy)) for each in groupings)


def _rows(grouping: Grouping, log: Log, policy: View) -> tuple[Subgroup, ...]:
    people, hidden = hide_levels(grouping, log)
    if hidden.all():
        return (Subgroup(WITHHELD),)
    return tuple(
        _row(grouping, level, people[level], hidden, log, policy)
        for level in range(len(grouping.labels))
        if people[level]
    )


def count_levels(grouping: Grouping, log: Log) -> list[Ints]:
    """People, decisions and, where losses are 0 or 1, events and their absence, (levels,) each."""
    n = len(grouping.labels)
    people = [np.unique(log.cluster[grouping.place == level]).size for level in range(n)]
    columns = [np.array(people), np.bincount(grouping.place, minlength=n)]
    if np.isin(log.loss, (0, 1)).all():  # a mean loss times a count is a number of events
        columns += [np.bincount(grouping.place, log.loss == side, minlength=n) for side in (0, 1)]
    return [column.astype(np.int64) for column in columns]


def hide_levels(grouping: Grouping, log: Log, *, nested: bool = True) -> tuple[list[int], Bools]:
    """People in each level, and which levels must not be shown, shape (levels,).

    Args:
        grouping: The levels.
        log: The decisions.
        nested: Whether people who are in several levels pass through them one after the other, so
            that two counts tell who stopped short; else one tells only who was never there.
    """
    columns = count_levels(grouping, log)
    people = columns[0].tolist()
    total = log.clusters.size
    if sum(people) == total:
        return people, hide_together(*columns)
    # People are in several levels, so that those who stop short can be counted too, and those who
    # were never in one, and those who were in two.
    also = hide_steps(people, known=(total,)) if nested else is_small(total - columns[0])
    if not nested and are_few(sum(people) - total):
        also[np.argmin(np.where(columns[0] > 0, columns[0], total))] = True
    also &= columns[0] > 0
    return people, hide_together(*columns, also=also)


def _row(
    grouping: Grouping, level: int, n_people: int, hidden: Bools, log: Log, policy: View
) -> Subgroup:
    label = grouping.labels[level]
    if hidden[level]:
        return Subgroup(WITHHELD if grouping.telling else label)
    inside = grouping.place == level
    part = log.take(inside)
    silent = None if policy.abstains is None else policy.abstains[inside]
    assessment = assess(part, policy.probabilities[inside], silent, estimators=("snips",))
    (estimate,) = assessment.estimates
    return Subgroup(
        level=label,
        n_people=n_people,
        n_decisions=part.n_decisions,
        effective_n=finite(estimate.effective_n),
        risk=finite(estimate.risk),
        low=finite(estimate.low),
        high=finite(estimate.high),
        logged_risk=finite(logged_risk(part.loss, part.clusters).risk),
        gain=finite(assessment.gain.difference),
        gain_low=finite(assessment.gain.low),
        gain_high=finite(assessment.gain.high),
        verdict=assessment.verdict.label,
    )


def _groupings(data: Trajectories) -> Iterator[Grouping]:
    stay, step = data.decisions()
    names, categories = data.schema.static, data.schema.categories
    for source, levels in categories.items():
        columns = [f"{source}={level}" for level in levels]
        if all(column in names for column in columns):
            chosen = data.static[:, [names.index(column) for column in columns]]
            yield _by_level(source, levels, chosen == 1, stay)
    for number, name in enumerate(names):
        source, _, level = name.partition("=")
        if name.endswith(MISSING_SUFFIX) or (level and source in categories):
            continue
        values = data.static[:, number].astype(np.float64)
        if name == "age" and (values > MOST_YEARS).mean() > 0.5:
            name, values = "age in years", values / 365.25
        by_stay = group_by_value(name, values)
        if by_stay is not None:
            yield Grouping(name, by_stay.labels, by_stay.place[stay], by_stay.telling)
    timing = group_by_value("step of the stay", step.astype(np.float64) + 1, most_levels=4)
    if timing is not None:
        yield timing


def _by_level(source: str, levels: tuple[str, ...], one_hot: Bools, stay: Ints) -> Grouping:
    place = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), len(levels))
    return Grouping(source, (*levels, "missing"), place[stay], telling=True)


def group_by_value(name: str, values: Floats, *, most_levels: int = MOST_LEVELS) -> Grouping | None:
    """Levels of a feature with few values, else bands; None where there is nothing to part."""
    known = values[~np.isnan(values)]
    distinct = np.unique(known)
    if distinct.size < 2:
        return None
    if distinct.size <= most_levels:
        labels = [f"{value:.4g}" for value in distinct]
        place = np.where(np.isnan(values), len(labels), np.searchsorted(distinct, values))
        return Grouping(name, (*labels, "missing"), place, telling=True)
    edges = round_edges(known)
    if not edges:
        return None
    labels = bands([edges[0] - 1, *edges], edges).tolist()  # one number in each band
    place = np.where(np.isnan(values), len(labels), np.searchsorted(edges, values, "right"))
    return Grouping(name, (*labels, "missing"), place, telling=False)


def round_edges(values: Floats) -> list[float]:
    """Round numbers near the quartiles: an exact quartile would be somebody's own value."""
    quartiles = np.quantile(values, [0.25, 0.5, 0.75])
    span = float(quartiles[2] - quartiles[0]) or float(values.std())
    if not span > 0:
        return []
    power = 10.0 ** np.floor(np.log10(span / 2))
    step = power * max(unit for unit in (1, 2, 5) if unit * power <= span / 2 or unit == 1)
    edges = np.unique(np.round(quartiles / step) * step).round(12)
    return [float(edge) for edge in edges if values.min() < edge <= values.max()]
