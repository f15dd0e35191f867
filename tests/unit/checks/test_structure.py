"""How rows lie in their stays, in any order."""

import pyarrow as pa

from etips.checks.structure import Structure
from etips.data.tables.sources import open_source

TABLE = pa.table(
    {
        "stay": ["b", "a", "b", "a", "c"],
        "step": [1, 0, 0, 1, 0],
        "twice": [0, 0, 0, 1, 0],
        "age": [50, 60, 50, None, 50],
        "hr": [1, 2, 3, 4, 5],
        "gone": [None, 1, 1, 2, 3],
    }
)


def test_stays_are_counted_whatever_the_order_of_rows():
    structure = Structure(open_source(TABLE), "stay")
    assert (structure.n_stays, structure.longest) == (3, 2)


def test_a_column_is_constant_if_each_stay_has_one_value_and_gaps_are_none():
    structure = Structure(open_source(TABLE), "stay")
    assert structure.is_constant("age")
    assert structure.is_constant("stay")
    assert not structure.is_constant("hr")


def test_a_column_is_unique_if_no_stay_has_a_value_twice():
    structure = Structure(open_source(TABLE), "stay")
    assert structure.is_unique("step")
    assert not structure.is_unique("twice")
    assert not structure.is_unique("age")
    assert not structure.is_unique("gone")  # nothing orders a row without a value
