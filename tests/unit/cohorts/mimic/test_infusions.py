"""Section 4.2: rows of both charting systems as vasopressors, fluids and urine."""

import polars as pl
import pytest

from etips.cohorts.mimic.bedside import Block
from etips.cohorts.mimic.infusions import (
    fluids,
    preadmission_fluids,
    preadmission_urine,
    urine,
    vasopressors,
)
from etips.cohorts.mimic3 import concepts
from etips.cohorts.mimic3.switches import CLEAN, PAPER
from etips.cohorts.sepsis3.variables import HOUR

T = 5_000_000_000
SALINE, NOREPINEPHRINE, VASOPRESSIN_CV, FOLEY = 225158, 221906, 30051, 226559
ITEMS = {profile.name: concepts.select(profile.reading) for profile in (PAPER, CLEAN)}
NO_PROCEDURES = pl.DataFrame(schema=dict.fromkeys(("stay", "start", "end", "itemid"), pl.Int64))


def block(mv=(), cv=(), urine=()):
    """Raw rows of stay 1; hours after T.

    Args:
        mv: (item, start, end, amount, rate, unit, status).
        cv: (item, hour, amount, rate, unit).
        urine: (item, hour, amount).
    """
    times = ["start", "end", "t"]
    kinds = {"itemid": pl.Int32, "amount": pl.Float64, "rate": pl.Float64}
    texts = {"rateuom": pl.String, "statusdescription": pl.String}

    def frame(rows, names):
        schema = {name: {**kinds, **texts}.get(name, pl.Float64) for name in names}
        made = pl.DataFrame(list(rows), schema=schema, orient="row")
        moments = [name for name in names if name in times]
        return made.with_columns(
            (pl.col(moments) * HOUR + T).cast(pl.Int64), stay=pl.lit(1, pl.Int64)
        )

    mv_names = ("itemid", "start", "end", "amount", "rate", "rateuom", "statusdescription")
    return Block(
        chart=pl.DataFrame(),
        labs=pl.DataFrame(),
        infusions_mv=frame(mv, mv_names),
        infusions_cv=frame(cv, ("itemid", "t", "amount", "rate", "rateuom")),
        urine=frame(urine, ("itemid", "t", "amount")),
        procedures=NO_PROCEDURES,
    )


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


def test_lost_fluid_items_count_in_clean_only():
    rows = block(cv=[(30006, 1, 100.0, None, None)])
    assert given(rows)[0] == []
    assert given(rows, CLEAN)[0] == [(1, 100)]


def test_an_infusion_of_no_amount_has_no_volume():
    rows = block([(SALINE, 1, 3, 0.0, 100.0, "mL/hour", "FinishedRunning")])
    assert given(rows)[1] == [(1, 3, 0)]


def test_preadmission_fluid_of_metavision_wins_over_carevue():
    rows = block(
        [(226361, -9, -8, 400.0, None, None, "FinishedRunning")],
        [(30054, -9, 1000.0, None, None)],
    )
    assert preadmission_fluids(rows, ITEMS["paper"]).rows() == [(1, 400.0)]


def test_irrigant_is_taken_off_and_feed_residual_counts_in_the_scripts_only():
    rows = block(urine=[(40060, -9, 300.0), (FOLEY, 1, 80.0), (227488, 1, 30.0), (227510, 1, 7.0)])
    assert urine(rows, ITEMS["paper"])["volume"].to_list() == [80, 7]
    assert urine(rows, ITEMS["clean"])["volume"].to_list() == [80, -30]
    assert preadmission_urine(rows).rows() == [(1, 300.0)]


def test_a_repeated_record_of_urine_before_the_stay_counts_once():
    rows = block(urine=[(40060, -9, 300.0), (40060, -9, 300.0), (40060, -8, 300.0)])
    assert preadmission_urine(rows)["volume"].to_list() == [600]


def drugs(mv=(), cv=(), profile=PAPER):
    given = vasopressors(block(mv, cv), ITEMS[profile.name], profile.rules)
    return given.select("drug", "rate", "unit", pl.col("end").is_null()).rows()


def test_rewritten_vasopressors_are_dropped():
    row = (NOREPINEPHRINE, 1, 2, 1.0, 0.1, "mcg/kg/min", "Rewritten")
    assert drugs([row]) == drugs([row], profile=CLEAN) == []


@pytest.mark.parametrize(
    ("spelt", "unit"),
    [("mcgkgmin", "mcg/kg/min"), ("mcgmin", "mcg/min"), ("mg/hour", None), (None, None)],
)
def test_units_have_one_spelling_and_a_rate_of_carevue_has_no_end(spelt, unit):
    assert drugs(cv=[(30120, 3, None, 0.1, spelt)]) == [("norepinephrine", 0.1, unit, True)]


def test_carevue_loses_vasopressin_of_exactly_0_2_per_minute_in_the_scripts_only():
    rows = [(VASOPRESSIN_CV, hour, None, rate, "Umin") for hour, rate in ((1, 0.2), (2, 0.04))]
    assert [row[1] for row in drugs(cv=rows)] == [0.04]
    assert [row[1] for row in drugs(cv=rows, profile=CLEAN)] == [0.2, 0.04]
