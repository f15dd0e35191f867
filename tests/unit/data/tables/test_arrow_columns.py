"""Arrow columns as NumPy arrays, whatever type a library gave them."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from etips.data.tables.arrow_columns import (
    encode,
    is_number,
    is_text,
    labels,
    moments,
    numbers,
    require_number,
)
from etips.errors import DataError


def column(values, kind=None):
    """A column in two parts, as a table read in parts has it."""
    whole = pa.array(values, kind)
    return pa.chunked_array([whole[:1], whole[1:]])


def test_text_is_no_number_and_the_refusal_counts_what_is_none_without_showing_it():
    texts = column(["1.5", "kanarienvogel", None, "-2e3"])
    assert is_text(texts.type)
    assert not is_number(texts.type)
    with pytest.raises(DataError) as caught:
        require_number("x", texts)
    assert str(caught.value) == "x: must be numeric, is text; 1 of 4 rows fail, first at row 1."
    with pytest.raises(DataError, match=r"^x: must be numeric or boolean\. Turn times into hours"):
        numbers("x", column([datetime.date(2020, 1, 1)] * 2))


def test_identifiers_are_numbered_in_the_order_of_numbers_or_of_text():
    for values, expected in (([9, 10, 9], [9, 10]), (["9", "10", "9"], ["10", "9"])):
        names, codes = labels("s", column(values))
        assert names.tolist() == expected
        assert [expected[code] for code in codes] == values
    with pytest.raises(DataError, match=r"^s: must not be missing; 1 of 2 rows fail"):
        labels("s", column([1, None]))
    with pytest.raises(DataError, match=r"^s: must be a whole number within 2\*\*53, or text"):
        labels("s", column([1.5, 2.0]))


def test_steps_are_numbers_or_times_and_no_text():
    assert moments("t", column([2.0, 1.0])).dtype == np.int64
    assert moments("t", column([2.5, 1.0])).dtype == np.float64
    days = moments("t", column([datetime.date(2020, 1, 2), datetime.date(2020, 1, 1)]))
    assert days.dtype == "datetime64[us]"
    assert days[1] < days[0]
    with pytest.raises(DataError, match=r"^t: must order in time; 2 of 2 rows fail"):
        moments("t", column(["1", "2"]))


def test_steps_of_one_word_and_a_number_are_numbers():
    assert moments("t", column(["V2", "v10", "V1"])).tolist() == [2, 10, 1]
    assert moments("t", column(["Week 4", "week 12"])).tolist() == [4, 12]
    for mixed in (["V1", "baseline"], ["V1", "W2"], ["V1", None]):
        with pytest.raises(DataError, match=r"^t: must order in time"):
            moments("t", column(mixed))


def test_a_dictionary_is_not_spelt_out():
    """1.5 MB of Parquet took 4.2 GB: a million rows of two long texts."""
    levels = pa.array(["unused", "x" * 5000, None, "y" * 5000], pa.large_string())
    code = pa.array(np.r_[np.tile([1, 3], 50_000), 2], pa.int32())
    texts = pa.chunked_array([pa.DictionaryArray.from_arrays(code, levels)] * 2)
    before = pa.default_memory_pool().max_memory()
    values, rows = encode(texts)
    assert [text[:1] for text in values.to_pylist()] == [b"x", b"y"]
    assert rows[[0, 1, 100_000, -2, -1]].tolist() == [0, 1, -1, 1, -1]
    assert pa.default_memory_pool().max_memory() - before < 2**25
