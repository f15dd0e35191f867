"""Settings written as TOML: numbers, booleans, texts and lists of them, in tables."""

from collections.abc import Mapping

import tomli_w

from etips.errors import SettingError


def format_toml(document: Mapping[str, object]) -> str:
    """A document as text, its keys in the order given: first what is plain, then the tables."""
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
