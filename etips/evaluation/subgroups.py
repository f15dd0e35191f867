"""Bands of a number, for risks by subgroup."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from etips.errors import SettingError


def bands(values: ArrayLike, edges: Sequence[float]) -> NDArray[np.str_]:
    """Labels of the bands of `values` (n,) cut at rising `edges`; an edge opens the band above."""
    numbers = np.asarray(values, dtype=np.float64)
    if not edges or any(high <= low for low, high in pairwise(edges)):
        raise SettingError("edges", "must be one or more rising numbers")
    middle = [f"{low:g} to under {high:g}" for low, high in pairwise(edges)]
    labels = np.array([f"under {edges[0]:g}", *middle, f"{edges[-1]:g} and over", "missing"])
    place = np.where(np.isnan(numbers), len(edges) + 1, np.searchsorted(edges, numbers, "right"))
    return labels[place]
