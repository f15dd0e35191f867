"""Results on their way into JSON: the fields of frozen dataclasses, nothing that JSON lacks."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, cast

import numpy as np

STRICT: dict[str, object] = {"extra": "forbid", "strict": True, "allow_inf_nan": False}
"""How pydantic reads a document of ours back: nothing unknown, nothing converted."""


def to_json(result: object) -> dict[str, object]:
    """A JSON-ready copy of a dataclass; numbers that are not finite become null."""
    return cast(dict[str, object], _plain(result))


def _plain(value: Any) -> object:  # noqa: ANN401  # whatever a field may hold
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError(f"a result cannot hold {type(value).__name__}")
