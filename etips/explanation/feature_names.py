"""Features by the names of the table's own columns, and by the organ system they belong to."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from etips.cohorts.sepsis3.variables import ORGAN_SYSTEMS
from etips.data.decisions import Floats, Ints
from etips.data.history_rows import summary_columns
from etips.data.schema import MISSING_SUFFIX, Schema
from etips.models.row_model import Reads
from etips.policies.policy import FittedPolicy

EARLIER_ACTION = "the action before"
"""What explanations call the inputs that hold which action was taken last."""

_OTHER = "other"
_SUMMARIES = ("last ", "mean ", "change ", "steps since ", "lowest ", "highest ", "first ")
_KNOWN_ENOUGH = 0.5  # share of the columns that the cohort must know for its systems to be shown


class Columns(NamedTuple):
    """Columns of the table behind some features, by name, and the column of each feature."""

    names: tuple[str, ...]
    of_feature: Ints

    def total(self, values: Floats) -> Floats:
        """Values by column, shape (..., columns), from values by feature (..., n_features)."""
        return np.asarray(values @ np.eye(len(self.names))[self.of_feature])


def columns_of(policy: FittedPolicy) -> tuple[Columns, Columns]:
    """Columns behind what a policy reads at every step, and behind static features.

    Levels of a category, and the mark of a missing value, belong to their column.
    """
    schema = policy.schema
    sequence = [source_of(schema, name) for name in schema.sequence]
    if policy.earlier_actions:
        sequence += [EARLIER_ACTION] * schema.n_actions
    pair = []
    for sources in (sequence, [source_of(schema, name) for name in schema.static]):
        names = tuple(dict.fromkeys(sources))
        pair.append(Columns(names, np.array([names.index(own) for own in sources], np.int64)))
    return pair[0], pair[1]


def source_of(schema: Schema, feature: str) -> str:
    """The column of the table that a feature was made of."""
    for name, levels in schema.categories.items():
        if any(feature == f"{name}={level}" for level in levels):
            return name
    bare = feature.removesuffix(MISSING_SUFFIX)
    return bare if bare != feature and bare in schema.indicators else feature


def organ_systems(names: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """Columns by organ system; empty where the cohort knows too few of them."""
    by_column = {name: system for system, own in ORGAN_SYSTEMS.items() for name in own}
    systems = {}
    for name in names:
        plain = name  # volumes are called after the length of a step, whatever it is
        for stem in ("input", "output"):
            if name.startswith(f"{stem}_") and name.endswith("hourly"):
                plain = f"{stem}_4hourly"
        systems[name] = by_column.get(plain, _OTHER)
    known = [system != _OTHER for name, system in systems.items() if name != EARLIER_ACTION]
    if not known or sum(known) < _KNOWN_ENOUGH * len(known):
        return {}
    groups = {
        system: tuple(name for name in names if systems[name] == system)
        for system in (*ORGAN_SYSTEMS, _OTHER)
    }
    return {system: own for system, own in groups.items() if own}


def summary_places(schema: Schema, reads: Reads) -> tuple[Ints, Ints]:
    """Sequential and static feature of each column of the rows that a model reads, -1 for none.

    The number of steps is no feature; it counts with the first one.
    """
    sequence, static = schema.sequence, schema.static
    if reads == "last":
        place = np.arange(len(sequence) + len(static))
        return np.where(place < len(sequence), place, -1), np.maximum(place - len(sequence), -1)
    names = summary_columns(schema, extremes=reads == "history")
    feature, constant = np.full(len(names), -1), np.full(len(names), -1)
    first_static = names.index("steps") + 1
    for number, name in enumerate(names):
        if first_static <= number < first_static + len(static):
            constant[number] = number - first_static
            continue
        bare = next((name.removeprefix(own) for own in _SUMMARIES if name.startswith(own)), "")
        feature[number] = sequence.index(bare) if bare in sequence else 0
    return feature, constant
