"""Sections 4.2 and 8: which rows are a measurement of what, and which one goes first."""

import polars as pl

from etips.cohorts.mimic.bedside import Block
from etips.cohorts.mimic.measurements import measurements, ventilation
from etips.cohorts.mimic3 import concepts
from etips.cohorts.mimic3.switches import CLEAN, PAPER

HEART, OTHER_HEART = 211, 220045
POTASSIUM_CHART, POTASSIUM_METAVISION, POTASSIUM_LAB = 829, 227442, 50971
CHART = {
    "stay": pl.Int64, "itemid": pl.Int32, "t": pl.Int64, "number": pl.Float64,
    "device": pl.Float64, "has_text": pl.Boolean, "ventilated": pl.Boolean, "extubated": pl.Boolean,
}  # fmt: skip
LABS = {name: CHART[name] for name in ("stay", "itemid", "t", "number")} | {
    "specimen": pl.Int64,
    "arterial": pl.Boolean,
}
PERIODS = pl.DataFrame(
    {"stay": [1, 1], "start": [10, 30], "end": [20, 30], "itemid": [225792, 227194]},
    schema_overrides={"itemid": pl.Int32},
)
NO_PROCEDURES = pl.DataFrame(schema=dict.fromkeys(("stay", "start", "end", "itemid"), pl.Int64))


def block(chart=(), labs=(), procedures=NO_PROCEDURES):
    """Rows (item, t, number) of stay 1 and, in the chart, has_text, ventilated, extubated."""
    rows = [
        (1, *row[:3], None, *(row[3:] if len(row) > 3 else (True, None, False))) for row in chart
    ]
    results = [(1, *row, *(None, None)[len(row) - 3 :]) for row in labs]
    return Block(
        chart=pl.DataFrame(rows, schema=CHART, orient="row"),
        labs=pl.DataFrame(results, schema=LABS, orient="row"),
        infusions_mv=pl.DataFrame(),
        infusions_cv=pl.DataFrame(),
        urine=pl.DataFrame(),
        procedures=procedures,
    )


def measured(*parts, profile=PAPER, **named):
    frame = measurements(block(*parts, **named), concepts.select(profile.reading))
    return frame.sort("concept", "t", "priority").select("concept", "t", "value").rows()


def test_charted_rows_go_by_item_and_laboratory_results_after_them():
    heart = measured([(OTHER_HEART, 5, 90.0), (HEART, 5, 99.0)])
    assert heart == [("HR", 5, 99.0), ("HR", 5, 90.0)]
    chart = [(POTASSIUM_METAVISION, 5, 9.0), (POTASSIUM_CHART, 5, 8.0)]
    potassium = [value for _, _, value in measured(chart, [(POTASSIUM_LAB, 5, 4.0)])]
    assert potassium == [8.0, 9.0, 4.0]


def test_a_vital_sign_without_a_text_is_none_and_one_without_a_number_is_missing():
    rows = [(HEART, 5, 80.0, False, None, False), (HEART, 6, None, True, None, False)]
    assert measured(rows) == [("HR", 6, None)]


def test_a_charted_lab_needs_a_number_and_no_text():
    rows = [
        (POTASSIUM_CHART, 5, 4.0, False, None, False),
        (POTASSIUM_CHART, 6, None, True, None, False),
    ]
    assert measured(rows) == [("Potassium", 5, 4.0)]


def test_an_item_of_ventilation_tells_of_both_ventilation_and_extubation():
    rows = [(720, 5, None, True, True, False), (640, 6, None, True, False, True)]
    assert measured(rows) == [
        ("mechvent", 5, 1.0), ("mechvent", 6, 0.0), ("extubated", 5, 0.0), ("extubated", 6, 1.0),
    ]  # fmt: skip


def test_procedures_tell_of_ventilation_in_clean_only():
    assert measured(procedures=PERIODS) == []
    assert measured(procedures=PERIODS, profile=CLEAN) == [("extubated", 30, 1.0)]
    paper, clean = (concepts.select(profile.reading) for profile in (PAPER, CLEAN))
    assert ventilation(block(procedures=PERIODS), paper).height == 0
    assert ventilation(block(procedures=PERIODS), clean).select("start", "end").rows() == [(10, 20)]


def test_gases_of_a_specimen_that_is_not_arterial_are_left_out():
    """By its number, or by the time where it has none; a gas that tells nothing is kept."""
    gas, kind, sodium = 50821, 52033, 50983
    by_number = [
        (gas, 10, 90.0, 1, None), (kind, 10, None, 1, True),
        (gas, 10, 40.0, 2, None), (kind, 10, None, 2, False),
        (gas, 20, 80.0, 3, None), (sodium, 10, 140.0, 2, None),
    ]  # fmt: skip
    by_time = [(gas, 10, 90.0), (kind, 10, None, None, True), (gas, 30, 40.0),
               (kind, 30, None, None, False), (gas, 20, 80.0)]  # fmt: skip
    assert measured((), by_number) == [("Sodium", 10, 140), ("paO2", 10, 90), ("paO2", 20, 80)]
    assert measured((), by_time) == [("paO2", 10, 90), ("paO2", 20, 80)]


def test_where_one_row_says_arterial_and_another_does_not_the_gas_is_kept():
    rows = [(50821, 10, 90.0), (50800, 10, None, None, True), (50800, 10, None, None, False)]
    assert measured((), rows) == [("paO2", 10, 90)]
