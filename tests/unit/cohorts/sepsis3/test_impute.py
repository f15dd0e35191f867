"""Section 13: interpolation and the nearest neighbour."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etips.cohorts.sepsis3 import impute
from etips.cohorts.sepsis3.impute import impute_nearest, interpolate
from etips.cohorts.sepsis3.rules import PAPER

NAN = np.nan


def filled(*columns, **options):
    values = np.array(columns, float)
    impute_nearest(values, **options)
    return values


def test_a_constant_column_adds_nothing_to_the_distance():
    np.testing.assert_array_equal(
        filled([7, 7, 7], [0, 1, 10], [5, NAN, 7])[2], filled([0, 1, 10], [5, NAN, 7])[1]
    )
    assert filled([7, 7, 7], [2, NAN, 4])[1, 1] == 3


def test_without_a_complete_column_medians_stand_in():
    assert filled([1, NAN, 3], [NAN, 5, 6]).tolist() == [[1, 2, 3], [5.5, 5, 6]]


def test_a_chunk_does_not_look_over_its_border():
    values = [0, 9, 1, 9], [5, 6, NAN, 7]
    assert filled(*values)[1, 2] == 5
    assert filled(*values, chunk=2)[1, 2] == 7


def test_the_last_chunk_is_the_last_rows_and_sees_what_was_filled_before():
    # chunks 0-1 and, overlapping, 1-2: row 2 takes what row 1 was given by row 0
    found = filled([0, 1, 2], [5, NAN, NAN], chunk=2)
    assert found[1].tolist() == [5, 5, 5]


def test_leading_and_trailing_gaps_are_not_interpolated():
    column = np.array([NAN, 1, NAN, NAN, 4, NAN])
    np.testing.assert_array_equal(interpolate(column), [NAN, 1, 2, 3, 4, NAN])


def test_gaps_across_stays_are_interpolated_in_the_scripts_and_left_in_clean():
    column, first = np.array([1, NAN, NAN, 4.0]), np.array([0, 0, 2, 2])
    assert interpolate(column).tolist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(interpolate(column, first=first), column)
    inside = np.array([1, NAN, 3.0])
    assert interpolate(inside, first=np.zeros(3, int)).tolist() == [1, 2, 3]


def test_with_partial_distances_an_unknown_column_counts_as_that_of_strangers():
    """A donor that agrees nearly is preferred to one that says nothing, and that to a far one."""
    spread = [0.0, 10.0] * 10
    place, given = [0.1, NAN, 10.0], [1.0, 2.0, 3.0]
    for kept, expected in (((0, 1, 2), 1), ((1, 2), 2), ((2,), 3)):
        first = np.array([0.0, *(place[i] for i in kept), *spread])
        second = np.array([NAN, *(given[i] for i in kept), *[NAN] * 20])
        assert filled(first, second, partial=True)[1, 0] == expected


def by_hand(values, *, partial=False):
    """A second, plain implementation: every cell on its own."""
    result = values.copy()
    complete = [c for c in values if partial or not np.isnan(c).any()]
    scaled = np.array([c / (np.nanstd(c, ddof=1) or np.inf) for c in complete])
    for column, row in zip(*np.nonzero(np.isnan(values)), strict=True):
        squared = (scaled - scaled[:, [row]]) ** 2
        distance = np.sqrt(np.where(np.isnan(squared), 2.0, squared).sum(axis=0))
        distance[np.isnan(values[column])] = np.inf
        nearest = distance.min()
        if np.isfinite(nearest):
            near = distance <= nearest + 1e-9 * (1 + nearest)
            result[column, row] = values[column, near].mean()
    return result


@given(st.integers(0, 10**6), st.integers(2, 60), st.booleans(), st.booleans())
def test_the_fast_search_agrees_with_a_plain_one(seed, n, ties, partial):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(5, n))
    if ties:
        values = np.round(values)
    lost = slice(0, None) if partial else slice(2, None)
    values[lost][rng.random(values[lost].shape) < 0.5] = NAN
    values[:, :2] = [[1, 2]]  # two rows know everything: no column is unknown or without a spread
    expected = by_hand(values, partial=partial)
    original = impute._CANDIDATES
    try:
        impute._CANDIDATES = 4  # few, so that the second look at all donors is taken often
        impute_nearest(values, partial=partial)
    finally:
        impute._CANDIDATES = original
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


def imputed(**columns):
    """Columns of one stay beside one that is complete, as the scripts fill them."""
    n = len(next(iter(columns.values())))
    rows = pl.DataFrame({"icustayid": [1] * n, "HR": np.arange(float(n)), **columns})
    rules = replace(PAPER, impute_without_delay=True)
    return impute.impute(rows, ("HR", *columns), rules, donors=None, drop_sparse=True)


@pytest.mark.parametrize(("n_missing", "expected"), [(4, 10.0), (5, 9.0)])
def test_only_columns_with_less_than_five_percent_missing_are_interpolated(n_missing, expected):
    values = np.arange(100.0)
    values[10 : 10 + n_missing] = NAN
    assert imputed(Sodium=values)["Sodium"][10] == expected


def test_sparse_columns_are_left_alone_except_those_the_scores_need():
    sparse, dense = np.full(10, NAN), np.ones(10)
    sparse[:3], dense[:6] = 1, NAN
    found = imputed(CVP=dense, CI=sparse, GCS=sparse)
    assert [found[name].is_nan().any() for name in ("CVP", "CI", "GCS")] == [False, True, False]
