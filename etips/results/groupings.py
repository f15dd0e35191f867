"""Ways to part the decisions: subgroups of a report, and places or years of a comparison."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from etips.data.decisions import Floats
from etips.data.intake.last_rows import last_values, visible_columns
from etips.data.schema import MISSING_SUFFIX
from etips.data.trajectories import Trajectories
from etips.disclosure import are_few, hide_steps, hide_together, is_small
from etips.errors import DataError, SettingError
from etips.evaluation.assessment import assess_part
from etips.evaluation.inference.checks import Bools, Ints
from etips.evaluation.log import Log, View
from etips.evaluation.risk import logged_risk
from etips.policies.written_rules import near_names
from etips.results.data_summary import source_of
from etips.results.exhibits import Subgroup, SubgroupTable

MOST_TABLES = 12
MOST_LEVELS = 6
MOST_YEARS = 130  # an age beyond this is in days, as the sepsis cohort has it
WITHHELD = "level not shown"

MOST_PLACES = 40
"""More than this is no set of places; an identifier, say."""

MISSING = "missing"
_YEARS = (1850, 2150)

By = str | ArrayLike | Mapping[str, ArrayLike]
"""A column of the data, or its values: one a decision or one a stay, perhaps with a name."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """A way to part the decisions.

    Args:
        place: Level of each decision, shape (n,).
        telling: Whether a label is taken from the data, so that a rare one may name a person.
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
    tables = []
    for grouping in groupings:
        people, hidden = hide_levels(grouping, log)
        rows: Iterator[Subgroup] = (
            _row(grouping, level, people[level], hidden, log, policy)
            for level in range(len(grouping.labels))
            if people[level]
        )
        tables.append(
            SubgroupTable(grouping.name, (Subgroup(WITHHELD),) if hidden.all() else (*rows,))
        )
    return tuple(tables)


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
    assessment = assess_part(part, policy, inside, estimator="snips")
    (estimate,), gain = assessment.estimates, assessment.gain
    return Subgroup(
        *(label, n_people, part.n_decisions, estimate.effective_n),
        *(estimate.risk, estimate.low, estimate.high),
        logged_risk(part.loss, part.clusters).risk,
        *(gain.difference, gain.low, gain.high),
        verdict=assessment.verdict.label,
    )


def _groupings(data: Trajectories) -> Iterator[Grouping]:
    stay, step = data.decisions()
    names, categories = data.schema.static, data.schema.categories
    for source, levels in categories.items():
        columns = [f"{source}={level}" for level in levels]
        if all(column in names for column in columns):
            one_hot = data.static[:, [names.index(column) for column in columns]] == 1
            place = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), len(levels))
            yield Grouping(source, (*levels, MISSING), place[stay], telling=True)
    for number, name in enumerate(names):
        if name.endswith(MISSING_SUFFIX) or source_of(name, data.schema) != name:
            continue
        values = data.static[:, number].astype(np.float64)
        if name == "age" and (values > MOST_YEARS).mean() > 0.5:
            name, values = "age in years", values / 365.25
        by_stay = group_by_value(name, values)
        if by_stay is not None:
            yield replace(by_stay, place=by_stay.place[stay])
    timing = group_by_value("step of the stay", step.astype(np.float64) + 1, most_levels=4)
    if timing is not None:
        yield timing


def group_by_value(name: str, values: Floats, *, most_levels: int = MOST_LEVELS) -> Grouping | None:
    """Levels of a feature with few values, else bands; None where there is nothing to part."""
    known = values[~np.isnan(values)]
    distinct = np.unique(known)
    if distinct.size < 2:
        return None
    if distinct.size <= most_levels:
        labels = [f"{value:.4g}" for value in distinct]
        place = np.where(np.isnan(values), len(labels), np.searchsorted(distinct, values))
        return Grouping(name, (*labels, MISSING), place, telling=True)
    edges = round_edges(known)
    if not edges:
        return None
    middle = (f"{low:g} to under {high:g}" for low, high in pairwise(edges))
    labels = [f"under {edges[0]:g}", *middle, f"{edges[-1]:g} and over"]
    place = np.where(np.isnan(values), len(labels), np.searchsorted(edges, values, "right"))
    return Grouping(name, (*labels, MISSING), place, telling=False)


def round_edges(values: Floats) -> list[float]:
    """Round numbers near the quartiles: an exact quartile would be one person's value."""
    quartiles = np.quantile(values, [0.25, 0.5, 0.75])
    span = float(quartiles[2] - quartiles[0]) or float(values.std())
    if not span > 0:
        return []
    power = 10.0 ** np.floor(np.log10(span / 2))
    step = power * max(unit for unit in (1, 2, 5) if unit * power <= span / 2 or unit == 1)
    edges = np.unique(np.round(quartiles / step) * step).round(12)
    return [float(edge) for edge in edges if values.min() < edge <= values.max()]


