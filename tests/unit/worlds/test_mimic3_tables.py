"""Simulated raw tables of the MIMIC-III shape, and copies of a source."""

import polars as pl
import pytest

from etips.cohorts.databases import LAYOUTS
from etips.cohorts.engines.sources import DuckDBSource
from etips.cohorts.mimic.items import read_list, select_items
from etips.cohorts.mimic.mimic3 import CLEAN, PAPER, Mimic3Extraction, needed
from etips.errors import FileError, SettingError
from etips.worlds.mimic3_hospital import simulate_table
from etips.worlds.mimic3_tables import write_copies, write_simulated

TABLES = sorted(needed(CLEAN.reading))


@pytest.fixture(scope="module")
def simulated():
    return {name: simulate_table(name, seed=1, block=0, n_stays=80) for name in TABLES}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("world") / "raw"
    write_simulated(place, n_stays=12, seed=5)
    return place


def test_every_table_has_the_columns_the_cohort_reads(folder):
    source = DuckDBSource(folder, LAYOUTS)
    try:
        assert set(Mimic3Extraction.open_tables(source, CLEAN.reading)) == set(TABLES)
    finally:
        source.close()


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not(folder, tmp_path):
    write_simulated(tmp_path / "again", n_stays=12, seed=5)
    write_simulated(tmp_path / "other", n_stays=12, seed=6)
    for file in folder.iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()
    chart = "CHARTEVENTS.csv.gz"
    assert (folder / chart).read_bytes() != (tmp_path / "other" / chart).read_bytes()


def test_blocks_do_not_share_stays():
    one, other = (simulate_table("icustays", seed=1, block=block, n_stays=500) for block in (0, 1))
    for name in ("icustay_id", "hadm_id", "subject_id"):
        assert not set(one[name]) & set(other[name])


def test_tables_refer_to_the_same_stays(simulated):
    icu = simulated["icustays"]
    assert set(simulated["chartevents"]["icustay_id"].drop_nulls()) <= set(icu["icustay_id"])
    assert set(simulated["labevents"]["hadm_id"]) <= set(icu["hadm_id"])
    assert set(icu["hadm_id"]) == set(simulated["admissions"]["hadm_id"])
    assert set(icu["subject_id"]) == set(simulated["patients"]["subject_id"])


def test_patients_return_and_nobody_is_in_two_stays_at_once(simulated):
    icu = simulated["icustays"].sort("subject_id", "intime")
    assert icu["subject_id"].n_unique() < icu.height
    overlap = icu.with_columns(next=pl.col("intime").shift(-1).over("subject_id"))
    assert (overlap["next"].drop_nulls() > overlap.drop_nulls("next")["outtime"]).all()


def test_the_flaws_of_real_data_are_there(simulated):
    chart, given = simulated["chartevents"], simulated["prescriptions"]
    assert chart.is_duplicated().any()
    assert chart["icustay_id"].null_count() > 0
    assert (chart["error"] == 1).any()
    assert chart["valuenum"].null_count() > 0
    assert (chart["valuenum"] > 5000).any()
    assert 0.2 < given["icustay_id"].null_count() / given.height < 0.6
    assert simulated["microbiologyevents"]["charttime"].null_count() > 0
    assert (simulated["inputevents_mv"]["statusdescription"] == "Rewritten").any()
    assert simulated["inputevents_mv"]["rate"].null_count() > 0
    assert simulated["inputevents_mv"]["rateuom"].n_unique() > 4
    assert (given["startdate"].dt.hour() == 0).all()


def test_both_charting_systems_and_most_features_are_charted(simulated):
    items = select_items(read_list("mimic3"), PAPER.reading)
    seen = set(simulated["chartevents"]["itemid"])
    vitals = {items.vitals[item] for item in seen & set(items.vitals)}
    assert {"HR", "SysBP", "MeanBP", "RR", "SpO2", "Temp_F", "GCS", "RASS"} <= vitals
    assert any(item > 220_000 for item in seen)
    assert any(item < 10_000 for item in seen)


def test_copies_have_their_own_numbers_and_later_times(folder, tmp_path):
    write_copies(tmp_path / "copies", source=folder, copies=3)
    icu = pl.read_parquet(tmp_path / "copies" / "ICUSTAYS.parquet").sort("icustay_id")
    assert icu.height == 36
    for name in ("icustay_id", "hadm_id", "subject_id"):
        original = icu.head(12)[name].n_unique()
        assert icu[name].n_unique() == 3 * original
    shift = (icu["intime"][12] - icu["intime"][0]).days
    assert shift == 7
    dates = pl.read_parquet(tmp_path / "copies" / "PRESCRIPTIONS.parquet")["startdate"]
    assert (dates.dt.hour() == 0).all()


def test_one_copy_is_the_source_itself(folder, tmp_path):
    write_copies(tmp_path / "one", source=folder, copies=1, parquet=False)
    for file in folder.iterdir():
        one = pl.read_csv(file, infer_schema=False)
        other = pl.read_csv(tmp_path / "one" / file.name, infer_schema=False)
        assert one.height == other.height


def test_an_existing_folder_is_not_touched_and_settings_are_checked(folder, tmp_path):
    with pytest.raises(FileError, match="exists already"):
        write_simulated(folder, n_stays=3)
    with pytest.raises(SettingError, match=r"^n_stays: "):
        write_simulated(tmp_path / "none", n_stays=0)
    with pytest.raises(SettingError, match=r"^copies: "):
        write_copies(tmp_path / "none", source=folder, copies=0)
    with pytest.raises(FileError, match="must be an existing folder"):
        write_simulated(tmp_path / "no" / "such", n_stays=3)
    assert list(tmp_path.iterdir()) == []
