"""What reading a table did to it."""

import pytest
from strategies import read_small, small_table

from etips.data.intake.remarks import (
    refuse_unseen,
    shown,
    tell_empty,
    tell_gaps,
    tell_lag,
    tell_new_gaps,
    tell_unseen,
)
from etips.errors import DataError
from etips.notes import collecting_notes


def told(tell, *given):
    with collecting_notes() as notes:
        tell(*given)
    return notes


def test_few_are_not_counted():
    assert [shown(count) for count in (0, 1, 10, 11, 3214)] == [
        "0",
        "under 11",
        "under 11",
        "11",
        "3,214",
    ]


def test_gaps_are_counted_over_all_columns():
    assert told(tell_gaps, {}, 12) == []
    line = "3,214 missing values in 2 of 12 columns are carried forward; "
    assert told(tell_gaps, {"x": 3000, "y": 214}, 12) == [line + "columns name_missing say where"]
    with collecting_notes() as notes:
        tell_gaps({"x": 40}, 3, left=40)
    assert notes[0].startswith(
        "40 missing values in 1 of 3 columns become the mean of the training"
    )


def test_gaps_at_the_start_of_stays_are_not_said_to_be_carried_forward():
    n = 30
    table = small_table(
        s=[i // 2 for i in range(2 * n)],
        t=[0, 1] * n,
        a=[0, 1] * n,
        l=[0.0, 1.0] * n,
        x=[None, 1.0] * n,
    )
    first = "30 missing values in 1 of 1 columns become the mean of the training stays; "
    with collecting_notes() as notes:
        read_small(table)
    assert first + "columns name_missing say where" in notes
    both = "60 missing values in 2 of 2 columns are carried forward, or become the mean of the "
    with collecting_notes() as notes:
        read_small(table.append_column("y", [[1.0, None] * n]))
    assert any(line.startswith(both) for line in notes)


def test_new_gaps_and_empty_columns_are_named():
    assert told(tell_new_gaps, ["x", "y"])[0].startswith("columns x, y have missing values, unlike")
    assert told(tell_empty, ["x"]) == ["column x holds no value at all and is left out"]
    assert told(tell_empty, ["x", "y"]) == ["columns x, y hold no value at all and are left out"]
    assert told(tell_empty, []) == told(tell_new_gaps, []) == []


def test_what_was_not_seen_before_is_counted_or_refused():
    assert told(tell_unseen, {"x": 0, "ward": 40}) == [
        "column ward: 40 rows hold a level not seen before, read as missing"
    ]
    message = r"^t, column ward: must be one of the levels known so far; 40 of 90 rows fail\. "
    with pytest.raises(DataError, match=message + "--missing carry"):
        refuse_unseen("t", {"x": 0, "ward": 40}, 90)


def test_what_lag_costs_is_told():
    n = 30
    table = small_table(
        s=[i // 2 for i in range(2 * n)],
        t=[0, 1] * n,
        a=[0, 1] * n,
        l=[0.0] * (2 * n - 24) + [None] * 24,
        x=[1.0] * 2 * n,
    )
    data = read_small(table)
    assert told(tell_lag, data) == [
        "lag 1: 18 first steps of stays are no decisions; --lag 0 keeps them"
    ]
    with collecting_notes() as notes:
        tell_lag(data, fixed=True)
    assert notes == ["lag 1: 18 first steps of stays are no decisions"]
    assert told(tell_lag, data.with_lag(0)) == []
    assert told(tell_lag, data.without_log()) == []


def test_a_lag_that_costs_nothing_is_not_told():
    """An outcome on the last row of a stay."""
    n = 30
    table = small_table(
        s=[i // 2 for i in range(2 * n)],
        t=[0, 1] * n,
        a=[0, 1] * n,
        l=[None, 1.0] * n,
        x=[1.0] * 2 * n,
    )
    assert told(tell_lag, read_small(table)) == []


def test_what_lag_costs_is_about_right_where_it_would_tell_of_a_few_stays():
    """29 first steps of 30 stays are one stay without a loss."""
    n = 30
    table = small_table(
        s=[i // 2 for i in range(2 * n)],
        t=[0, 1] * n,
        a=[0, 1] * n,
        l=[0.0] * (2 * n - 2) + [None] * 2,
        x=[1.0] * 2 * n,
    )
    assert told(tell_lag, read_small(table)) == [
        "lag 1: about 30 first steps of stays are no decisions; --lag 0 keeps them"
    ]
