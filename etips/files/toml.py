"""Settings in TOML: read with the standard library alone, written by `tomli_w`."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from etips.errors import FileError, SettingError
from etips.files.writing import refusing

_LIMIT = 2**20  # settings are a page of text; more than this is a mistake


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
    with refusing(path, "cannot be read"), path.open("rb") as file:
        raw = file.read(_LIMIT + 1)
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
    import tomli_w  # noqa: PLC0415  # learning must run without it

    _require_plain(document)
    return tomli_w.dumps(document)


def _require_plain(table: Mapping[str, object]) -> None:
    """Refuse what a file of settings has no word for, by the name of its key."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            _require_plain(value)
            continue
        entries = value if isinstance(value, list | tuple) else [value]
        if not all(isinstance(entry, bool | int | float | str) for entry in entries):
            raise SettingError(key, "must be a number, a text, true or false, or a list of them")
