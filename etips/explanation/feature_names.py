"""Features by the names of the table's own columns, and by the organ system they speak of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from etips.cohorts.sepsis3.variables import ORGAN_SYSTEMS
from etips.data.decisions import Floats, Ints
from etips.data.history_rows import summary_columns
from etips.data.schema import MISSING_SUFFIX, Schema
from etips.models.row_model import Reads
from etips.policies.policy import FittedPolicy

EARLIER_ACTION = "the action before"
"""What explanations call the inputs that say which action was taken last."""

OTHER = "other"
_SUMMARIES = ("last ", "mean ", "change ", "steps since ", "lowest ", "highest ", "first ")
_KNOWN_ENOUGH = 0.5  # share of the columns that the cohort must know for its systems to be shown


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of the table that features were made of.

    Levels of a category, and the mark of a missing value, belong to their column.

    Args:
        names: Of the columns.
        of_feature: Column of each feature, shape (n_features,).
    """

    names: tuple[str, ...]
    of_feature: Ints

    @classmethod
    def of(cls, schema: Schema, block: tuple[str, ...], *, earlier_actions: int = 0) -> Self:
        """Those of some features, and of inputs after them that stand for the action before."""
        sources = [source_of(schema, name) for name in block] + [EARLIER_ACTION] * earlier_actions
        names = tuple(dict.fromkeys(sources))
        return cls(names, np.array([names.index(source) for source in sources], np.int64))

    def total(self, values: Floats) -> Floats:
        """Values by column, shape (..., columns), from values by feature (..., n_features)."""
        summed = np.zeros((*values.shape[:-1], len(self.names)))
        for feature, column in enumerate(self.of_feature):
            summed[..., column] += values[..., feature]
        return summed


def columns_of(policy: FittedPolicy) -> tuple[Columns, Columns]:
    """Columns behind what a policy reads at every step, and behind static features."""
    schema = policy.schema
    earlier = schema.n_actions if policy.earlier_actions else 0
    return (
        Columns.of(schema, schema.sequence, earlier_actions=earlier),
        Columns.of(schema, schema.static),
    )


def source_of(schema: Schema, feature: str) -> str:
    """The column of the table that a feature was made of."""
    for name, levels in schema.categories.items():
        if any(feature == f"{name}={level}" for level in levels):
            return name
    bare = feature.removesuffix(MISSING_SUFFIX)
    return bare if bare != feature and bare in schema.indicators else feature


def organ_systems(names: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """Columns by the organ system they speak of; nothing where the cohort knows too few of them."""
    system_of = {name: system for system, own in ORGAN_SYSTEMS.items() for name in own}
    told = [name for name in names if name != EARLIER_ACTION]
    known = sum(_plain(name) in system_of for name in told)
    if not told or known < _KNOWN_ENOUGH * len(told):
        return {}
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(system_of.get(_plain(name), OTHER), []).append(name)
    order = (*ORGAN_SYSTEMS, OTHER)
    return {system: tuple(groups[system]) for system in order if system in groups}


def _plain(name: str) -> str:
    """Volumes are called after the length of a step, whatever it is."""
    for stem in ("input", "output"):
        if name.startswith(f"{stem}_") and name.endswith("hourly"):
            return f"{stem}_4hourly"
    return name


def summary_places(schema: Schema, reads: Reads) -> tuple[Ints, Ints]:
    """Sequential and static feature of each column of the rows that a model reads, -1 for none.

    The number of steps is no feature; it counts with the first one.
    """
    width = len(schema.sequence)
    if reads == "last":
        place = np.arange(width + len(schema.static))
        return np.where(place < width, place, -1), np.where(place < width, -1, place - width)
    names = summary_columns(schema, extremes=reads == "history")
    first_static = names.index("steps") + 1
    is_static = np.isin(np.arange(len(names)) - first_static, np.arange(len(schema.static)))
    feature, static = np.full(len(names), -1), np.full(len(names), -1)
    static[is_static] = np.arange(len(schema.static))
    for number in np.flatnonzero(~is_static):
        name = names[number]
        bare = next((name.removeprefix(own) for own in _SUMMARIES if name.startswith(own)), "")
        feature[number] = schema.sequence.index(bare) if bare in schema.sequence else 0
    return feature, static
