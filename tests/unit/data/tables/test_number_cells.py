"""Numbers as people write them."""

import math

import pyarrow as pa
import pytest

from etips.data.tables.number_cells import sort_numbers, to_numbers

KINDS = {
    "plain": ["1", "-3", "+7", "007", "1e5", "NaN", "-inf"],
    "point": ["1.5", ".5", "2.", "0.123", "1234.567", "12.3456", "1.5e-3", "-0.500"],
    "comma": ["1,5", ",5", "0,123", "1234,567", "-2,5e3"],
    "maybe_point": ["1.234", "-12.345", "999.000"],
    "maybe_comma": ["1,234", "12,345"],
    "thousands": ["1.234.567", "1,234.5", "1.234,50", "1 234", "1'234'567", "12,345,678"],
    "limit": ["<0.1", "> 100", "≤5", "<=5", "90+"],
    "unit": ["5 mg", "12%", "37.5 °C", "120mmHg", "3 ml/h", "8 hrs"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_is_of_one_kind_only(kind):
    found = sort_numbers(pa.array(KINDS[kind]))
    for other in KINDS:
        assert getattr(found, other).tolist() == [other == kind] * len(KINDS[kind]), other


def test_what_is_no_number_is_of_no_kind():
    found = sort_numbers(pa.array(["", "a", "1a", "18-65", "1.2.3", "12:30", "2020-01-02", None]))
    assert not any(getattr(found, kind).any() for kind in KINDS)


def test_numbers_are_read_with_the_mark_that_they_have():
    assert to_numbers(pa.array(["1,5", "+2", "-1,5e2", None]), ",")[:3].tolist() == [1.5, 2, -150]
    found = to_numbers(pa.array(["NaN", "-inf", "1.25", None]), ".")
    assert math.isnan(found[0])
    assert found[1:3].tolist() == [-math.inf, 1.25]
    assert math.isnan(found[3])
