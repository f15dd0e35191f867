"""Columns in figures: what stands in them, how much is missing, how many values there are."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from etips.checks.column_facts import codes_of, look_at
from etips.data.tables.sources import open_source

TABLE = pa.table(
    {
        "id": [1, 2, 3, 4],
        "lactate": [1.5, float("nan"), None, 2.0],
        "flag": [True, False, None, True],
        "died": [0, 1, 1, 0],
        "word": ["b", "a", None, "b"],
        "yes": ["Y", "n", "y", "N"],
        "ward": pa.array(["er", "icu", "er", "er"]).dictionary_encode(),
        "when": [dt.datetime(2020, 1, day) for day in (1, 2, 3, 4)],
        "day": ["2020-01-01", "2020-01-02 10:00", None, "2020-1-4"],
        "european": ["01.02.2020", "2/3/2020", "04.05.20 12:00", "05.06.2020"],
        "empty": pa.nulls(4),
        "bytes": [b"a", b"b", b"c", b"d"],
    }
)


@pytest.fixture(scope="module")
def facts():
    return {own.name: own for own in look_at(open_source(TABLE))}


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("id", "number"), ("lactate", "number"), ("flag", "yes_no"), ("died", "number"),
        ("word", "text"), ("yes", "yes_no"), ("ward", "text"), ("when", "time"), ("day", "time"),
        ("european", "time"), ("empty", "other"), ("bytes", "other"),
    ],
)  # fmt: skip
def test_what_stands_in_the_cells_is_told(name, shape, facts):
    assert facts[name].shape == shape


def test_missing_cells_and_values_are_counted(facts):
    lactate = facts["lactate"]
    assert (lactate.n_missing, lactate.n_distinct, lactate.whole) == (2, 2, False)
    assert (lactate.low, lactate.high) == (1.5, 2.0)
    assert facts["id"].unique
    assert not facts["died"].unique
    assert facts["died"].zero_one
    assert facts["yes"].zero_one
    assert facts["word"].levels == ("a", "b")
    assert facts["id"].names_things
    assert not facts["word"].names_things  # one is missing
    assert facts["empty"].n_missing == 4


def test_rows_of_one_value_have_one_code():
    source = open_source(TABLE)
    assert codes_of(source, "word").tolist() == [0, 1, -1, 0]
    assert codes_of(source, "ward").tolist() == [0, 1, 0, 0]
    assert (codes_of(source, "lactate") < 0).tolist() == [False, True, True, False]
    assert codes_of(source, "when").dtype == np.int64


def test_numbers_written_as_text_are_numbers_and_numbers_among_words_are_mixed():
    table = pa.table({"commas": ["1,5", "2,5", "3,5"], "slip": ["1.5", "2.5", "n/m"]})
    commas, slip = look_at(open_source(table))
    assert (commas.shape, commas.high) == ("number", 3.5)
    assert slip.shape == "mixed"
