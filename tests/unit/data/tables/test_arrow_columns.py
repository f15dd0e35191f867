"""Arrow columns as NumPy arrays, whatever type a library gave them."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from etips.data.tables.arrow_columns import (
    fill_rows,
    is_categorical,
    is_number,
    is_text,
    labels,
    levels_of,
    moments,
    numbers,
    require_number,
)
from etips.errors import DataError


def column(values, kind=None):
    """A column in two parts, as a table read in parts has it."""
    whole = pa.array(values, kind)
    return pa.chunked_array([whole[:1], whole[1:]])


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, None, 3], pa.int8(), [1, np.nan, 3]),
        ([True, False, None], None, [1, 0, np.nan]),
        ([Decimal("1.25"), Decimal("2.50"), None], None, [1.25, 2.5, np.nan]),
        ([0.5, float("nan"), None], pa.float16(), [0.5, np.nan, np.nan]),
        ([None, None], pa.null(), [np.nan, np.nan]),
    ],
    ids=["whole", "boolean", "decimal", "half", "null"],
)
def test_numbers_of_any_type_become_float64_with_nan_for_null(values, kind, expected):
    assert is_number(column(values, kind).type)
    np.testing.assert_array_equal(numbers("x", column(values, kind)), expected)


def test_text_is_no_number_and_the_refusal_counts_what_is_none_without_showing_it():
    texts = column(["1.5", "kanarienvogel", None, "-2e3"])
    assert is_text(texts.type)
    assert not is_number(texts.type)
    with pytest.raises(DataError) as caught:
        require_number("x", texts)
    assert str(caught.value) == "x: must be numeric, is text; 1 of 4 rows fail, first at row 1."
    with pytest.raises(DataError, match=r"^x: must be numeric or boolean\. Turn times into hours"):
        numbers("x", column([datetime.date(2020, 1, 1)] * 2))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary()])
def test_every_kind_of_text_is_text(kind):
    assert is_text(kind)
    assert not is_categorical(kind)
    assert is_categorical(pa.dictionary(pa.int8(), kind))


def test_columns_stand_side_by_side_also_where_rows_are_many():
    n = 10_000
    out = np.empty((n, 2), np.float32)
    fill_rows(out, [column(np.arange(n) / 2), column([True, False] * (n // 2))])
    assert out[:, 0].tolist() == (np.arange(n, dtype=np.float32) / 2).tolist()
    assert out[:4, 1].tolist() == [1, 0, 1, 0]


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


def test_levels_are_sorted_or_those_known_and_missing_is_minus_one():
    levels, codes = levels_of("c", column(["b", None, "a"]), None)
    assert (levels, codes.tolist()) == (("a", "b"), [1, -1, 0])
    levels, codes = levels_of("c", column(["b", "a", "b"]), ("b", "a"))
    assert (levels, codes.tolist()) == (("b", "a"), [0, 1, 0])
    levels, codes = levels_of("c", column(["b", "kanarienvogel"]), ("b",))
    assert (levels, codes.tolist()) == (("b",), [0, -2])
