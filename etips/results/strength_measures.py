"""Recorded features measured as if they had been hidden."""

import numpy as np

from etips.data.schema import MISSING_SUFFIX, Schema
from etips.data.trajectories import Trajectories
from etips.evaluation.sensitivity_benchmark import benchmark_features
from etips.results.feature_strength import FeatureStrength
from etips.results.overlap import visible_features

MOST_COLUMNS = 150
"""More are pixels or the like: no reader could hold a hidden factor against one of them."""


def measure_features(data: Trajectories) -> tuple[FeatureStrength, ...]:
    """The strongest features that a decision could see, alone and together."""
    names = [*data.schema.sequence, *data.schema.static]
    if len(names) > MOST_COLUMNS:
        return ()
    _, table = visible_features(data)
    groups: dict[str, list[int]] = {}
    for column, name in enumerate(names):
        groups.setdefault(_source(name, data.schema), []).append(column)
    found = benchmark_features(table, groups, data.logged_action, data.n_actions)
    return tuple(
        FeatureStrength(strength.names, float(strength.gamma))
        for strength in found
        if np.isfinite(strength.gamma)
    )


def _source(name: str, schema: Schema) -> str:
    """The feature that a column belongs to: its mark of gaps and its levels are one with it."""
    plain = name.removesuffix(MISSING_SUFFIX)
    source, level, _ = plain.partition("=")
    return source if level and source in schema.categories else plain
