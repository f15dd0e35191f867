"""What scikit-learn's `clone` and searches ask of a learner: its settings by name, its classes.

Learners are dataclasses, so that their fields are their settings. Settings within settings have
two underscores in between: `training__policy__epochs`.
"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from etips.data.decisions import Ints
from etips.data.schema import Schema
from etips.errors import SettingError, require_whole
from etips.policies.uniform import MOST_SEEDS

L = TypeVar("L")


def get_params(learner: Any, deep: bool = True) -> dict[str, object]:  # noqa: ANN401
    """Settings by name.

    Args:
        learner: The learner itself.
        deep: Also those within settings.
    """
    found = {own.name: getattr(learner, own.name) for own in fields(learner)}
    return dict(_inside(found)) if deep else found


def set_params(learner: L, **params: object) -> L:
    """Change settings by name, those within settings too; return the learner."""
    known = get_params(learner)
    for name in params:
        if name not in known:
            raise SettingError(name, f"is not a setting of {type(learner).__name__}")
    for name, value in sorted(params.items(), key=lambda item: item[0].count("__")):
        own, *path = name.split("__")
        setattr(learner, own, _changed(getattr(learner, own), path, value))
    return learner


def check_seed(seed: int) -> None:
    """Refuse a seed that is none."""
    require_whole("seed", seed)
    if not 0 <= seed < MOST_SEEDS:
        raise SettingError("seed", f"must be in 0..{MOST_SEEDS - 1}")


def _inside(params: dict[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in params.items():
        yield name, value
        if is_dataclass(value) and not isinstance(value, type):
            within = {own.name: getattr(value, own.name) for own in fields(value)}
            yield from ((f"{name}__{inner}", found) for inner, found in _inside(within))


def _changed(holder: Any, path: list[str], value: object) -> object:  # noqa: ANN401
    """What to put in place of the holder so that the setting at the path has the value."""
    if not path:
        return value
    return replace(holder, **{path[0]: _changed(getattr(holder, path[0]), path[1:], value)})


def classes(learner: object) -> Ints:
    """The actions, shape (n_actions,)."""
    return np.arange(_schema(learner).n_actions)


def n_features(learner: object) -> int:
    """Sequential features a step; with 2-D arrays their columns."""
    return len(_schema(learner).sequence)


def _schema(learner: object) -> Schema:
    """Of the data fitted on; an attribute that is not there yet must say so as attributes do."""
    found = getattr(getattr(learner, "policy_", learner), "schema", None)
    found = getattr(learner, "schema_", found)
    if not isinstance(found, Schema):
        raise AttributeError(f"{type(learner).__name__} is not fitted")  # noqa: TRY004  # hasattr asks
    return found
