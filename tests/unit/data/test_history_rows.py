"""Histories as rows of one width."""

from dataclasses import fields

import numpy as np
import pytest
from small_worlds import ward
from tabular_worlds import gappy

from etips.data import from_arrays
from etips.data.history_rows import (
    VisibleColumns,
    column_means,
    fill_gaps,
    has_past,
    last_and_mean,
    last_step,
    usual_summary,
    visible_rows,
)


@pytest.mark.parametrize("lag", [0, 1])
def test_the_summary_is_last_step_mean_count_and_static(lag):
    data = ward(lag=lag)
    windows = data.histories()
    found = last_and_mean(data)
    for row, (window, length) in enumerate(zip(windows.sequence, windows.lengths, strict=True)):
        seen = window[:length].astype(np.float64)
        expected = np.concatenate([seen[-1], seen.mean(axis=0), [length], windows.static[row]])
        assert found[row] == pytest.approx(expected, abs=1e-5)


def test_the_summary_answers_questions_past_the_end():
    asked = ward(lag=1).without_log()
    found = last_and_mean(asked)
    assert found.shape == (asked.n_steps, 2 * 4 + 1 + 2)
    assert (found[:, :4] == asked.sequence[:]).all()


@pytest.mark.parametrize("lag", [0, 1])
def test_what_is_visible_holds_the_whole_history(lag):
    data = ward(lag=lag)
    windows, found = data.histories(), visible_rows(data)
    action = data.action[np.maximum(data.decision_rows - 1, 0)]
    for row, (window, length) in enumerate(zip(windows.sequence, windows.lengths, strict=True)):
        seen = window[:length].astype(np.float64)
        change = seen[-1] - seen[-2] if length > 1 else np.zeros(4)
        first = data.decisions().step[row] == 0
        before = np.zeros(data.n_actions) if first else np.eye(data.n_actions)[action[row]]
        parts = [seen[-1], seen.mean(0), change, seen.min(0), seen.max(0), [length]]
        expected = np.concatenate([*parts, windows.static[row], before])
        assert found[row] == pytest.approx(expected, abs=1e-5)
    assert found.dtype == np.float32


def test_a_missing_value_is_passed_over_and_never_reaches_another_stay():
    data = ward(lag=0)
    stay, step = data.decisions()
    row = int(np.flatnonzero(step == 1)[0])  # a second step
    sequence = data.sequence[:].copy()
    sequence[data.seen_rows[row]] = np.nan
    broken = data._trusted(**(vars_of(data) | {"sequence": sequence}))
    found, whole = visible_rows(broken), visible_rows(data)
    other = stay != stay[row]
    assert (found[other] == whole[other]).all()
    assert np.isnan(found[row, :4]).all()
    assert found[row, 4:8] == pytest.approx(sequence[data.seen_rows[row] - 1])  # of what is known


def vars_of(data):
    return {f.name: getattr(data, f.name) for f in fields(data)}


@pytest.mark.parametrize("lag", [0, 1])
def test_rows_of_some_stays_are_written_as_those_of_all_are(lag):
    data = ward(lag=lag)
    data = data.subset(np.argsort(np.diff(data.offsets), kind="stable"))  # the shortest come first
    columns, whole = VisibleColumns.of(data), visible_rows(data)
    table, stay = np.full_like(whole, np.nan), data.decisions().stay
    for start in range(0, data.n_stays, 3):  # of some parts every decision may be a first one
        own = data.subset(slice(start, start + 3))
        columns.write(own, table[slice(*np.searchsorted(stay, [start, start + 3]))])
    assert np.array_equal(table, whole)


def test_a_table_that_would_not_fit_leaves_out_summaries():
    data = ward()
    widths = [visible_rows(data, most_numbers=m).shape[1] for m in (10**6, 30 * 1000, 1)]
    assert widths == sorted(widths, reverse=True)
    assert (visible_rows(data, most_numbers=1)[:, :4] == data.sequence[data.seen_rows]).all()


def test_of_wide_steps_the_columns_that_vary_are_kept():
    generator = np.random.default_rng(0)
    rows = np.zeros((50, 784))
    rows[:, 300:310] = generator.normal(size=(50, 10))
    found = visible_rows(from_arrays(rows, np.arange(50) % 2, np.arange(50) % 3 / 2))
    assert found.shape == (50, 128 + 1)
    assert (found != 0).any(axis=0).sum() == 10 + 1  # and the number of steps


def test_the_mean_passes_over_gaps_and_those_of_other_stays():
    data = gappy(ward())
    stay, step = data.decisions()
    found = last_and_mean(data)[:, 4:8]
    for row in range(0, data.n_decisions, 7):
        start = data.offsets[stay[row]]
        seen = data.sequence[start : data.seen_rows[row] + 1]
        known = ~np.isnan(seen)
        by_hand = np.where(known, seen, 0).sum(axis=0) / np.where(
            known.any(0), known.sum(0), np.nan
        )
        np.testing.assert_allclose(found[row], by_hand, rtol=1e-5)
    assert step.max() > 1


def test_stays_without_a_past_are_their_last_step():
    data = from_arrays(np.arange(6.0).reshape(3, 2), [0, 1, 0], [0, 0, 1], static=[[7], [8], [9]])
    assert last_step(data).tolist() == [[0, 1, 7], [2, 3, 8], [4, 5, 9]]
    assert not has_past(data)
    assert has_past(ward())
    assert usual_summary(data) is last_step
    assert usual_summary(ward()) is last_and_mean


def test_gaps_are_filled_with_the_mean_of_what_is_known():
    rows = np.array([[1, np.nan], [3, np.nan]], np.float32)
    assert column_means(rows).tolist() == [2, 0]
    asked = np.array([[np.nan, 5]], np.float32)
    assert fill_gaps(asked, column_means(rows)).tolist() == [[2, 5]]
