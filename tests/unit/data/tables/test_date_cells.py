"""Dates as people write them."""

import numpy as np
import pyarrow as pa
import pytest

from etips.data.tables.date_cells import sort_dates, to_dates


@pytest.mark.parametrize(
    ("text", "order", "stamp"),
    [
        ("2024-12-31", "dmy", "2024-12-31"),
        ("2024/1/2 03:04", "mdy", "2024-01-02T03:04"),
        ("31/12/2024", "dmy", "2024-12-31"),
        ("12/31/2024 11:05 pm", "mdy", "2024-12-31T23:05"),
        ("12/31/2024 12:05 AM", "mdy", "2024-12-31T00:05"),
        ("1.2.2024", "mdy", "2024-02-01"),  # with dots the day always stands first
        ("01-02-2024T10:20:30.25", "dmy", "2024-02-01T10:20:30.25"),
        ("14-Mar-2024", "dmy", "2024-03-14"),
        ("3. Mai 2024 8:15", "dmy", "2024-05-03T08:15"),
        ("15MAR2024:10:20:30", "dmy", "2024-03-15T10:20:30"),
        ("29.02.2024", "dmy", "2024-02-29"),
        ("2024-03-15T10:20:30Z", "dmy", "2024-03-15T10:20:30"),
        ("2024-03-15 10:20:30.5+01:00", "dmy", "2024-03-15T09:20:30.5"),
        ("2024-03-15 22:20:30-0430", "dmy", "2024-03-16T02:50:30"),
        ("2024-03-15 10:20+02", "dmy", "2024-03-15T08:20"),
    ],
)
def test_a_date_is_read(text, order, stamp):
    assert sort_dates(pa.array([text])).date.all()
    stamps, wrong, timed = to_dates(pa.array([text, None]), order)
    assert stamps[0] == np.datetime64(stamp)
    assert np.isnat(stamps[1])
    assert not wrong.any()
    assert timed == (":" in text)


@pytest.mark.parametrize("text", ["31.02.2024", "29.02.2023", "2024-13-01", "00.01.2024",
                                  "01.01.2024 25:00", "01.01.0000", "4 Foo 2024"])  # fmt: skip
def test_a_date_that_does_not_exist_is_told(text):
    assert to_dates(pa.array([text]), "dmy")[1].all()


def test_which_part_is_the_day_is_told_where_only_one_can_be():
    found = sort_dates(pa.array(["13/02/2024", "02/13/2024", "01/02/2024", "01.02.2024"]))
    assert found.day_first.tolist() == [True, False, False, False]
    assert found.month_first.tolist() == [False, True, False, False]
    assert found.dotted.tolist() == [False, False, False, True]


def test_what_is_no_date_is_none():
    found = sort_dates(pa.array(["1.234", "12", "a", "01/02/24", "12:30", "1.2.3", None]))
    assert not found.date.any()
    assert found.short_year.tolist() == [False, False, False, True, False, False, False]
