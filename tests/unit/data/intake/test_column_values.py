"""Feature columns of any kind as numbers."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest

from etips.data.intake.column_values import column_values
from etips.data.intake.recipe import ColumnKind
from etips.errors import DataError


def values(array, kind="number"):
    return column_values("x", pa.chunked_array([array]), ColumnKind(kind))[0]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, None], pa.int64()),
        pa.array([1, None], pa.uint8()),
        pa.array(np.array([1, np.nan], np.float16)),
        pa.array([decimal.Decimal("1.00"), None]),
        pa.array([decimal.Decimal("1.00"), None], pa.decimal256(50, 2)),
        pa.array([True, None]),
    ],
)
def test_every_type_of_number_is_one(array):
    assert np.array_equal(values(array), [1, np.nan], equal_nan=True)


def test_dates_are_years_since_2000():
    days = [datetime.date(2000, 1, 1), datetime.date(2001, 1, 1), None]
    found = values(pa.array(days), "years")
    assert found[:2] == pytest.approx([0, 366 / 365.25])
    assert np.isnan(found[2])
    assert values(pa.array([12.5]), "years").tolist() == [12.5]  # written as years already


def test_lengths_of_time_and_times_of_day_are_hours():
    half = datetime.timedelta(minutes=30)
    assert values(pa.array([half]), "duration").tolist() == [0.5]
    assert values(pa.array([90], pa.duration("s")), "duration").tolist() == [0.025]
    assert values(pa.array([datetime.time(6, 30)]), "duration").tolist() == [6.5]
    with pytest.raises(DataError, match=r"^x: must be a length of time\.$"):
        values(pa.array([[1]]), "duration")


def test_yes_and_no_are_one_and_zero():
    assert values(pa.array(["yes", "no"]), "yes_no").tolist() == [1, 0]
    assert values(pa.array([True, False]), "yes_no").tolist() == [1, 0]


def test_times_of_a_stay_wait_for_it():
    array = pa.array([0, None], pa.timestamp("s"))
    assert np.isnan(values(array, "hours")).all()


def test_blank_text_is_missing():
    assert np.isnan(values(pa.array(["", None]))).all()
