"""What is taken off numbers."""

import numpy as np
import pyarrow as pa
import pytest

from etips.data.tables.number_cells import sort_numbers
from etips.data.tables.number_marks import (
    beside_whole,
    clear_thousands,
    common_unit,
    without_limits,
    without_thousands,
    without_unit,
    wrongly_grouped,
)


@pytest.mark.parametrize(
    ("texts", "unit"),
    [
        (["5 mg", "7mg"], "mg"),
        (["5%"], "%"),
        (["5 mg", "7 g"], None),
        (["1c", "2c"], None),
        (["1 c", "2 c"], "c"),
        ([f"{n}h" for n in range(20)], "h"),
    ],
)
def test_a_unit_is_what_all_have(texts, unit):
    assert common_unit(pa.array(texts), np.ones(len(texts), bool)) == unit


def test_what_stands_around_a_number_is_taken_off():
    assert without_unit(pa.array(["5 mg/l", "7 MG/L", None]), "mg/l").to_pylist() == [
        "5",
        "7",
        None,
    ]
    limits = pa.array(["<5", ">= 7", "85+", "1.5", "a+b"])
    assert without_limits(limits).to_pylist() == ["5", "7", "85", "1.5", "a+b"]
    grouped = pa.array(["1,234,567.5", "1 234", "1'234"])
    assert without_thousands(grouped, ".").to_pylist() == ["1234567.5", "1234", "1234"]
    assert without_thousands(pa.array(["1.234,5"]), ",").to_pylist() == ["1234,5"]


def test_some_thousands_leave_one_mark_for_fractions():
    texts = pa.array(["1,234,567", "1,234.5", "1.234,5", "1 234", "1,234"])
    assert clear_thousands(texts, ".").tolist() == [True, True, False, False, False]
    assert clear_thousands(texts, ",").tolist() == [False, False, True, False, False]


def test_a_group_beside_a_fraction_is_a_slip_unless_others_show_the_habit():
    assert wrongly_grouped(sort_numbers(pa.array(["36.6", "1,234"])), ".").tolist() == [False, True]
    shown = sort_numbers(pa.array(["36.6", "1,234", "1,234.5"]))
    assert not wrongly_grouped(shown, ".").any()


@pytest.mark.parametrize(
    ("texts", "thousands"),
    [
        (["850", "1,234"], True),
        (["7", "1,234"], False),
        (["850", "12000", "1,234"], False),
        (["850", "1,234", "1.234"], False),
    ],
)
def test_whole_numbers_beside_it_tell_a_thousand_from_a_fraction(texts, thousands):
    assert beside_whole(sort_numbers(pa.array(texts)), np.ones(len(texts), bool)) is thousands
