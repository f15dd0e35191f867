"""Numbers on their way into JSON, which has neither NaN nor infinity."""

import math
from collections.abc import Mapping

import numpy as np


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
