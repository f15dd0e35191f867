"""Sums and maxima by column are NumPy's, to the last digit."""

import numpy as np
import pytest

from etips.evaluation.inference.row_totals import row_maxima, row_sums


@pytest.mark.parametrize("width", [*range(1, 34), 63, 64, 65, 127, 128, 129, 200])
def test_they_are_those_of_numpy_to_the_digit(width):
    table = np.exp(3 * np.random.default_rng(width).normal(size=(500, width)))
    table[::7, 0] = -table[::7, 0]
    np.testing.assert_array_equal(row_sums(table), table.sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(row_maxima(table), table.max(axis=1, keepdims=True))


def test_a_table_without_rows_has_none():
    assert row_sums(np.zeros((0, 9))).shape == row_maxima(np.zeros((0, 9))).shape == (0, 1)
