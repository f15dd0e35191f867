"""What scikit-learn's `clone` and searches ask of a learner: its settings by name.

Learners are dataclasses, so that their fields are their settings. Settings within settings have
two underscores in between: `training__policy__epochs`.
"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from etips.errors import SettingError

L = TypeVar("L")


def get_params(learner: Any, deep: bool = True) -> dict[str, object]:  # noqa: ANN401
    """Settings by name.

    Args:
        learner: The learner itself.
        deep: Also those within settings.
    """
    params = {own.name: getattr(learner, own.name) for own in fields(learner)}
    return dict(_inside(params)) if deep else params


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


def _inside(params: dict[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in params.items():
        yield name, value
        if is_dataclass(value) and not isinstance(value, type):
            within = {own.name: getattr(value, own.name) for own in fields(value)}
            yield from ((f"{name}__{inner}", held) for inner, held in _inside(within))


def _changed(holder: Any, path: list[str], value: object) -> object:  # noqa: ANN401
    """What to put in place of the holder so that the setting at the path has the value."""
    if not path:
        return value
    return replace(holder, **{path[0]: _changed(getattr(holder, path[0]), path[1:], value)})
