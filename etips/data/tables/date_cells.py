"""Dates as people write them: year first, day first or month first, with or without a time."""

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from etips.data.decisions import Bools, Ints
from etips.data.tables.number_cells import matches

DateOrder = Literal["dmy", "mdy"]

_TIME = (
    r"(?:[ T:]\s*(?P<hour>\d{1,2}):(?P<minute>\d{2})"
    r"(?::(?P<second>\d{2})(?:[.,](?P<part>\d{1,9}))?)?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?"
    r"(?:Z|(?P<sign>[+-])(?P<ahead>\d{2})(?::?(?P<more>\d{2}))?)?)?$"
)
_YEAR_FIRST = r"^(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})" + _TIME
_YEAR_LAST = r"^(?P<one>\d{1,2})(?P<mark>[-/.])(?P<two>\d{1,2})[-/.](?P<year>\d{4})" + _TIME
_NAMED = r"^(?P<day>\d{1,2})[-/ .]{0,2}(?P<name>\pL{3})\pL*[-/ .,]{0,2}(?P<year>\d{4})" + _TIME
_SHORT_YEAR = r"^\d{1,2}[-/]\d{1,2}[-/]\d{2}(?:[ T]\s*\d{1,2}:\d{2}(:\d{2})?)?$"
_BEGINNING = r"^\d{1,4}[-/. \pL]"  # of each of them, and looked for in no time
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan", "feb fév", "mar mrz mär", "apr avr", "may mai", "jun", "jul", "aug aoû",
            "sep", "oct okt", "nov", "dec dez déc",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
_LATEST = 2_262  # the last year that nanoseconds can tell


@dataclass(frozen=True, eq=False)
class DateCells:
    """Which of some texts are dates, each of shape (n,).

    Args:
        year_first: Year, month, day.
        year_last: Day and month, in either order, then the year.
        named: Day, name of the month, year.
        short_year: As `year_last`, with two digits of the year.
        day_first: Of `year_last`, those that only a day at the front makes a date.
        month_first: Of `year_last`, those that only a month at the front makes a date.
        dotted: Of `year_last`, those with dots between, which put the day first everywhere.
        timed: Those with a time of day.
        zoned: Of those, the ones that say how far they are from UTC.
    """

    year_first: Bools
    year_last: Bools
    named: Bools
    short_year: Bools
    day_first: Bools
    month_first: Bools
    dotted: Bools
    timed: Bools
    zoned: Bools

    @property
    def date(self) -> Bools:
        """Which can be read as a date, once it is clear how."""
        return self.year_first | self.year_last | self.named


def sort_dates(texts: pa.Array) -> DateCells:
    """Say of every text which kind of date it is, if any."""
    if not matches(texts, _BEGINNING).any():
        return DateCells(*np.zeros((len(fields(DateCells)), len(texts)), bool))
    year_last = matches(texts, _YEAR_LAST)
    parts = pc.extract_regex(texts, _YEAR_LAST)
    one, two = (_whole(parts, name) for name in ("one", "two"))
    mark = pc.fill_null(pc.equal(pc.struct_field(parts, "mark"), "."), False)
    return DateCells(
        matches(texts, _YEAR_FIRST),
        year_last,
        matches(texts, _NAMED),
        matches(texts, _SHORT_YEAR),
        year_last & (one > 12),
        year_last & (two > 12),
        year_last & mark.to_numpy(zero_copy_only=False),
        matches(texts, r"\d[T :]\s*\d{1,2}:\d{2}"),
        matches(texts, r":\d{2}(?:[.,]\d+)?\s*(?:Z|[+-]\d{2}(?::?\d{2})?)$"),
    )


def to_dates(texts: pa.Array, order: DateOrder) -> tuple[NDArray[Any], Bools, bool]:
    """Dates in microseconds, which texts are no date, and whether any has a time of day."""
    stamps = np.full(len(texts), np.datetime64("NaT"), "datetime64[us]")
    timed = False
    for pattern in (_YEAR_FIRST, _YEAR_LAST, _NAMED):
        parts = pc.extract_regex(texts, pattern)
        here = pc.is_valid(parts).to_numpy(zero_copy_only=False)
        if here.any():
            clock, has_clock = _clock(parts)
            stamps = np.where(here, _days(parts, pattern, order) + clock, stamps)
            timed |= bool((has_clock & here).any())
    wrong = np.isnat(stamps) & pc.is_valid(texts).to_numpy(zero_copy_only=False)
    return stamps, wrong, timed


