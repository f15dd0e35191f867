"""Tables of a simulated hospital, block by block."""

import polars as pl
import pytest

from etips.cohorts.mimic.mimic3 import Mimic3Extraction
from etips.worlds.mimic3_hospital import simulate_table
from etips.worlds.mimic3_stays import BLOCK_STAYS


def table(name, block=0, seed=4):
    return simulate_table(name, seed=seed, block=block, n_stays=30)


@pytest.mark.parametrize("name", sorted(Mimic3Extraction.layout.tables))
def test_a_table_has_its_columns_and_is_the_same_for_the_same_seed(name):
    one = table(name)
    assert one.columns == list(Mimic3Extraction.layout.tables[name])
    assert one.equals(table(name))
    assert not one.equals(table(name, seed=5))


def test_blocks_have_their_own_stays():
    first, second = (table("icustays", block=block)["icustay_id"] for block in (0, 1))
    assert second.min() - first.min() == BLOCK_STAYS


def test_a_hundredth_of_the_rows_is_repeated_but_no_stay():
    rows = table("outputevents")
    assert rows.height - rows.unique().height == pytest.approx(rows.height / 100, rel=0.3)
    assert table("icustays").is_unique().all()


def test_every_unit_that_a_rate_may_have_is_there():
    units = {
        unit
        for name in ("inputevents_mv", "inputevents_cv")
        for unit in simulate_table(name, seed=0, block=0, n_stays=200)["rateuom"].drop_nulls()
    }
    assert {"mcg/kg/min", "mcg/min", "units/hour", "mcgkgmin", "mcgmin", "Umin", "Uhr"} <= units


def test_irrigant_and_slips_of_the_pen_are_among_the_urine():
    rows = simulate_table("outputevents", seed=0, block=0, n_stays=200)
    assert rows.filter(pl.col("itemid") == 227488).height > 10
    assert (rows["value"] == 13_000).any()
