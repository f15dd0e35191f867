"""A simulated hospital: who is in it, what it charts, and the flaws that real tables have."""

import numpy as np
import polars as pl
import pytest

from etips.cohorts.databases import DATABASES
from etips.cohorts.mimic.items import read_list, select_items
from etips.worlds.hospital import BLANK, BLOCK_STAYS, DAY, HOUR, simulate_stays, simulate_table

TABLES = [(name, table) for name, own in DATABASES.items() for table in own.layout.tables]


def table(database, name, *, seed=4, block=0, n_stays=30):
    return simulate_table(DATABASES[database], name, seed=seed, block=block, n_stays=n_stays)


def tables(database, n_stays):
    return {
        name: table(database, name, seed=3, n_stays=n_stays)
        for name in DATABASES[database].layout.tables
    }


@pytest.fixture(scope="module")
def mimic3():
    return tables("mimic3", 200)


@pytest.fixture(scope="module")
def mimic4():
    return tables("mimic4", 200)


def stays(n=400, seed=0):
    return simulate_stays(np.random.default_rng(seed), first=0, n_stays=n)


def test_stays_of_one_patient_follow_one_another_and_the_seed_decides():
    made = stays()
    assert np.array_equal(made.start, stays().start)
    assert not np.array_equal(made.start, stays(seed=1).start)
    same = made.subject[1:] == made.subject[:-1]
    assert 0.1 < same.mean() < 0.4
    leaves = made.start + made.hours * HOUR
    assert (made.start[1:][same] > leaves[:-1][same]).all()
    assert (np.diff(made.admission)[~same] > 0).all()


def test_there_are_minors_the_very_old_the_well_and_the_dying_of_both_systems():
    made = stays()
    years = (made.start - made.birth) / (365.25 * DAY)
    assert ((years < 18).any(), (years > 250).any()) == (True, True)
    assert (made.severity == -3).sum() > 5
    dead = made.death > 0
    soon = np.abs(made.death - made.start - made.hours * HOUR) < 2 * DAY
    assert 0 < (dead & soon).sum() < dead.sum() < made.stay.size / 2
    assert 0.3 < made.metavision.mean() < 0.7
    owner, hour = made.every_hour()
    assert owner.size == made.hours.sum()
    assert hour[owner == 7].tolist() == [*range(made.hours[7])]


@pytest.mark.parametrize(("database", "name"), TABLES)
def test_a_table_has_its_columns_and_is_the_same_for_the_same_seed(database, name):
    one = table(database, name)
    assert one.columns == list(DATABASES[database].layout.tables[name])
    assert one.equals(table(database, name))
    assert name == "d_items" or not one.equals(table(database, name, seed=5))


@pytest.mark.parametrize("database", DATABASES)
def test_blocks_have_their_own_stays_and_tables_refer_to_the_same(database):
    stay = DATABASES[database].stay_column
    first, second = (table(database, "icustays", block=b, n_stays=500) for b in (0, 1))
    assert second[stay].min() - first[stay].min() == BLOCK_STAYS
    for name in (stay, "hadm_id", "subject_id"):
        assert not set(first[name]) & set(second[name])
    icu = table(database, "icustays")
    for other, key in (
        ("chartevents", stay),
        ("labevents", "hadm_id"),
        ("prescriptions", "hadm_id"),
    ):
        assert set(table(database, other)[key].drop_nulls()) <= set(icu[key])
    for owner, key in (("admissions", "hadm_id"), ("patients", "subject_id")):
        assert set(table(database, owner)[key]) == set(icu[key])
    left = icu.join(table(database, "admissions"), on="hadm_id")
    assert (left["dischtime"] > left["outtime"]).all()


@pytest.mark.parametrize("database", DATABASES)
def test_a_hundredth_of_the_events_is_repeated_in_no_order_and_units_are_mostly_stated(database):
    rows = table(database, "outputevents")
    assert rows.height - rows.unique().height == pytest.approx(rows.height / 100, rel=0.3)
    assert not rows["charttime"].is_sorted()
    assert set(rows["valueuom"]) == {"mL"}
    assert table(database, "icustays").is_unique().all()
    stated = table(database, "labevents").filter(pl.col("itemid") == 50912)["valueuom"]
    assert set(stated.drop_nulls()) == {"mg/dl"}
    assert 0.1 < stated.null_count() / stated.len() < 0.5


