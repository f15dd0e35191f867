"""Tables of a simulated hospital of the MIMIC-IV shape, block by block."""

import polars as pl
import pytest

from etips.cohorts.mimic.items import read_list, select_items
from etips.cohorts.mimic.mimic4 import CLEAN, Mimic4Extraction
from etips.worlds.mimic3_stays import BLOCK_STAYS
from etips.worlds.mimic4_hospital import simulate_table

TABLES = sorted(Mimic4Extraction.layout.tables)


def table(name, block=0, seed=4, n_stays=30):
    return simulate_table(name, seed=seed, block=block, n_stays=n_stays)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_its_columns_and_is_the_same_for_the_same_seed(name):
    one = table(name)
    assert one.columns == list(Mimic4Extraction.layout.tables[name])
    assert one.equals(table(name))
    assert name == "d_items" or not one.equals(table(name, seed=5))


def test_blocks_have_their_own_stays_under_the_database_s_numbers():
    first, second = (table("icustays", block=block)["stay_id"] for block in (0, 1))
    assert second.min() - first.min() == BLOCK_STAYS
    assert first.min() > 30_000_000


def test_tables_refer_to_the_same_stays():
    icu, charted = table("icustays"), table("chartevents")
    assert set(charted["stay_id"]) == set(icu["stay_id"])
    assert charted["stay_id"].null_count() == 0
    assert set(table("labevents")["subject_id"]) <= set(icu["subject_id"])
    assert set(table("prescriptions")["hadm_id"]) <= set(icu["hadm_id"])
    assert set(icu["subject_id"]) == set(table("patients")["subject_id"])


def test_ages_are_those_of_a_year_and_the_oldest_are_hidden():
    people = table("patients", n_stays=400)
    assert people["anchor_age"].min() >= 18
    assert people["anchor_age"].max() == 91
    assert people["anchor_year"].is_between(2099, 2210).all()


def test_no_item_is_below_the_newer_charting_system():
    for name in ("chartevents", "inputevents", "outputevents", "procedureevents"):
        assert table(name)["itemid"].min() >= 220_000


def test_every_vasopressor_item_is_infused_and_named():
    items = set(select_items(read_list("mimic4"), CLEAN.reading).vasopressors)
    assert items <= set(table("inputevents", n_stays=200)["itemid"])
    assert items <= set(table("d_items")["itemid"])


def test_units_are_stated_in_most_rows():
    stated = table("labevents").filter(pl.col("itemid") == 50912)["valueuom"]
    assert set(stated.drop_nulls()) == {"mg/dl"}
    assert 0.1 < stated.null_count() / stated.len() < 0.5
