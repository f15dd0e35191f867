"""Histories as rows."""

from dataclasses import fields, replace

import numpy as np
import pytest
from small_worlds import CLINIC, ward
from tabular_worlds import gappy

from etips.data import from_arrays
from etips.data.history_rows import (
    column_means,
    fill_gaps,
    has_past,
    last_and_mean,
    last_step,
    summarise_history,
    summary_columns,
    usual_summary,
    visible_rows,
)
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories

WIDE = 128  # from more features on, summaries are left out


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


NAN = np.nan


def by_hand(lag=0):
    """One stay of four steps; lactate is missing at the first and the third."""
    return Trajectories(
        sequence=np.array([[1, NAN, 1], [3, 2, 0], [2, NAN, 1], [6, 5, 0]], np.float32),
        offsets=np.array([0, 4]),
        schema=Schema(
            sequence=("hr", "lactate", "lactate_missing"),
            static=("age",),
            indicators=("lactate",),
            n_actions=2,
            lag=lag,
        ),
        action=np.array([0, 1, 0, 1]),
        loss=np.zeros(4),
        static=np.array([[70]], np.float32),
    )


def test_the_columns_of_a_stay_worked_by_hand():
    columns = summary_columns(by_hand().schema)
    assert columns == (
        "last hr", "last lactate", "mean hr", "mean lactate", "change hr", "change lactate",
        "steps since lactate", "steps", "age",
    )  # fmt: skip
    np.testing.assert_array_equal(
        summarise_history(by_hand()),
        np.array(
            [
                [1, NAN, 1, NAN, 0, NAN, NAN, 1, 70],
                [3, 2, 2, 2, 2, 0, 0, 2, 70],
                [2, 2, 2, 2, -1, 0, 1, 3, 70],
                [6, 5, 3, 3.5, 4, 3, 0, 4, 70],
            ],
            np.float32,
        ),
    )


def test_with_lag_a_decision_sees_the_rows_of_the_step_before():
    now, before = summarise_history(by_hand()), summarise_history(by_hand(lag=1))
    np.testing.assert_array_equal(before, now[:3])


def test_a_logarithm_is_taken_where_learners_take_it():
    data = by_hand()
    logs = replace(data, schema=replace(data.schema, logarithms=("hr",)))
    first = summarise_history(logs)[0, 0]
    assert first == pytest.approx(np.log(1.1), abs=1e-6)


@pytest.mark.parametrize("lag", [0, 1])
def test_nothing_of_later_steps_is_in_it(lag):
    data = ward(lag=lag)
    step = data.decisions().step
    noise = np.random.default_rng(1).normal(size=data.sequence.shape).astype(np.float32)
    place = np.arange(data.n_steps) - np.repeat(data.offsets[:-1], np.diff(data.offsets))
    altered = replace(data, sequence=np.where((place > 2 - lag)[:, None], noise, data.sequence))
    early = step <= 2
    before, after = summarise_history(data), summarise_history(altered)
    np.testing.assert_array_equal(before[early], after[early])
    assert (before[~early] != after[~early]).any()


def test_a_coded_sequence_gives_the_same_rows():
    coded = CLINIC.log(40, seed=0)
    plain = coded.with_features(coded.sequence[:], coded.static)
    np.testing.assert_array_equal(summarise_history(coded), summarise_history(plain))


def test_of_wide_steps_the_last_and_the_mean_are_kept_block_by_block():
    rng, width = np.random.default_rng(0), WIDE + 5
    data = Trajectories(
        sequence=rng.normal(size=(6, width)).astype(np.float32),
        offsets=np.array([0, 2, 6]),
        schema=Schema(sequence=tuple(f"p{i}" for i in range(width)), n_actions=2, lag=0),
        action=np.zeros(6, np.int64),
        loss=np.zeros(6),
    )
    rows = summarise_history(data)
    assert rows.shape == (6, 2 * width + 1) == (6, len(summary_columns(data.schema)))
    np.testing.assert_array_equal(rows[:, :width], data.sequence)
    assert rows[5, width : 2 * width] == pytest.approx(data.sequence[2:].mean(axis=0), abs=1e-6)


@pytest.mark.parametrize("lag", [0, 1])
def test_the_lowest_highest_and_first_so_far_are_those_of_a_plain_loop(lag):
    data = ward(lag=lag)
    sequence = np.array(data.sequence)
    sequence[np.random.default_rng(0).random(sequence.shape) < 0.4] = NAN
    schema = replace(data.schema, indicators=data.schema.sequence, logarithms=("lactate",))
    data = replace(data, sequence=sequence, schema=schema)
    log = schema.sequence.index("lactate")
    sequence = sequence.copy()
    shifted = sequence[:, log] + np.float32(0.1)
    sequence[:, log] = np.log(np.where(shifted > 0, shifted, NAN))
    plain, more = summarise_history(data), summarise_history(data, extremes=True)
    names = summary_columns(schema, extremes=True)
    d = len(schema.sequence)
    assert names[: -3 * d] == summary_columns(schema)
    assert names[-3 * d :] == (
        *(f"lowest {name}" for name in schema.sequence),
        *(f"highest {name}" for name in schema.sequence),
        *(f"first {name}" for name in schema.sequence),
    )
    np.testing.assert_array_equal(more[:, : -3 * d], plain)
    for row, (stay, last) in enumerate(zip(data.decisions().stay, data.seen_rows, strict=True)):
        history = sequence[data.offsets[stay] : last + 1]
        for place in range(d):
            known = history[~np.isnan(history[:, place]), place]
            wanted = [known.min(), known.max(), known[0]] if known.size else [NAN] * 3
            found = more[row, -3 * d :].reshape(3, d)[:, place]
            np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_wide_steps_have_no_extremes():
    schema = Schema(sequence=tuple(f"x{k}" for k in range(WIDE + 1)), static=(), n_actions=2)
    assert summary_columns(schema, extremes=True) == summary_columns(schema)
    data = Trajectories(
        sequence=np.ones((2, WIDE + 1), np.float32), offsets=np.array([0, 2]), schema=schema,
        action=np.array([0, 1]), loss=np.zeros(2), static=np.zeros((1, 0), np.float32),
    )  # fmt: skip
    np.testing.assert_array_equal(summarise_history(data, extremes=True), summarise_history(data))
