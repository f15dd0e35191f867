"""Section 4.2: norepinephrine equivalents and decimal rounding."""

from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etips.cohorts.mimic3.config import CLEAN, PAPER, Potency
from etips.cohorts.mimic3.rates import norepinephrine_equivalent, rounded


def dose(drug, rate, unit, config=PAPER, *, carevue=False):
    rows = pl.DataFrame({"drug": [drug], "rate": [rate], "rateuom": [unit]})
    return rows.select(dose=norepinephrine_equivalent(config, carevue=carevue))["dose"][0]


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
        ("norepinephrine", 1.0, "mg/hour", None),
        ("vasopressin", 0.1, "mL/hour", None),
        ("norepinephrine", 1.0, None, None),
    ],
)
def test_norepinephrine_equivalent(drug, rate, unit, expected):
    assert dose(drug, rate, unit) == expected


def test_carevue_loses_vasopressin_of_exactly_0_2_per_minute():
    assert dose("vasopressin", 0.2, "Umin", carevue=True) is None
    assert dose("vasopressin", 0.04, "Umin", carevue=True) == 0.2
    assert dose("vasopressin", 2.4, "Uhr", carevue=True) == 0.2


def test_clean_reads_vasopressin_as_charted():
    assert dose("vasopressin", 0.3, "units/min", CLEAN) == 1.5
    assert dose("vasopressin", 0.2, "Umin", CLEAN, carevue=True) == 1.0


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
