"""Section 4.2: norepinephrine equivalents and decimal rounding."""

from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etips.cohorts.sepsis3.rules import CLEAN, PAPER, Potency
from etips.cohorts.sepsis3.variables import HOUR
from etips.cohorts.sepsis3.vasopressors import norepinephrine_equivalent, rounded, running_doses


def dose(drug, rate, unit, rules=PAPER):
    rows = pl.DataFrame({"drug": [drug], "rate": [rate], "unit": [unit]})
    return rows.select(dose=norepinephrine_equivalent(rules))["dose"][0]


@pytest.mark.parametrize(
    ("drug", "rate", "unit", "expected"),
    [
        ("norepinephrine", 0.1234, "mcg/kg/min", 0.123),
        ("norepinephrine", 8.0, "mcg/min", 0.1),
        ("epinephrine", 0.1, "mcg/kg/min", 0.1),
        ("phenylephrine", 1.0, "mcg/kg/min", 0.45),
        ("phenylephrine", 180.0, "mcg/min", 1.013),  # 180 x 0.45 / 80 = 1.0125
        ("dopamine", 10.0, "mcg/kg/min", 0.1),
        ("dopamine", 800.0, "mcg/min", 0.1),
        ("vasopressin", 0.04, "units/min", 0.2),
        ("vasopressin", 2.4, "units/hour", 0.2),
        ("vasopressin", 0.3, "units/min", 0.025),  # above 0.2: read as per hour
        ("vasopressin", 0.2, "units/min", 1.0),
        ("vasopressin", 0.12, "units/hour", 0.01),
        ("vasopressin", 0.1, None, None),
        ("vasopressin", 2.4, None, 0.2),  # above 0.2 whatever the unit
        ("norepinephrine", 1.0, None, None),
    ],
)
def test_norepinephrine_equivalent(drug, rate, unit, expected):
    assert dose(drug, rate, unit) == expected


def test_clean_reads_vasopressin_as_charted():
    assert dose("vasopressin", 0.3, "units/min", CLEAN) == 1.5
    assert dose("vasopressin", 0.3, None, CLEAN) is None


def held(hours, *rates):
    """(start, end) in hours of rates of norepinephrine charted at (hour, rate, unit)."""
    rows = pl.DataFrame(
        [(1, hour * HOUR, None, "norepinephrine", rate, unit) for hour, rate, unit in rates],
        schema={
            "stay": pl.Int64, "start": pl.Int64, "end": pl.Int64, "drug": pl.String,
            "rate": pl.Float64, "unit": pl.String,
        },
        orient="row",
    )  # fmt: skip
    doses = running_doses(rows, replace(PAPER, rate_hold_hours=hours))
    return [(start // HOUR, end // HOUR) for start, end in doses.select("start", "end").rows()]


def test_a_rate_without_an_end_counts_at_its_time_or_is_held_until_the_next():
    rates = [(3, 0.1, "mcg/kg/min"), (5, 0.2, "mcg/kg/min"), (20, 0.3, "mcg/kg/min")]
    assert held(0, *rates) == [(3, 3), (5, 5), (20, 20)]
    assert held(4, *rates) == [(3, 5), (5, 9), (20, 24)]


def test_a_rate_in_a_unit_that_gives_no_dose_ends_no_other():
    assert held(4, (3, 0.1, "mcg/kg/min"), (5, 0.2, None)) == [(3, 7)]


def test_potencies_are_settings():
    weaker = replace(PAPER, potency=Potency(phenylephrine=0.1))
    assert dose("phenylephrine", 1.0, "mcg/kg/min", weaker) == 0.1


@given(st.integers(-10_000_000, 10_000_000))
def test_rounding_is_decimal_and_half_goes_away_from_zero(ten_thousandths):
    value = ten_thousandths / 10_000  # halves of the third decimal among them
    expected = Decimal(ten_thousandths).scaleb(-4).quantize(Decimal("0.001"), ROUND_HALF_UP)
    assert pl.select(rounded(pl.lit(value))).item() == pytest.approx(float(expected), abs=1e-9)


def test_a_product_that_misses_its_half_by_a_hair_still_rounds_up():
    assert pl.select(rounded(pl.lit(0.0335 * 0.25 * 4 * 10))).item() == 0.335
    assert pl.select(rounded(pl.lit(1.0005))).item() == 1.001
