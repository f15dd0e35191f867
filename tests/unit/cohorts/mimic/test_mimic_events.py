"""Sections 4.2 and 8: raw rows of both charting systems as events."""

import polars as pl

from etips.cohorts.mimic.bedside import fluids, measurements, read_events, vasopressors
from etips.cohorts.mimic.items import read_list, select_items
from etips.cohorts.mimic.mimic3 import CLEAN, PAPER
from etips.cohorts.sepsis3.variables import HOUR

T = 5_000_000_000
SALINE, NOREPINEPHRINE, VASOPRESSIN_CV, FOLEY = 225158, 221906, 30051, 226559
HEART, OTHER_HEART = 211, 220045
POTASSIUM_CHART, POTASSIUM_METAVISION, POTASSIUM_LAB = 829, 227442, 50971
NUMBER, FLAG = pl.Float64, pl.Boolean
CHART = {"itemid": pl.Int32, "t": NUMBER, "number": NUMBER, "device": NUMBER, "has_text": FLAG,
         "ventilated": FLAG, "extubated": FLAG}  # fmt: skip
LABS = {"itemid": pl.Int32, "t": NUMBER, "number": NUMBER, "specimen": pl.Int64, "arterial": FLAG}
MV = {"itemid": pl.Int32, "start": NUMBER, "end": NUMBER, "amount": NUMBER, "rate": NUMBER,
      "rateuom": pl.String, "statusdescription": pl.String}  # fmt: skip
CV = {"itemid": pl.Int32, "t": NUMBER, "amount": NUMBER, "rate": NUMBER, "rateuom": pl.String}
URINE = {"itemid": pl.Int32, "t": NUMBER, "amount": NUMBER}
PROCEDURES = {"itemid": pl.Int32, "start": NUMBER, "end": NUMBER}
ITEMS = {
    profile.name: select_items(read_list("mimic3"), profile.reading) for profile in (PAPER, CLEAN)
}


def infusion(start, end, rate=100.0, item=SALINE, status="FinishedRunning"):
    return (item, start, end, rate * (end - start), rate, "mL/hour", status)


