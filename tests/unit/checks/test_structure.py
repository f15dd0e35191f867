"""How rows lie in their stays, in any order."""

import datetime as dt

import pyarrow as pa
import pytest

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


def test_hours_a_row_are_those_of_the_median_stay():
    start = dt.datetime(2020, 1, 1)
    hours = [0, 4, 8, 0, 6, 0]
    times = [start + dt.timedelta(hours=hour) for hour in hours]
    table = pa.table({"stay": [1, 1, 1, 2, 2, 3], "when": times, "none": pa.nulls(6)})
    structure = Structure(open_source(table), "stay")
    assert structure.hours_per_row("when") == pytest.approx((8 / 3 + 3) / 2)
    texts = table.set_column(1, "when", pa.array([time.isoformat(" ") for time in times]))
    assert Structure(open_source(texts), "stay").hours_per_row("when") == pytest.approx(17 / 6)
    assert structure.hours_per_row("none") is None
