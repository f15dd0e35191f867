"""Suspected infection as mimic-code defines it."""

import polars as pl
import pytest
from raw_tables4 import ADMISSION, ICU, PATIENT, T, prescription, source

from etips.cohorts.mimic4 import suspicion
from etips.cohorts.mimic4.switches import CLEAN, Onset
from etips.cohorts.mimic4.tables import open_tables

HOUR, DAY = 3600, 24 * 3600
AT = 100 * DAY + 12 * HOUR  # noon
BY_MIMIC_CODE = CLEAN.changed(onset=Onset.MIMIC_CODE).reading


def found(*specimens, at=AT):
    """(culture, onset) of an order, as hours since it; specimens are (day, time or None)."""
    orders = pl.DataFrame({"patient": [1], "admission": [2], "stay": [3], "t": [at]})
    rows = pl.DataFrame(
        [(1, date, time) for date, time in specimens],
        schema={"patient": pl.Int64, "date": pl.Int64, "time": pl.Int64}, orient="row",
    )  # fmt: skip
    told = suspicion.suspected(orders, rows)
    return [((c - at) / HOUR, (o - at) / HOUR) for c, o in told.select("culture", "onset").rows()]


def timed(*hours):
    return [((AT + h * HOUR) // DAY * DAY, round(AT + h * HOUR)) for h in hours]


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        ((-72,), [(-72, -72)]), ((-72 - 1 / HOUR,), []), ((24,), [(24, 0)]),
        ((24 + 1 / HOUR,), []), ((0,), []), ((-1, -60, 5), [(-60, -60)]), ((3, 20), [(3, 0)]),
    ],
)  # fmt: skip
def test_up_to_three_days_before_and_one_after_never_at_the_same_time(hours, expected):
    assert found(*timed(*hours)) == expected


@pytest.mark.parametrize(
    ("days", "expected"),
    [(0, [(-12, -12)]), (-3, [(-84, -84)]), (-4, []), (1, [(12, 0)]), (2, [])],
)
def test_a_specimen_without_a_time_is_compared_by_days(days, expected):
    assert found(((AT // DAY + days) * DAY, None)) == expected


def test_of_the_earliest_day_a_specimen_with_a_time_goes_before_one_without():
    day = AT // DAY * DAY
    assert found((day, None), (day, day + 6 * HOUR)) == [(-6, -6)]


def test_orders_count_inside_the_stay_with_a_route_and_diluents_beside_the_drug(tmp_path):
    rows = [
        prescription("Vancomycin", subject_id=PATIENT),
        prescription("Vancomycin", start="2149-12-31 23:00:00", subject_id=PATIENT),
        prescription("Cefepime", start="2150-01-05 00:00:00", subject_id=PATIENT),
        prescription("Cefepime", start="2150-01-03 01:00:00", route="", subject_id=PATIENT),
        prescription("Meropenem", start="2150-01-03 02:00:00", route="BOTH EYES"),
        prescription("Ertapenem", start="2150-01-03 03:00:00", subject_id=PATIENT),
        prescription("Vancomycin", start="2150-01-03 04:00:00", drug_type="BASE"),
        prescription("Linezolid", start="2150-01-03 05:00:00", drug_type="BASE"),
        prescription("Mupirocin", start="2150-01-03 06:00:00", route="NU"),
    ]
    with source(tmp_path, icustays=[ICU], prescriptions=rows) as opened:
        orders = suspicion.read_orders(opened, open_tables(opened, BY_MIMIC_CODE))
    hours = (orders["t"] - orders["t"].min()) // HOUR
    assert hours.to_list() == [0, 28, 30]  # at T, a diluent of a drug ordered too, and mupirocin
    assert orders["admission"].unique().to_list() == [ADMISSION]


def test_a_specimen_is_read_once_whatever_was_grown_from_it(tmp_path):
    row = {"subject_id": PATIENT, "micro_specimen_id": 5, "chartdate": "2150-01-02 00:00:00",
           "charttime": T}  # fmt: skip
    rows = [row, row, {**row, "micro_specimen_id": 6, "charttime": ""}]
    with source(tmp_path, microbiologyevents=rows) as opened:
        specimens = suspicion.read_specimens(opened, open_tables(opened, BY_MIMIC_CODE))
    assert sorted(specimens["time"].is_null()) == [False, True]
