"""What simulated hospitals of both databases write alike."""

import numpy as np
import polars as pl

from etips.cohorts.mimic.items import read_list, select_items
from etips.cohorts.mimic.mimic4 import CLEAN
from etips.worlds.mimic3_stays import simulate_stays
from etips.worlds.raw_hospital import admissions, as_written, icustays, state_units

ITEMS = select_items(read_list("mimic4"), CLEAN.reading)
STAYS = simulate_stays(np.random.default_rng(1), first=0, n_stays=200)


def rng():
    return np.random.default_rng(2)


def test_an_admission_ends_after_its_last_stay_and_stays_have_their_column():
    stays = icustays(STAYS, stay_column="stay_id")
    ends = admissions(rng(), STAYS)
    assert ends["hadm_id"].is_unique().all()
    joined = stays.join(ends, on="hadm_id")
    assert joined.height == stays.height == 200
    assert (joined["dischtime"] > joined["outtime"]).all()


def test_units_are_those_expected_where_they_are_stated():
    rows = pl.DataFrame({"itemid": [220045, 226531, 223762, 1] * 100})
    told = state_units(rng(), "chartevents", rows, ITEMS).group_by("itemid").agg("valueuom")
    units = {item: set(found) for item, found in told.iter_rows()}
    assert units == {220045: {"bpm", None}, 226531: {"lbs", None}, 223762: {"degc", None},
                     1: {None}}  # fmt: skip
    assert state_units(rng(), "patients", rows, ITEMS).columns == ["itemid"]
    assert set(state_units(rng(), "outputevents", rows, ITEMS)["valueuom"]) == {"mL"}


def test_events_lose_their_order_and_some_are_repeated_and_people_are_not():
    rows = pl.DataFrame({"t": np.arange(300), "other": 0})
    types = {"t": "timestamp"}
    flawed = as_written(rng(), "labevents", rows, types)
    assert (flawed.height, flawed["t"].n_unique()) == (303, 300)
    assert not flawed["t"].is_sorted()
    assert flawed.schema == {"t": pl.Datetime("us")}
    assert as_written(rng(), "patients", rows, types)["t"].is_sorted()
