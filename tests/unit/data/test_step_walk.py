"""Histories step by step: each decision is answered by its own history, whatever their lengths."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import ward

from etips.data.coded import Coded
from etips.data.decisions import NO_ACTION
from etips.data.step_walk import gather, mean_of, side_by_side, some_columns, walk


@pytest.mark.parametrize("lag", [0, 1])
def test_every_decision_is_asked_once_where_its_history_ends(lag):
    data = ward(lag=lag)
    ends = np.full(data.n_decisions, -1)
    for step in walk(data):
        assert (ends[step.asked] == -1).all()
        ends[step.asked] = step.rows[step.seen]
    assert (ends == data.seen_rows).all()


@pytest.mark.parametrize("lag", [0, 1])
def test_what_comes_together_is_the_history_and_nothing_after_it(lag):
    data = ward(lag=lag)
    values = np.arange(data.n_steps, dtype=np.float32)[:, None] ** 2
    found = np.empty((data.n_decisions, 1), np.float32)
    gather(
        walk(data),
        [found],
        begin=lambda rows: [values[rows]],
        join=lambda before, now: [before[0] + now[0]],
        finish=lambda parts: parts,
    )
    starts = data.offsets[data.decisions().stay]
    wanted = [
        values[start : end + 1].sum() for start, end in zip(starts, data.seen_rows, strict=True)
    ]
    assert found[:, 0] == pytest.approx(wanted)


def test_steps_that_nobody_asks_about_are_not_walked():
    data = ward(lag=0)
    assert len(walk(data)) > 1
    first = np.isin(np.arange(data.n_steps), data.offsets[:-1])
    assert len(walk(replace(data, action=np.where(first, data.action, NO_ACTION)))) == 1


def test_the_mean_of_nothing_is_nan():
    total, count = np.array([[3.0, 0.0]], np.float32), np.array([[2.0, 0.0]], np.float32)
    assert mean_of(total, count)[0] == pytest.approx([1.5, np.nan], nan_ok=True)


def test_parts_of_a_table_are_written_through():
    table, parts = side_by_side(2, (1, 0, 2))
    for number, part in enumerate(parts):
        part[:] = number
    assert table.tolist() == [[0, 2, 2], [0, 2, 2]]


def test_some_columns_of_a_coded_sequence_stay_coded():
    coded = Coded(np.arange(6, dtype=np.uint8).reshape(2, 3), np.array([1, 0, 1], np.int32), 0.5)
    some = some_columns(coded, [2, 0])
    assert isinstance(some, Coded)
    assert (some[:] == coded[:][:, [2, 0]]).all()
    assert (some_columns(coded[:], [2, 0]) == some[:]).all()
    assert some_columns(coded, [0, 1, 2]) is coded
