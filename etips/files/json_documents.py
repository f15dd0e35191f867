"""JSON documents: their one spelling, what they can hold, and small ones read from a file."""

import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from etips.errors import FileError

_LIMIT = 2**20  # bytes of a small document: some tens of lines


def canonical(document: Mapping[str, object]) -> bytes:
    """The one spelling of a JSON document: sorted keys, ASCII, no NaN."""
    text = json.dumps(document, sort_keys=True, indent=1, ensure_ascii=True, allow_nan=False)
    return text.encode() + b"\n"


def finite(value: object) -> float | None:
    """The number, or None where there is none that JSON could hold."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating | np.integer):
        return None
    return float(value) if math.isfinite(value) else None


def plain(value: object) -> object:
    """A copy that JSON can hold: what it has no word for is written out as text."""
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return str(value)


def read_document(path: Path) -> dict[str, object] | None:
    """A small JSON object that stands beside a run or its data; None if there is none."""
    if not path.is_file():
        return None
    if path.stat().st_size > _LIMIT:
        raise FileError(str(path), "is too large for what it should hold")
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(str(path), "is not valid JSON") from error
    if not isinstance(document, dict):
        raise FileError(str(path), "must be an object")
    return document
