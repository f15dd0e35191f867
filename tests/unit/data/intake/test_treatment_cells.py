"""Cells of a treatment as labels."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from etips.data.intake.treatment_cells import label_column
from etips.errors import DataError


def labelled(values, kind=None):
    column = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values], kind)
    return label_column("table, column drug", "drug", column)


@pytest.mark.parametrize(
    ("values", "labels", "code"),
    [
        (["b", "a", None, "b"], ("a", "b"), [1, 0, -1, 1]),
        (["Aspirin ", "Aspirin", "  "], ("Aspirin",), [0, 0, -1]),
        (["two  words", "two words"], ("two words",), [0, 0]),
        (["10", "9", "1"], ("1", "9", "10"), [2, 1, 0]),
        ([3, 1, None, 2], ("1", "2", "3"), [2, 0, -1, 1]),
        ([1.0, float("nan"), 0.5], ("0.5", "1"), [1, -1, 0]),
        ([-1, 1], ("-1", "1"), [0, 1]),
        ([True, None, False], ("false", "true"), [1, -1, 0]),
        ([True, True], ("false", "true"), [1, 1]),
    ],
)
def test_labels_are_in_order_and_blanks_are_nothing(values, labels, code):
    found = labelled(values)
    assert found.labels == labels
    assert found.code.tolist() == code


@pytest.mark.parametrize(
    "column",
    [
        pa.chunked_array([pa.array(["x", "y", None])]).dictionary_encode(),
        pa.table({"c": pa.Array.from_pandas(pd.Series(["x", "y", None], dtype="category"))})["c"],
        pl.Series("c", ["x", "y", None], dtype=pl.Categorical).to_frame().to_arrow()["c"],
        pl.Series("c", ["x", "y", None]).to_frame().to_arrow()["c"],
    ],
)
def test_categories_of_every_library_are_labels(column):
    assert labelled(column).labels == ("x", "y")
    assert labelled(column).code.tolist() == [0, 1, -1]


def test_a_code_is_the_same_label_whatever_type_holds_it():
    kinds = [pa.int16(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(5, 1)]
    assert {labelled([100, 200], kind).labels for kind in kinds} == {("100", "200")}
    assert (
        labelled([0.1, 0.2], pa.float32()).labels == labelled([0.1, 0.2]).labels == ("0.1", "0.2")
    )
    assert labelled(["100", "200"]).labels == ("100", "200")


def test_holes_are_seen():
    assert labelled([0, 1, 2]).is_range
    assert not labelled([0, 2]).is_range
    assert not labelled([1, 2]).is_range
    assert not labelled(["0", "1"]).is_range


def test_booleans_are_called_by_their_column():
    column = labelled([True, False])
    assert [column.called(label, alone=True) for label in column.labels] == ["no drug", "drug"]


def test_a_code_beside_other_columns_says_of_which_it_is():
    assert labelled([1, 3]).called("3", alone=True) == "3"
    assert labelled([1, 3]).called("3", alone=False) == "drug 3"
    assert labelled(["x"]).called("x", alone=False) == "x"


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ([float("inf"), 0.0], "must be finite"),
        ([1e300, 0.0], r"must be below 2\*\*53"),
        (["a" * 101, "b"], "must be text of at most 100 characters"),
        ([np.datetime64("2020-01-01", "us")], "must be text, numbers, or true and false"),
        ([b"\xff", b"a"], "must be UTF-8 text"),
        (np.arange(70_000), "must hold at most 65,536 different treatments"),
    ],
)
def test_what_is_no_treatment_is_refused(values, rule):
    with pytest.raises(DataError, match=rf"^table, column drug: {rule}"):
        labelled(pa.array(values) if isinstance(values, np.ndarray) else values)


def test_an_ordered_category_keeps_its_order():
    doses = pd.Categorical(["high", "low", None], ["low", "mid", "high"], ordered=True)
    found = labelled(pa.chunked_array([pa.Array.from_pandas(pd.Series(doses))]))
    assert found.labels == ("low", "high")
    assert found.code.tolist() == [1, 0, -1]
