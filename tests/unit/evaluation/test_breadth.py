"""How many different things a table tells."""

import numpy as np
import pytest

from etips.evaluation.breadth import breadth


def test_columns_that_say_the_same_count_once():
    rows = np.random.default_rng(0).normal(size=(4000, 5))
    assert breadth(rows) == pytest.approx(5, rel=0.02)
    assert breadth(np.hstack([rows, 2 * rows, 1 - rows])) == pytest.approx(5, rel=0.02)


def test_gaps_and_constants_tell_nothing():
    rows = np.random.default_rng(0).normal(size=(500, 4))
    rows[:, 1] = 3.0
    rows[:, 2] = np.nan
    rows[::3, 3] = np.nan
    assert breadth(rows) == pytest.approx(2, rel=0.05)
    assert breadth(np.ones((10, 2))) == 0
    assert breadth(np.zeros((10, 0))) == 0