def given(rows, profile=PAPER):
    """Boluses as (hour, volume) and infusions as (start, end, rate)."""
    boluses, running = fluids(
        rows, ITEMS[profile.name], drop_rewritten=profile.reading.drop_rewritten_fluids
    )
    return (
        boluses.with_columns((pl.col("t") - T) // HOUR).select("t", "volume").rows(),
        running.with_columns((pl.col("start", "end") - T) // HOUR)
        .select("start", "end", "rate")
        .rows(),
    )


def test_a_row_without_a_rate_is_a_bolus_and_one_of_carevue_always_is():
    bolus = (SALINE, 1, 1.1, 500.0, None, None, "FinishedRunning")
    boluses, running = given(block([bolus, infusion(1, 3)], [(30018, 4, 250.0, None, None)]))
    assert boluses == [(1, 500), (4, 250)]
    assert running == [(1, 3, 100)]


def test_tonic_fluids_count_by_their_factor():
    boluses, _ = given(block(cv=[(30009, 1, 100.0, None, None), (30020, 1, 100.0, None, None)]))
    assert boluses == [(1, 500), (1, 50)]


def test_rewritten_fluids_are_dropped_in_clean_only():
    rows = block([infusion(1, 3, status="Rewritten")])
    assert given(rows)[1] == [(1, 3, 100)]
    assert given(rows, CLEAN)[1] == []


def drugs(mv=(), cv=(), profile=PAPER):
    given = vasopressors(block(mv, cv), ITEMS[profile.name], profile.rules)
    return given.select("drug", "rate", "unit", pl.col("end").is_null()).rows()


def test_rewritten_vasopressors_are_dropped():
    row = (NOREPINEPHRINE, 1, 2, 1.0, 0.1, "mcg/kg/min", "Rewritten")
    assert drugs([row]) == drugs([row], profile=CLEAN) == []


def test_carevue_loses_vasopressin_of_exactly_0_2_per_minute_in_the_scripts_only():
    rows = [(VASOPRESSIN_CV, hour, None, rate, "Umin") for hour, rate in ((1, 0.2), (2, 0.04))]
    assert [row[1] for row in drugs(cv=rows)] == [0.04]
    assert [row[1] for row in drugs(cv=rows, profile=CLEAN)] == [0.2, 0.04]


def frame(rows, kinds):
    """Rows of stay 1, times in hours after T."""
    made = pl.DataFrame(list(rows), schema=kinds, orient="row")
    times = [name for name in kinds if name in ("start", "end", "t")]
    return made.with_columns((pl.col(times) * HOUR + T).cast(pl.Int64), stay=pl.lit(1, pl.Int64))


def block(mv=(), cv=(), urine=(), chart=(), labs=(), procedures=()):
    """Raw rows of stay 1; hours after T.

    Args:
        mv: (item, start, end, amount, rate, unit, status).
        cv: (item, hour, amount, rate, unit).
        urine: (item, hour, amount).
        chart: (item, hour, number) and has_text, ventilated, extubated.
        labs: (item, hour, number) and specimen, arterial.
        procedures: (item, start, end).
    """
    texts = [(*row[:3], None, *(row[3:] or (True, None, False))) for row in chart]
    return {
        "chart": frame(texts, CHART),
        "labs": frame([(*row, *(None, None)[len(row) - 3 :]) for row in labs], LABS),
        "infusions_mv": frame(mv, MV),
        "infusions_cv": frame(cv, CV),
        "urine": frame(urine, URINE),
        "procedures": frame(procedures, PROCEDURES),
    }


def events(rows, profile=PAPER):
    return read_events(rows, ITEMS[profile.name], profile.rules, drop_rewritten=False)


def test_preadmission_fluid_of_metavision_wins_over_carevue():
    mv = [(226361, -9, -8, 400.0, None, None, "FinishedRunning")]
    cv = [(30054, -9, 1000.0, None, None)]
    assert events(block(mv, cv)).fluid_before.rows() == [(1, 400.0)]
    assert events(block(cv=cv)).fluid_before.rows() == [(1, 1000.0)]


def test_irrigant_is_taken_off_and_feed_residual_counts_in_the_scripts_only():
    passed = [(40060, -9, 300.0), (FOLEY, 1, 80.0), (227488, 1, 30.0), (227510, 1, 7.0)]
    assert events(block(urine=passed)).urine["volume"].to_list() == [80, 7]
    clean = events(block(urine=passed), CLEAN)
    assert clean.urine["volume"].to_list() == [80, -30]
    assert clean.urine_before.rows() == [(1, 300.0)]


def measured(chart=(), labs=(), profile=PAPER, **named):
    """Measurements as (concept, hour, value)."""
    found, _ = measurements(block(chart=chart, labs=labs, **named), ITEMS[profile.name])
    hour = (pl.col("t") - T) // HOUR
    return found.sort("concept", "t", "priority").select("concept", hour, "value").rows()


def test_charted_rows_go_by_item_and_laboratory_results_after_them():
    heart = measured([(OTHER_HEART, 5, 90.0), (HEART, 5, 99.0)])
    assert heart == [("HR", 5, 99.0), ("HR", 5, 90.0)]
    chart = [(POTASSIUM_METAVISION, 5, 9.0), (POTASSIUM_CHART, 5, 8.0)]
    potassium = [value for _, _, value in measured(chart, [(POTASSIUM_LAB, 5, 4.0)])]
    assert potassium == [8.0, 9.0, 4.0]


def test_a_vital_sign_without_a_text_is_none_and_one_without_a_number_is_missing():
    rows = [(HEART, 5, 80.0, False, None, False), (HEART, 6, None, True, None, False)]
    assert measured(rows) == [("HR", 6, None)]


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


def test_procedures_tell_of_ventilation_in_clean_only():
    done = [(225792, 10, 20), (227194, 30, 30)]
    assert measured(procedures=done) == []
    assert measured(procedures=done, profile=CLEAN) == [("extubated", 30, 1.0)]
    assert events(block(procedures=done)).ventilation.height == 0
    periods = events(block(procedures=done), CLEAN).ventilation
    assert periods.select((pl.col("start", "end") - T) // HOUR).rows() == [(10, 20)]