def test_mimic_iii_has_both_systems_and_the_flaws_of_real_data(mimic3):
    chart, orders, given = (
        mimic3[name] for name in ("chartevents", "prescriptions", "inputevents_mv")
    )
    assert 0 < chart["icustay_id"].null_count() < chart.height / 100
    assert 0 < chart["error"].sum() < chart.height / 100
    assert chart["valuenum"].null_count() > 0
    assert (chart["valuenum"] > 5000).any()
    assert {"Ventilator", "Nasal Cannula"} <= set(chart["value"])
    systems = chart.drop_nulls("icustay_id").group_by("icustay_id")
    assert systems.agg((pl.col("itemid") >= 220_000).n_unique())["itemid"].max() == 1
    assert 0 < mimic3["labevents"]["valuenum"].null_count() < mimic3["labevents"].height / 20
    assert 0.2 < orders["icustay_id"].null_count() / orders.height < 0.6
    assert (orders["startdate"].dt.hour() == 0).all()
    assert mimic3["microbiologyevents"]["charttime"].null_count() > 0
    assert (given["statusdescription"] == "Rewritten").any()
    units = {*given["rateuom"], *mimic3["inputevents_cv"]["rateuom"]}
    assert {"mcg/kg/min", "mcg/min", "units/hour", "mcgkgmin", "mcgmin", "Umin", "Uhr"} <= units
    passed = mimic3["outputevents"]
    assert passed.filter(pl.col("itemid") == 227488).height > 10
    assert (passed["value"] == 13_000).any()
    items = select_items(read_list("mimic3"), DATABASES["mimic3"].profiles["paper"].reading)
    vitals = {items.vitals[item] for item in {*chart["itemid"]} & {*items.vitals}}
    assert {"HR", "SysBP", "MeanBP", "RR", "SpO2", "Temp_F", "GCS", "RASS"} <= vitals


def test_mimic_iv_has_one_system_ages_from_years_and_every_vasopressor_item(mimic4):
    for name in ("chartevents", "inputevents", "outputevents", "procedureevents"):
        assert mimic4[name]["itemid"].min() >= 220_000
    assert mimic4["chartevents"]["stay_id"].null_count() == 0
    assert mimic4["icustays"]["stay_id"].min() > 30_000_000
    people = mimic4["patients"]
    assert (people["anchor_age"].min() >= 18, people["anchor_age"].max()) == (True, 91)
    assert people["anchor_year"].is_between(2099, 2210).all()
    items = select_items(read_list("mimic4"), DATABASES["mimic4"].profiles["clean"].reading)
    assert {*items.vasopressors} <= {*mimic4["inputevents"]["itemid"]}
    assert {*items.vasopressors} <= {*mimic4["d_items"]["itemid"]}


def test_laboratory_rows_of_mimic_iv_lack_an_admission_by_whole_specimens(mimic4):
    labs = mimic4["labevents"]
    assert labs["hadm_id"].null_count() / labs.height == pytest.approx(0.26, abs=0.05)
    kinds = labs.group_by("specimen_id").agg(pl.col("hadm_id").is_null().n_unique())
    assert kinds["hadm_id"].max() == 1
    assert labs["subject_id"].null_count() == 0
    blank = labs.filter(pl.col("value") == BLANK)
    assert 0.7 < blank["valuenum"].is_not_null().mean() < 1
    kinds = labs.filter(pl.col("itemid") == 52033)
    assert {"ART.", "VEN.", "MIX.", "CENTRAL VENOUS."} == set(kinds["value"])
    gases = set(labs.filter(pl.col("itemid") == 50821)["specimen_id"])
    assert gases - set(kinds["specimen_id"])  # some do not say what they were drawn from
    others = labs.filter(pl.col("specimen_id").is_in(kinds["specimen_id"].unique().implode()))
    assert set(others["itemid"]) <= {50820, 50821, 50818, 50802, 52033}
    cultures = mimic4["microbiologyevents"]
    assert 0.2 < cultures["hadm_id"].is_null().mean() < 0.4
    assert (cultures["charttime"].null_count() > 0, cultures["chartdate"].null_count()) == (True, 0)


def test_texts_of_mimic_iv_end_in_blanks_and_a_verbal_score_of_one_is_mostly_a_tube(mimic4):
    chart = mimic4["chartevents"]
    devices = chart.filter(pl.col("itemid") == 226732)
    assert {"Bipap mask ", "Medium conc mask ", "None"} <= set(devices["value"])
    several = devices.group_by("stay_id", "charttime").agg(pl.col("value").n_unique())
    assert (several["value"] > 1).sum() > 5
    modes = chart.filter(pl.col("itemid").is_in([223849, 229314]))["value"]
    assert {"Standby", "SPONT", "NIV-ST"} <= set(modes)
    verbal = chart.filter((pl.col("itemid") == 223900) & (pl.col("valuenum") == 1))
    assert (verbal["value"] == "No Response-ETT").mean() > 0.7


def test_orders_of_mimic_iv_have_hours_and_rates_in_milligrams_both_kinds_of_weight(mimic4):
    orders, given = mimic4["prescriptions"], mimic4["inputevents"]
    assert orders["starttime"].dt.hour().n_unique() > 12
    assert (orders["stoptime"] < orders["starttime"]).any()
    assert orders["gsn"].str.contains(" ").any()
    assert orders["gsn"].null_count() > 0
    assert "BASE" in orders["drug_type"].to_list()
    rows = given.filter(pl.col("rateuom") == "mg/kg/min")
    one = rows.filter(pl.col("patientweight") == 1)["rate"]
    other = rows.filter(pl.col("patientweight") > 1)["rate"]
    assert one.median() > 100 * other.median()
    assert "Rewritten" not in set(given["statusdescription"])
    assert {"L", "ml"} <= set(given["amountuom"])
