"""Columns in units of their spread: to the digit what NumPy has of the whole table at once."""

import numpy as np
import pytest

from etips.evaluation import standard_units
from etips.evaluation.standard_units import by_column, centre_and_spread, standardise


def table(kind, width, gaps):
    rng = np.random.default_rng(width)
    rows = (3 + rng.normal(size=(500, width))).astype(kind)
    if gaps:
        rows[rng.random(rows.shape) < 0.1] = np.nan
        rows[:, 0] = np.nan
    return rows


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("width", [2, 3, 9, 200])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_centre_and_spread_are_to_the_digit_those_of_the_whole_table(
    kind, width, gaps, monkeypatch
):
    monkeypatch.setattr(standard_units, "NUMBERS", 130 * width)  # several parts, the last one short
    rows = table(kind, width, gaps)
    known = ~np.isnan(rows)
    count = np.maximum(known.sum(axis=0), 1)
    filled = np.where(known, rows, 0.0)
    mean = filled.sum(axis=0) / count
    spread = np.sqrt(np.where(known, (filled - mean) ** 2, 0.0).sum(axis=0) / count)
    for own, whole in zip(centre_and_spread(rows), (mean, spread), strict=True):
        np.testing.assert_array_equal(own, whole)


def test_one_column_and_no_row_have_a_centre_too():
    centre, spread = centre_and_spread(np.arange(9.0)[:, None])
    assert (centre[0], spread[0]) == pytest.approx((4, np.arange(9).std()))
    assert np.array_equal(centre_and_spread(np.zeros((0, 3))), np.zeros((2, 3)))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_gaps_and_columns_that_say_nothing_are_zero_and_tails_are_cut(kind, monkeypatch):
    monkeypatch.setattr(standard_units, "NUMBERS", 300)
    rows = table(kind, 4, True)
    rows[0, 1:], rows[1, 1:] = np.inf, -np.inf
    centre, unit = np.full(4, 3.0), np.array([1.0, 0.5, np.inf, 2.0])
    wide = np.full((500, 6), 8.0)
    assert np.shares_memory(standardise(rows, centre, unit, 1.5, out=wide[:, 1:5]), wide)
    with np.errstate(invalid="ignore"):
        plain = (rows - centre) / unit
    plain = np.clip(np.where(np.isnan(plain), 0.0, plain), -1.5, 1.5)
    np.testing.assert_array_equal(wide[:, 1:5], plain)
    assert not wide[:, 3].any()
    assert (wide[:, [0, 5]] == 8).all()
    assert np.abs(wide[:2, [2, 4]]).tolist() == [[1.5, 1.5], [1.5, 1.5]]


def test_columns_are_turned_whole_or_some_of_them():
    rows = table(np.float32, 5, True)
    for columns in (np.arange(5), np.array([3, 1]), np.zeros(0, np.int64)):
        turned = by_column(rows, columns)
        assert turned.flags.c_contiguous
        np.testing.assert_array_equal(turned, rows[:, columns].T)
