"""Decisions by place or year: the column that a comparison goes by."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from etips.data.decisions import Floats
from etips.data.intake.last_rows import last_values, visible_columns
from etips.data.trajectories import Trajectories
from etips.disclosure import is_small
from etips.errors import DataError, SettingError
from etips.evaluation.log import Log
from etips.policies.rule_answers import near_names
from etips.results.subgrouping import Grouping, count_levels, group_by_value

MOST_PLACES = 40
"""More than this is no set of places; an identifier, say."""

MISSING = "missing"
_YEARS = (1850, 2150)

By = str | ArrayLike | Mapping[str, ArrayLike]
"""A column of the data, or its values: one a decision or one a stay, perhaps with a name."""


def group_decisions(data: Trajectories, by: By) -> Grouping:
    """The place of each decision.

    Text and whole numbers of few kinds are places as they stand, times are cut into years, other
    numbers into bands.

    Args:
        data: The stays.
        by: The column.
    """
    name, values = _values(data, by)
    if values.dtype.kind == "M":
        grouping = _by_year(name, values)
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

    So no place that is shown can be told from the rest by subtraction, and nobody is left out. A
    place that is alone among the few takes the smallest other one in.

    Args:
        grouping: The place of each decision.
        log: The decisions.
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


def _by_year(name: str, values: NDArray[np.generic]) -> Grouping:
    years: Floats = values.astype("datetime64[Y]").astype(np.float64) + 1970
    years[np.isnat(values)] = np.nan
    return _by_level(name, years)


def _by_level(name: str, values: NDArray[np.generic]) -> Grouping:
    texts = [_text(value) for value in values.tolist()]
    labels = sorted({text for text in texts if text is not None}, key=_order)
    number = {label: place for place, label in enumerate(labels)}
    place = np.array([len(labels) if text is None else number[text] for text in texts], np.int64)
    return Grouping(name, (*labels, MISSING), place, telling=True)


def _text(value: object) -> str | None:
    if value is None or value != value:  # NaN is not equal to itself
        return None
    return f"{value:g}" if isinstance(value, float) else str(value)


def _order(label: str) -> tuple[bool, float, str]:
    """Numbers by size, then text by letters."""
    try:
        return False, float(label), label
    except ValueError:
        return True, 0.0, label


def source_features(data: Trajectories, name: str) -> tuple[Sequence[int], Sequence[int]]:
    """Numbers of the sequential and the static features that do not tell the place itself."""
    schema = data.schema
    own = {
        name,
        f"{name}_missing",
        *(f"{name}={level}" for level in schema.categories.get(name, ())),
    }
    return (
        [number for number, feature in enumerate(schema.sequence) if feature not in own],
        [number for number, feature in enumerate(schema.static) if feature not in own],
    )