def group_decisions(data: Trajectories, by: By) -> Grouping:
    """The place of each decision.

    Text and whole numbers of few kinds are places as they stand, times are cut into years, other
    numbers into bands.
    """
    name, values = _values(data, by)
    if values.dtype.kind == "M":
        years: Floats = values.astype("datetime64[Y]").astype(np.float64) + 1970
        years[np.isnat(values)] = np.nan
        grouping = _by_level(name, years)
    elif values.dtype.kind in "fiu" and not _few_kinds(values):
        banded = group_by_value(name, values.astype(np.float64))
        if banded is None:
            raise DataError(f"by, column {name}", "must tell decisions apart")
        grouping = banded
    else:
        grouping = _by_level(name, values)
    shown = np.unique(grouping.place)
    labels = tuple(grouping.labels[level] for level in shown)
    if not 2 <= len(labels) <= MOST_PLACES:
        rule = f"must part the decisions into 2 to {MOST_PLACES} places, not {len(labels)}"
        raise DataError(f"by, column {name}", rule)
    place = np.searchsorted(shown, grouping.place)
    return Grouping(name, labels, place, telling=grouping.telling)


def pool_few(grouping: Grouping, log: Log) -> Grouping:
    """The same with places of few people, or of few events, put together into one.

    So no place can be worked out from those shown by subtraction, and no one is left out. A
    place that is alone among the few takes the smallest other one in.
    """
    columns = count_levels(grouping, log)
    few = np.any([is_small(column) for column in columns], axis=0)
    if not few.any() or len(grouping.labels) < 3:
        return grouping
    pooled = few.copy()
    for level in np.argsort(columns[0], kind="stable"):
        inside = np.isin(grouping.place, np.flatnonzero(pooled))
        sums = [int(column[pooled].sum()) for column in columns[1:]]
        sums.append(np.unique(log.cluster[inside]).size)  # a person may be in several places
        if pooled.sum() > 1 and not is_small(sums).any():
            break
        pooled[level] = True
    kept = np.flatnonzero(~pooled)
    joined = [grouping.labels[level] for level in np.flatnonzero(pooled & ~few)]
    name = f"{', '.join(joined)} and others" if joined else "other places"
    place = np.full(grouping.place.size, kept.size)
    for number, level in enumerate(kept):
        place[grouping.place == level] = number
    labels = tuple(grouping.labels[level] for level in kept)
    return Grouping(grouping.name, (*labels, name), place, telling=grouping.telling)


def _values(data: Trajectories, by: By) -> tuple[str, NDArray[np.generic]]:
    if isinstance(by, str):
        return by, column_values(data, by)
    name = "group"
    if isinstance(by, Mapping):
        if len(by) != 1:
            raise SettingError("by", "must be one column")
        ((name, by),) = by.items()
    values = np.asarray(by)
    if values.shape == (data.n_stays,) and data.n_stays != data.n_decisions:
        return name, values[data.decisions().stay]
    if values.shape != (data.n_decisions,):
        raise DataError("by", "must hold one value for each decision, or for each stay")
    return name, values


def column_values(data: Trajectories, name: str) -> NDArray[np.generic]:
    """A feature or the step at each decision; what was read as years is the year."""
    known = visible_columns(data.schema)
    roles = data.schema.roles
    if name == roles.step:
        return np.asarray(data.step)[data.decision_rows]
    if name not in known:
        fix = f"There is {near_names(name, known)}; other values can be given as an array."
        raise DataError(f"by, column {name}", "is not in the data", fix=fix)
    values = np.asarray(last_values(data, [name])[name])
    recipe = data.schema.recipe
    kind = None if recipe is None else recipe.kinds.get(name)
    if kind is not None and kind.kind == "years":
        return np.asarray(np.floor(values.astype(np.float64)) + 2000)
    return values


def _few_kinds(values: NDArray[np.generic]) -> bool:
    """Whether numbers are names of places: whole, and few of them, or years."""
    numbers = values.astype(np.float64)
    known = np.unique(numbers[~np.isnan(numbers)])
    whole = bool((known % 1 == 0).all())
    years = whole and known.size > 0 and _YEARS[0] <= known[0] and known[-1] <= _YEARS[1]
    return whole and known.size <= (MOST_PLACES if years else 12)


def _by_level(name: str, values: NDArray[np.generic]) -> Grouping:
    def order(label: str) -> tuple[bool, float, str]:
        """Numbers by size, then text by letters."""
        try:
            return False, float(label), label
        except ValueError:
            return True, 0.0, label

    texts = [
        None
        if value is None or value != value  # NaN is not itself
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
        for value in values.tolist()
    ]
    labels = sorted({text for text in texts if text is not None}, key=order)
    number = {label: place for place, label in enumerate(labels)}
    place = np.array([len(labels) if text is None else number[text] for text in texts], np.int64)
    return Grouping(name, (*labels, MISSING), place, telling=True)


def source_features(data: Trajectories, name: str) -> tuple[Sequence[int], Sequence[int]]:
    """Numbers of the sequential and the static features that do not tell the place itself."""
    levels = data.schema.categories.get(name, ())
    telling = {name, f"{name}{MISSING_SUFFIX}", *(f"{name}={level}" for level in levels)}
    sequence, static = (
        [number for number, feature in enumerate(features) if feature not in telling]
        for features in (data.schema.sequence, data.schema.static)
    )
    return sequence, static
