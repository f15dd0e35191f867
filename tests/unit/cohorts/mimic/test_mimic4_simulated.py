"""A simulated hospital of the MIMIC-IV shape: the whole way, in everybody's clone."""

import gzip
import shutil

import duckdb
import numpy as np
import polars as pl
import pytest
from cohort_building import built, same

from etips.cohorts.dataset.sepsis_cohort import to_trajectories
from etips.cohorts.mimic.mimic4 import CLEAN, PAPER, Mimic4Extraction, Onset


@pytest.fixture(scope="module")
def cohorts(hospital4):
    return {profile: built(hospital4, profile) for profile in ("clean", "paper")}


@pytest.mark.parametrize("profile", ["clean", "paper"])
def test_a_cohort_has_every_cell_and_says_where_it_comes_from(cohorts, profile):
    cohort = cohorts[profile]
    assert np.isfinite(cohort.table.drop("elixhauser").to_numpy()).all()
    assert (cohort.settings["database"], cohort.profile) == ("mimic4", profile)
    assert cohort.onsets.columns == ["stay_id", "onset"]
    assert {item.table for item in cohort.units} >= {"chartevents", "labevents", "inputevents"}
    assert all(n > 0 for n in cohort.vasopressor.counts)


def read(path):
    return pl.read_csv(path, infer_schema=False)


@pytest.mark.parametrize("shape", ["shuffled csv", "flat parquet", "duckdb"])
def test_other_shapes_and_orders_of_the_same_rows_give_the_identical_cohort(
    hospital4, cohorts, tmp_path, shape
):
    files = sorted(hospital4.glob("*/*.csv.gz"))
    if shape == "duckdb":
        address = tmp_path / "hospital.duckdb"
        with duckdb.connect(str(address)) as connection:
            for place in ("mimiciv_hosp", "mimiciv_icu"):
                connection.execute(f"CREATE SCHEMA {place}")
            for file in files:
                table = file.name.removesuffix(".csv.gz")
                connection.execute(
                    f"CREATE TABLE mimiciv_{file.parent.name}.{table} AS "
                    f"SELECT * FROM read_csv('{file}', all_varchar = true)"
                )
    else:
        address = tmp_path / "raw"
        for file in files:
            rows = read(file).sample(fraction=1, shuffle=True, seed=5)
            name = file.name.removesuffix(".csv.gz")
            if shape == "flat parquet":
                address.mkdir(exist_ok=True)
                rows.write_parquet(address / f"{name.upper()}.parquet")
            else:
                (address / file.parent.name).mkdir(parents=True, exist_ok=True)
                rows.write_csv(address / file.parent.name / f"{name}.csv")
    same(built(address, "clean"), cohorts["clean"])


def test_another_definition_gives_another_cohort_and_blocks_do_not_matter(hospital4, cohorts):
    profile = CLEAN.changed(onset=Onset.MIMIC_CODE)
    one = built(hospital4, profile, reading=Mimic4Extraction)
    other = built(hospital4, profile.changed(stays_per_block=7), reading=Mimic4Extraction)
    assert one.table.equals(other.table)
    assert not one.onsets.equals(cohorts["clean"].onsets)
    assert [stage.name for stage in one.funnel.stages][7] == "adult with Sepsis-3 as defined"
    assert to_trajectories(one).schema.provenance["onset"] == "mimic-code"
    assert "onset" not in to_trajectories(cohorts["clean"]).schema.provenance


@pytest.mark.parametrize("switch", ["arterial_gases_only", "laboratory_by_subject"])
def test_a_switch_of_the_laboratory_changes_the_table(hospital4, cohorts, switch):
    profile = PAPER.changed(**{switch: not getattr(PAPER.reading, switch)})
    assert not built(hospital4, profile, reading=Mimic4Extraction).table.equals(
        cohorts["paper"].table
    )


def test_more_columns_as_in_a_later_version_change_nothing(hospital4, cohorts, tmp_path):
    shutil.copytree(hospital4, tmp_path / "raw")
    for path in ("icu/chartevents", "hosp/labevents"):
        file = tmp_path / "raw" / f"{path}.csv.gz"
        rows = read(file).select(pl.lit("P1").alias("caregiver_id"), pl.all())
        file.write_bytes(gzip.compress(rows.write_csv().encode(), 1))
    same(built(tmp_path / "raw", "paper"), cohorts["paper"])
