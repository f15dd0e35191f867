"""The little of TOML that settings need: read with the standard library, written here.

Values are whole numbers, numbers, booleans, texts and lists of them; tables go one below the other.
"""

import json
import math
import tomllib
from collections.abc import Mapping
from pathlib import Path

from etips.errors import FileError, SettingError

_LIMIT = 2**20  # settings are a page of text; more than this is a mistake
_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def parse_toml(text: str) -> dict[str, object]:
    """The document a text holds; the refusal says where the text goes wrong, not what is there."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        place = str(error).rpartition("(")[2].rstrip(")")
        known = place if place.startswith("at ") else "somewhere"
        raise SettingError("TOML", f"is not valid {known}") from error


def read_toml(path: Path) -> dict[str, object]:
    """The document of a file."""
    try:
        with path.open("rb") as file:
            raw = file.read(_LIMIT + 1)
    except OSError as error:
        raise FileError(str(path), f"cannot be read: {error.strerror}") from error
    if len(raw) > _LIMIT:
        raise FileError(str(path), "is too large for a file of settings")
    try:
        return parse_toml(raw.decode())
    except UnicodeDecodeError as error:
        raise FileError(str(path), "must be text in UTF-8") from error
    except SettingError as error:
        raise FileError(str(path), f"TOML {error.rule}") from error


def format_toml(document: Mapping[str, object]) -> str:
    """A document as text, its keys in the order given: first what is plain, then the tables."""
    return "\n".join(_lines(document, ())) + "\n"


def _lines(table: Mapping[str, object], place: tuple[str, ...]) -> list[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    tables = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    header = [f"[{'.'.join(_key(part) for part in place)}]"] if place else []
    lines = [*header, *(f"{_key(key)} = {_value(key, value)}" for key, value in plain.items())]
    if place and not plain and tables:  # its own tables imply it
        lines = []
    for key, value in tables.items():
        lines += [*([""] if lines else []), *_lines(value, (*place, key))]
    return lines


def _key(key: str) -> str:
    return key if key and set(key) <= _BARE else _text(key)


def _value(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(key, entry) for entry in value)}]"
    raise SettingError(key, "must be a number, a text, true or false, or a list of them")


def _text(value: str) -> str:
    """A basic string of TOML. JSON's escapes are TOML's too, but for halves of a character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
