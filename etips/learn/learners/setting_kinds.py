"""Which fields of a dataclass are settings that a text can give, and of which kind each is.

Learners and training settings are dataclasses, so their annotations say it already. A field that
holds an object, a propensity model say, can be set in Python only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

_WORDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    list: "a list of numbers",
    tuple: "a list of names",
}


@dataclass(frozen=True)
class SettingKind:
    """What a setting takes.

    Args:
        kind: int, float, bool, str, list for a list of numbers, or tuple for one of names.
        choices: The texts that it can be; any, if there are none.
    """

    kind: type
    choices: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The kind, as a refusal names it."""
        return _WORDS[self.kind]

    def admits(self, value: object) -> bool:
        """Whether a value is of the kind; a text may still be none of the choices."""
        return _is(self.kind, value)


def kinds_of(settings: type) -> dict[str, SettingKind]:
    """The plain settings among the fields of a dataclass, by name; `seed` is apart from them."""
    hints = get_type_hints(settings)
    kinds = {own.name: _kind(hints[own.name]) for own in fields(settings) if own.name != "seed"}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def flatten_tables(settings: Mapping[str, object]) -> dict[str, object]:
    """Keys as the command line has them: `epochs` in the table `policy` is `policy.epochs`."""
    flat: dict[str, object] = {}
    for key, value in settings.items():
        inner = value.items() if isinstance(value, Mapping) else [("", value)]
        flat |= {f"{key}.{name}" if name else key: entry for name, entry in inner}
    return flat


def _kind(annotation: Any) -> SettingKind | None:  # noqa: ANN401  # any annotation
    options = [option for option in get_args(annotation) if option is not NoneType]
    if get_origin(annotation) is Literal:
        return SettingKind(str, tuple(options))
    if get_origin(annotation) is Sequence:
        if str in (*options, *(own for option in options for own in get_args(option))):
            return SettingKind(tuple)
        return SettingKind(list) if options == [float] else None
    if len(options) == 1:  # or nothing
        return _kind(options[0])
    return SettingKind(annotation) if annotation in (int, float, bool, str) else None


def _is(kind: type, value: object) -> bool:
    """Whether a value is of a kind: a whole number is a number too, true is neither."""
    if kind is tuple:
        return isinstance(value, list | tuple) and all(isinstance(own, str) for own in value)
    if kind is list:
        return isinstance(value, list | tuple) and all(_is(float, entry) for entry in value)
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float) if kind is float else isinstance(value, kind)
