"""Bands of a number."""

import math

import pytest

from etips.errors import SettingError
from etips.evaluation import bands


def test_bands_open_at_their_edge_and_keep_the_missing_apart():
    found = bands([1.0, 2.0, 5.0, math.nan, 9.0], [2, 5]).tolist()
    assert found == ["under 2", "2 to under 5", "5 and over", "missing", "5 and over"]
    for edges in ([], [2, 2], [3, 1]):
        with pytest.raises(SettingError, match="edges"):
            bands([1.0], edges)