def _days(parts: pa.StructArray, pattern: str, order: DateOrder) -> NDArray[Any]:
    year = _whole(parts, "year")
    if pattern == _YEAR_LAST:
        first, second = _whole(parts, "one"), _whole(parts, "two")
        dotted = pc.equal(pc.struct_field(parts, "mark"), ".")
        forward = pc.fill_null(dotted, False).to_numpy(zero_copy_only=False) | (order == "dmy")
        day, month = np.where(forward, first, second), np.where(forward, second, first)
    else:
        day = _whole(parts, "day")
        month = _whole(parts, "month") if pattern == _YEAR_FIRST else _month(parts)
    sound = (month >= 1) & (month <= 12) & (day >= 1) & (year >= 1) & (year < _LATEST)
    months = (np.where(sound, year, 1970) - 1970) * 12 + np.where(sound, month, 1) - 1
    first_day = months.astype("datetime64[M]").astype("datetime64[D]")
    date = first_day + np.where(sound, day, 1) - 1
    sound &= date.astype("datetime64[M]") == months.astype("datetime64[M]")
    days: NDArray[Any] = np.where(sound, date, np.datetime64("NaT")).astype("datetime64[us]")
    return days


def _clock(parts: pa.StructArray) -> tuple[NDArray[Any], Bools]:
    hour, minute, second = (_whole(parts, name) for name in ("hour", "minute", "second"))
    half = pc.utf8_lower(pc.utf8_slice_codeunits(pc.struct_field(parts, "half"), 0, 1))
    late, early = (
        pc.fill_null(pc.equal(half, letter), False).to_numpy(zero_copy_only=False)
        for letter in "pa"
    )
    has_clock = hour >= 0
    hour = np.where(late & (hour < 12), hour + 12, np.where(early & (hour == 12), 0, hour))
    seconds = np.maximum(hour, 0) * 3600 + np.maximum(minute, 0) * 60 + np.maximum(second, 0)
    part = pc.fill_null(pc.struct_field(parts, "part"), "")
    digits = pc.utf8_slice_codeunits(pc.utf8_rpad(part, 6, "0"), 0, 6)
    micro = pc.cast(digits, pa.int64()).to_numpy(zero_copy_only=False)
    clock = (seconds * 1_000_000 + micro).astype("timedelta64[us]")
    sound = (hour <= 23) & (minute <= 59) & (second <= 59)
    clock = clock - _ahead(parts)
    return np.where(sound, clock, np.timedelta64("NaT")), has_clock


def _ahead(parts: pa.StructArray) -> NDArray[Any]:
    """How far a time is ahead of UTC, 0 where it does not say."""
    hours, minutes = (np.maximum(_whole(parts, name), 0) for name in ("ahead", "more"))
    west = pc.fill_null(pc.equal(pc.struct_field(parts, "sign"), "-"), False)
    sign = np.where(west.to_numpy(zero_copy_only=False), -1, 1)
    ahead: NDArray[Any] = (sign * (hours * 60 + minutes)).astype("timedelta64[m]")
    return ahead


def _month(parts: pa.StructArray) -> Ints:
    names = pc.utf8_lower(pc.struct_field(parts, "name")).to_pylist()
    return np.array([_MONTHS.get(name or "", 0) for name in names], np.int64)


def _whole(parts: pa.StructArray, name: str) -> Ints:
    """A field as whole numbers, -1 where it is not there."""
    field = pc.struct_field(parts, name)
    there = pc.if_else(pc.equal(field, ""), pa.scalar(None, field.type), field)
    whole: Ints = pc.fill_null(pc.cast(there, pa.int64()), -1).to_numpy(zero_copy_only=False)
    return whole
