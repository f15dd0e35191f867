"""What a decision saw last, by the columns of the table."""

import numpy as np
import pyarrow as pa
import pytest

from etips.data.intake.last_rows import as_written, last_rows, last_values, visible_columns
from etips.data.tables.arrays import from_arrays
from etips.data.tables.reading import read_table


@pytest.fixture
def log():
    return pa.table(
        {
            "stay": [1, 1, 1, 2, 2],
            "t": [0, 4, 8, 0, 4],
            "dose": [0, 1, 0, 1, 0],
            "loss": [0.0, 1.0, 0.0, 1.0, 0.0],
            "temperature": [None, 38.3, None, 36.6, 37.0],
            "ward": ["icu", "er", "er", None, "icu"],
            "age": [61, 61, 61, 70, 70],
        }
    )


def read(log, **more):
    roles = {"stay": "stay", "step": "t", "action": "dose", "loss": "loss", "static": ["age"]}
    return read_table(log, **{**roles, "categorical": ["ward"], "missing": "carry", **more})


def test_with_a_lag_it_is_the_row_before_and_without_one_the_decisions_own(log):
    assert last_rows(read(log)).column("t").to_pylist() == [0, 4, 0]
    assert last_rows(read(log, lag=0)).column("t").to_pylist() == [0, 4, 8, 0, 4]


def test_levels_are_joined_and_static_columns_stand_beside(log):
    rows = last_rows(read(log))
    assert rows.column("ward").to_pylist() == ["icu", "er", None]
    assert rows.column("age").to_pylist() == [61.0, 61.0, 70.0]


def test_a_carried_gap_has_the_value_and_its_mark_and_what_was_never_known_is_null(log):
    rows = last_rows(read(log, lag=0))
    assert rows.column("temperature").to_pylist() == [None, 38.3, 38.3, 36.6, 37.0]
    assert rows.column("temperature_missing").to_pylist() == [True, False, True, False, False]
    values = last_values(read(log, lag=0), ["temperature"])["temperature"]
    assert np.isnan(values[0])


def test_neither_the_action_nor_the_loss_can_be_asked_for(log):
    assert not {"dose", "loss", "stay"} & set(visible_columns(read(log).schema))


def test_only_what_is_wanted_is_made(log):
    assert last_rows(read(log), ["ward"]).column_names == ["ward"]
    assert last_rows(read(log), []).num_columns == 0


def test_numbers_come_back_as_they_were_written():
    written = [38.3, 0.1, 7.0, 1e-7, 123456.7]
    assert as_written(np.array(written, np.float32)).tolist() == written


def test_arrays_have_columns_too():
    data = from_arrays(np.array([[1.0, 2.0], [3.0, 4.0]]), action=[0, 1], loss=[0, 1])
    assert last_values(data)["x1"].tolist() == [2.0, 4.0]
