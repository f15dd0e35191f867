"""`--set key=value`: settings of a learner as TOML writes them, or as somebody types them."""

import tomllib
from collections.abc import Mapping, Sequence

from etips.errors import Faults, SettingError
from etips.learn.learners.recipes import kind_of
from etips.learn.learners.setting_kinds import flatten_tables


def read_settings(method: str, entries: Sequence[str]) -> dict[str, object]:
    """Settings by key, each of the kind that it has; all that are wrong are told at once.

    A value is TOML (`[0.3, 0.7]`, `"gru"`, `true`, `{epochs = 20}`) or plain (`0.3,0.7`, `gru`).
    """
    settings: dict[str, object] = {}
    faults = Faults()
    for entry in entries:
        with faults.noting():
            settings |= _entry(method, entry)
    faults.raise_any()
    return settings


def keys_of(entries: Sequence[str]) -> set[str]:
    """The keys that entries set, those inside a table too."""
    keys: set[str] = set()
    for entry in entries:
        key, text = split_entry(entry)
        value = _toml(text)
        keys |= set(flatten_tables({key: value}) if isinstance(value, Mapping) else [key])
    return keys


def split_entry(entry: str) -> tuple[str, str]:
    """The key and the text of its value."""
    key, equals, value = entry.partition("=")
    if not equals or not key.strip():
        raise SettingError("--set", "takes key=value", fix="Such as --set hidden=96.")
    return ".".join(part.strip(" \"'") for part in key.split(".")), value.strip()


def _entry(method: str, entry: str) -> dict[str, object]:
    key, text = split_entry(entry)
    value = _toml(text)
    if isinstance(value, Mapping):
        inner = flatten_tables({key: value})
        return {name: _of_kind(method, name, str(own), own) for name, own in inner.items()}
    return {key: _of_kind(method, key, text, value)}


def _of_kind(method: str, key: str, text: str, value: object) -> object:
    """The value, in the type that its setting has.

    Args:
        method: The learner's name.
        key: The setting.
        text: What was typed.
        value: The same as TOML, None where it is none.
    """
    try:
        kind = kind_of(method, key)
    except SettingError as error:
        raise SettingError(f"--set {key}", error.rule, fix=error.fix) from error
    try:
        made = _READERS[kind.kind](text, value)
    except (TypeError, ValueError):
        fix = f"It must be {kind.words}."
        raise SettingError(f"--set {key}", "has a value of the wrong kind", fix=fix) from None
    return made


def _toml(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError, ValueError, KeyError):
        return None


def _whole(text: str, value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(text)


def _number(text: str, value: object) -> float:
    if isinstance(value, bool):
        raise TypeError
    return float(value) if isinstance(value, int | float) else float(text)


def _flag(text: str, value: object) -> bool:
    words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    if isinstance(value, bool):
        return value
    if text.lower() not in words:
        raise ValueError
    return words[text.lower()]


def _text(text: str, value: object) -> str:
    return value if isinstance(value, str) else text


def _numbers(text: str, value: object) -> list[float]:
    if isinstance(value, list):
        return [_number(str(part), part) for part in value]
    if isinstance(value, str):
        text = value
    return [float(part) for part in text.strip("[]() ").split(",") if part.strip()]


_READERS = {int: _whole, float: _number, bool: _flag, str: _text, list: _numbers}
