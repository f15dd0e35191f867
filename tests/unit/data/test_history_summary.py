"""The summary of a history: hand-worked, causal, and named column by column."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import CLINIC, ward

from etips.data.history_summary import WIDE, summarise_history, summary_columns
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories

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
