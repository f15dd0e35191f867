"""What is new in MIMIC-IV, as a simulated hospital shows it."""

import polars as pl
import pytest

from etips.worlds.mimic4_events import BLANK
from etips.worlds.mimic4_hospital import simulate_table


@pytest.fixture(scope="module")
def tables():
    names = ("chartevents", "labevents", "prescriptions", "inputevents", "microbiologyevents")
    return {name: simulate_table(name, seed=3, block=0, n_stays=150) for name in names}


def test_laboratory_rows_lack_an_admission_by_whole_specimens(tables):
    labs = tables["labevents"]
    assert labs["hadm_id"].null_count() / labs.height == pytest.approx(0.26, abs=0.05)
    kinds = labs.group_by("specimen_id").agg(pl.col("hadm_id").is_null().n_unique())
    assert kinds["hadm_id"].max() == 1
    assert labs["subject_id"].null_count() == 0


def test_a_blanked_value_mostly_keeps_its_number(tables):
    blank = tables["labevents"].filter(pl.col("value") == BLANK)
    assert blank.height > 100
    assert 0.7 < blank["valuenum"].is_not_null().mean() < 1


def test_gases_say_what_they_were_drawn_from_and_some_do_not(tables):
    labs = tables["labevents"]
    told = labs.filter(pl.col("itemid") == 52033)
    assert {"ART.", "VEN.", "MIX.", "CENTRAL VENOUS."} == set(told["value"])
    gases = set(labs.filter(pl.col("itemid") == 50821)["specimen_id"])
    assert gases - set(told["specimen_id"])
    others = labs.filter(pl.col("specimen_id").is_in(told["specimen_id"].unique().implode()))
    assert set(others["itemid"]) <= {50820, 50821, 50818, 50802, 52033}


def test_device_names_end_in_blanks_and_none_is_one_of_them(tables):
    devices = tables["chartevents"].filter(pl.col("itemid") == 226732)
    assert {"Bipap mask ", "Medium conc mask ", "None"} <= set(devices["value"])
    several = devices.group_by("stay_id", "charttime").agg(pl.col("value").n_unique())
    assert (several["value"] > 1).sum() > 5
    modes = tables["chartevents"].filter(pl.col("itemid").is_in([223849, 229314]))["value"]
    assert {"Standby", "SPONT", "NIV-ST"} <= set(modes)


def test_a_verbal_score_of_one_is_mostly_a_tube(tables):
    verbal = tables["chartevents"].filter((pl.col("itemid") == 223900) & (pl.col("valuenum") == 1))
    assert (verbal["value"] == "No Response-ETT").mean() > 0.7


def test_orders_have_hours_and_may_hold_two_codes_or_none(tables):
    orders = tables["prescriptions"]
    assert orders["starttime"].dt.hour().n_unique() > 12
    assert (orders["stoptime"] < orders["starttime"]).any()
    assert orders["gsn"].str.contains(" ").any()
    assert orders["gsn"].null_count() > 0
    assert "BASE" in orders["drug_type"].to_list()


def test_rates_in_milligrams_stand_beside_both_kinds_of_weight(tables):
    rows = tables["inputevents"].filter(pl.col("rateuom") == "mg/kg/min")
    one = rows.filter(pl.col("patientweight") == 1)["rate"]
    other = rows.filter(pl.col("patientweight") > 1)["rate"]
    assert one.median() > 100 * other.median()
    assert "Rewritten" not in set(tables["inputevents"]["statusdescription"])
    assert {"L", "ml"} <= set(tables["inputevents"]["amountuom"])


def test_specimens_of_a_third_lack_an_admission(tables):
    rows = tables["microbiologyevents"]
    assert 0.2 < rows["hadm_id"].is_null().mean() < 0.4
    assert rows["charttime"].null_count() > 0
    assert rows["chartdate"].null_count() == 0
