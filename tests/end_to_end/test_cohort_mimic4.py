"""`etips cohort` and `etips validate` on MIMIC-IV, and what they refuse."""

import gzip
import json
import shutil

import polars as pl
import pytest
from commands import refuse, run

from etips.worlds.raw_tables import MIMIC4_SHAPE


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw4") / "raw"
    MIMIC4_SHAPE.write_simulated(folder, n_stays=60, seed=3)
    return folder


@pytest.fixture
def copy(raw, tmp_path):
    return shutil.copytree(raw, tmp_path / "raw")


@pytest.fixture(scope="module")
def cohort(raw, tmp_path_factory):
    out = tmp_path_factory.mktemp("cohort4") / "c"
    run("cohort", raw, "--out", out)
    return out


def refused_cohort(source, tmp_path, *options):
    """A refused build leaves the place as it was."""
    out = tmp_path / "cohorts" / "c"
    out.parent.mkdir(exist_ok=True)
    line = refuse("cohort", source, "--out", out, *options)
    assert list(out.parent.iterdir()) == []
    return line


def test_a_folder_becomes_a_cohort_under_clean(cohort):
    config = json.loads((cohort / "config.json").read_bytes())
    assert (config["database"], config["name"], config["onset"]) == ("mimic4", "clean", "rules")
    assert pl.read_parquet(cohort / "table.parquet").height > 100
    audit = json.loads((cohort / "audit.json").read_bytes())
    assert {item["table"] for item in audit["units"]} >= {"chartevents", "inputevents"}


def test_validate_tells_counts_and_judges_two_figures(cohort):
    rows = {row["quantity"]: row for row in json.loads(run("validate", cohort, "--json"))}
    outcomes = {name: row["outcome"] for name, row in rows.items()}
    assert outcomes.pop("features") == outcomes.pop("actions") == "pass"
    assert set(outcomes.values()) == {"nothing published"}
    n_rows = pl.read_parquet(cohort / "table.parquet").height
    assert (rows["rows of the final table"]["found"], rows["samples"]["target"]) == (n_rows, None)
    assert "nothing published" in run("validate", cohort).splitlines()[-1]


def test_sepsis_as_others_define_it_is_an_option(raw, tmp_path):
    run("cohort", raw, "--out", tmp_path / "c", "--onset", "mimic-code", "--profile", "paper")
    config = json.loads((tmp_path / "c" / "config.json").read_bytes())
    assert (config["onset"], config["name"]) == ("mimic-code", "paper")
    stages = json.loads((tmp_path / "c" / "funnel.json").read_bytes())["stages"]
    assert "adult with Sepsis-3 as defined" in {stage["name"] for stage in stages}


def test_a_definition_is_refused_where_it_does_not_apply(tmp_path):
    run("simulate", "mimic3", "--stays", 3, "--out", tmp_path / "raw")
    line = refused_cohort(tmp_path / "raw", tmp_path, "--onset", "mimic-code")
    assert "onset: mimic-code is no definition for MIMIC-III. It is one for MIMIC-IV." in line


def test_a_missing_table_and_a_missing_column_are_named(copy, tmp_path):
    packed = copy / "icu" / "icustays.csv.gz"
    text = gzip.decompress(packed.read_bytes())
    packed.write_bytes(gzip.compress(text.replace(b"outtime", b"left", 1)))
    assert "missing: icustays.outtime" in refused_cohort(copy, tmp_path)
    (copy / "hosp" / "labevents.csv.gz").unlink()
    assert "must hold the MIMIC-IV tables; missing: labevents" in refused_cohort(copy, tmp_path)
    shutil.rmtree(copy / "icu")
    assert "missing: icustays, chartevents" in refused_cohort(copy, tmp_path)


@pytest.mark.parametrize("share", [0.001, 0.9])
def test_a_truncated_gzip_is_refused(copy, tmp_path, share):
    path = copy / "icu" / "chartevents.csv.gz"
    packed = path.read_bytes()
    path.write_bytes(packed[: max(int(share * len(packed)), 20)])
    assert "chartevents.csv.gz" in refused_cohort(copy, tmp_path)


def test_tables_of_mimic_iii_in_the_folders_of_mimic_iv_are_told(copy, tmp_path):
    run("simulate", "mimic3", "--stays", 3, "--out", tmp_path / "three")
    shutil.copy(tmp_path / "three" / "INPUTEVENTS_MV.csv.gz", copy / "icu")
    assert "it looks like MIMIC-III and MIMIC-IV" in refused_cohort(copy, tmp_path)


@pytest.mark.parametrize(("wrong", "own"), [("mimic3", "mimic4"), ("mimic4", "mimic3")])
def test_one_database_copied_as_the_other_is_refused_by_its_name(tmp_path, wrong, own):
    run("simulate", own, "--stays", 3, "--out", tmp_path / "raw")
    line = refuse("simulate", wrong, "--from", tmp_path / "raw", "--out", tmp_path / "out")
    assert f"looks like MIMIC-{'IV' if own == 'mimic4' else 'III'}" in line
    assert not (tmp_path / "out").exists()
