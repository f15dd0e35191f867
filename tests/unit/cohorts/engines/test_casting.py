"""Columns picked whatever their case and cast to the kind that is asked."""

import ibis
import polars as pl
import pytest

from etips.cohorts.engines.casting import typed
from etips.errors import DataError


def cast(kind, values):
    """One column `A`, asked for as `a`, as Ibis itself computes it."""
    table = ibis.memtable(pl.DataFrame({"A": values}))
    backend = ibis.duckdb.connect()
    try:
        return backend.to_polars(typed(table, {"a": kind}, where="here"))["a"].to_list()
    finally:
        backend.disconnect()


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("int64", ["7", None], [7, None]),
        ("float64", ["1.5", "2"], [1.5, 2.0]),
        ("string", [7], ["7"]),
        ("code", [9326, None], ["009326", None]),
        ("code", ["9326"], ["9326"]),
    ],
)
def test_a_column_gets_the_kind_that_is_asked(kind, values, expected):
    assert cast(kind, values) == expected


def test_a_time_is_read_and_one_with_something_behind_it_is_refused_by_the_engine():
    (time,) = cast("timestamp", ["2150-01-02 03:04:05"])
    assert (time.year, time.hour, time.second) == (2150, 3, 5)
    with pytest.raises(Exception, match="not a time"):
        cast("timestamp", ["2150-01-02 03:04:05 PM"])


def test_a_column_of_lists_is_refused_by_its_name():
    with pytest.raises(DataError, match=r"^here: column a must hold one value a row"):
        cast("int64", [[1], [2]])
