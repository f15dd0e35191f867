"""`etips cohort`, `etips validate` and `etips simulate mimic3` as a user runs them."""

import gzip
import json
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import polars as pl
import pytest
from commands import refuse, run

from etips.cohorts.databases import DATABASES
from etips.cohorts.dataset.agreement import Check, Outcome
from etips.data.storage import load_trajectories
from etips.files.lock import Lock
from etips.worlds.raw_tables import MIMIC3_SHAPE

FILES = {
    "steps.parquet", "stays.parquet", "schema.json", "table.parquet", "onset.parquet",
    "decisions.parquet", "funnel.json", "doses.json", "config.json", "audit.json", "funnel.svg",
}  # fmt: skip


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """Raw tables of 40 simulated stays."""
    folder = tmp_path_factory.mktemp("hospital") / "raw"
    MIMIC3_SHAPE.write_simulated(folder, n_stays=40, seed=3)
    return folder


@pytest.fixture(scope="module")
def cohort(raw, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cohorts") / "cohort"
    run("cohort", raw, "--out", folder)
    return folder


@pytest.fixture
def copy(raw, tmp_path):
    """Raw tables that a test may damage."""
    return Path(shutil.copytree(raw, tmp_path / "raw"))


def edit(folder, table, change):
    path = folder / f"{table.upper()}.csv.gz"
    path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()))))


# ---- what is written ---------------------------------------------------------------------------


def test_a_cohort_folder_holds_what_the_contract_says_and_loads_as_trajectories(cohort):
    assert {file.name for file in cohort.iterdir()} == FILES
    assert not list(cohort.parent.glob(".*"))
    data = load_trajectories(cohort)
    funnel = json.loads((cohort / "funnel.json").read_bytes())
    assert data.n_decisions == funnel["n_samples"]["A"]
    assert data.n_stays == funnel["stages"][-1]["n_stays"]
    assert data.group is not None
    table = pl.read_parquet(cohort / "table.parquet")
    assert (len(table.columns), table.height) == (59, data.n_steps)


def test_the_funnel_the_doses_and_the_audit_are_printed(raw, tmp_path):
    printed = run("cohort", raw, "--out", tmp_path / "c")
    for word in ("ICU stays", "decisions, reading A", "dose classes", "fluid, mL", "audit.json"):
        assert word in printed
    rows = json.loads(run("cohort", raw, "--out", tmp_path / "d", "--json"))
    assert rows[0] == {"step": "ICU stays", "count": 40}


def test_counts_of_few_people_are_not_printed(tmp_path):
    MIMIC3_SHAPE.write_simulated(tmp_path / "raw", n_stays=12, seed=3)
    rows = json.loads(run("cohort", tmp_path / "raw", "--out", tmp_path / "c", "--json"))
    stays = [row["count"] for row in rows if not row["step"].startswith(("rows", "decisions"))]
    assert "under 11" in stays
    assert not any(isinstance(count, int) and 0 < count < 11 for count in stays)


def test_the_drawing_is_well_formed_and_the_audit_names_units_and_missing_shares(cohort):
    root = ET.fromstring((cohort / "funnel.svg").read_text())
    assert root.tag.endswith("svg")
    audit = json.loads((cohort / "audit.json").read_bytes())
    assert {item["table"] for item in audit["units"]} >= {"chartevents", "labevents"}
    assert set(audit["missing_before_imputation"]) == {"pass 1", "pass 2"}


def test_clean_runs_and_says_so(raw, tmp_path):
    run("cohort", raw, "--out", tmp_path / "c", "--profile", "clean")
    assert json.loads((tmp_path / "c" / "config.json").read_bytes())["name"] == "clean"


def test_the_help_names_every_database_and_its_profiles():
    told = set(re.findall(r"[\w-]+", run("cohort", "--help")))
    for database in DATABASES.values():
        assert {*re.findall(r"[\w-]+", database.label), *database.profiles} <= told


def test_validate_says_that_a_small_source_is_too_small(cohort):
    rows = json.loads(run("validate", cohort, "--json"))
    outcomes = {row["quantity"]: row["outcome"] for row in rows}
    assert outcomes["stays in the final table"] == "too small to judge"
    assert outcomes["features"] == "pass"
    by_name = {row["quantity"]: row for row in rows}
    assert by_name["rows of the final table"]["target"] == 278_568
    assert by_name["rows of the final table"]["low"] == 277_500
    n_rows = pl.read_parquet(cohort / "table.parquet").height
    assert by_name["rows of the final table"]["found"] == n_rows
    assert by_name["accuracy of the predictive model"]["found"] is None
    printed = run("validate", cohort)
    assert "against what is published" in " ".join(printed.split())
    assert "277500 to 279700" in printed  # what is accepted
    last = printed.splitlines()[-1]
    assert last.startswith(f"{len(rows)} figures: ")
    assert "too small to judge" in last


def test_validate_prints_large_counts_to_the_last_digit(cohort, monkeypatch):
    check = Check("rows", 278_568, 278_466, 277_500, 279_700, Outcome.PASS)
    monkeypatch.setattr("etips.cli.cohort.compare", lambda evidence: [check])
    assert "278466" in run("validate", cohort)


# ---- bad input ---------------------------------------------------------------------------------


def refused_cohort(source, tmp_path, *options):
    """A refused build leaves the place as it was."""
    out = tmp_path / "cohorts" / "c"
    out.parent.mkdir(exist_ok=True)
    line = refuse("cohort", source, "--out", out, *options)
    assert list(out.parent.iterdir()) == []
    return line


def test_a_missing_table_is_named(copy, tmp_path):
    (copy / "LABEVENTS.csv.gz").unlink()
    assert "missing: labevents" in refused_cohort(copy, tmp_path)


def test_a_missing_column_is_named(copy, tmp_path):
    edit(copy, "icustays", lambda text: text.replace(b"outtime", b"left", 1))
    assert "missing: icustays.outtime" in refused_cohort(copy, tmp_path)


def test_a_mixture_of_databases_is_refused_by_what_lies_there_and_by_where_it_lies(copy, tmp_path):
    edit(copy, "icustays", lambda text: text.replace(b"icustay_id", b"stay_id", 1))
    assert "it looks like MIMIC-III and MIMIC-IV" in refused_cohort(copy, tmp_path)
    for name in ("hosp", "icu"):
        (copy / name).mkdir()
        (copy / name / "chartevents.csv.gz").write_bytes(b"")
    assert "in itself or in hosp, icu, not in both" in refused_cohort(copy, tmp_path)


@pytest.mark.parametrize("share", [0.001, 0.5, 0.99])
def test_a_truncated_gzip_is_refused(copy, tmp_path, share):
    path = copy / "CHARTEVENTS.csv.gz"
    packed = path.read_bytes()
    path.write_bytes(packed[: max(int(share * len(packed)), 20)])
    line = refused_cohort(copy, tmp_path)
    assert "CHARTEVENTS.csv.gz" in line


def test_a_time_that_does_not_parse_is_refused_without_its_text(copy, tmp_path):
    edit(copy, "labevents", lambda text: text.replace(b"21", b"two", 40))
    line = refused_cohort(copy, tmp_path)
    assert "LABEVENTS.csv.gz" in line
    assert "two" not in line


@pytest.mark.parametrize(
    ("table", "stage"),
    [
        ("icustays", "ICU stays"),
        ("prescriptions", "with an antibiotic"),
        ("microbiologyevents", "with a sample"),
    ],
)
def test_an_empty_step_of_the_funnel_is_named(copy, tmp_path, table, stage):
    edit(copy, table, lambda text: text.split(b"\n")[0] + b"\n")
    if table == "microbiologyevents":
        edit(copy, "chartevents", lambda text: text.split(b"\n")[0] + b"\n")
    assert f"none is left at: {stage}" in refused_cohort(copy, tmp_path)


def test_nobody_with_data_is_named(copy, tmp_path):
    for table in ("chartevents", "labevents"):
        edit(copy, table, lambda text: text.split(b"\n")[0] + b"\n")
    assert "none is left at: with data in the pass 1 window" in refused_cohort(copy, tmp_path)


def test_an_existing_output_stays_and_an_unknown_source_or_parent_is_refused(raw, cohort, tmp_path):
    before = {file: file.read_bytes() for file in cohort.iterdir()}
    assert "exists already" in refuse("cohort", raw, "--out", cohort)
    assert {file: file.read_bytes() for file in cohort.iterdir()} == before
    assert "existing folder or file" in refused_cohort(tmp_path / "nowhere", tmp_path)
    assert "must be a folder" in refuse("cohort", raw, "--out", tmp_path / "no" / "such" / "c")


def test_overwriting_replaces_a_cohort_and_nothing_else(raw, tmp_path):
    out = tmp_path / "c"
    run("cohort", raw, "--out", out)
    (tmp_path / "letter").mkdir()
    run("cohort", raw, "--out", out, "--overwrite", "--profile", "clean")
    assert json.loads((out / "config.json").read_bytes())["name"] == "clean"
    assert "stays" in refuse("cohort", raw, "--out", tmp_path / "letter", "--overwrite")


@pytest.mark.parametrize("kind", ["letters", "link"])
def test_a_place_that_cannot_be_written_is_refused_before_the_build(
    raw, tmp_path, monkeypatch, kind
):
    out = tmp_path / "out"
    if kind == "link":
        out.symlink_to(tmp_path / "nowhere")
    else:
        out.mkdir()
    monkeypatch.setattr("etips.cli.cohort.resumable_source", None)  # any use of it would fail
    assert "so it stays" in refuse("cohort", raw, "--out", out, "--overwrite")
    assert "exists already" in refuse("cohort", raw, "--out", out)


def test_a_memory_limit_that_is_none_is_refused(raw, tmp_path):
    assert "must be a size such as 2GB" in refused_cohort(raw, tmp_path, "--memory", "much")


@pytest.mark.parametrize("damage", ["table.parquet", "funnel.json", "doses.json"])
def test_validate_refuses_a_damaged_folder_in_one_line(cohort, tmp_path, damage):
    folder = Path(shutil.copytree(cohort, tmp_path / "c"))
    (folder / damage).write_bytes(b"[1, 2]")
    assert f"{damage}: was changed after it was written" in refuse("validate", folder)
    (folder / damage).unlink()
    assert f"{damage}: is missing" in refuse("validate", folder)
    assert "must be a folder" in refuse("validate", tmp_path / "nowhere")


def test_two_builds_do_not_share_an_output(raw, tmp_path):
    (tmp_path / ".c.work").mkdir()
    with Lock(tmp_path / ".c.work"):
        assert "in use by another process" in refuse("cohort", raw, "--out", tmp_path / "c")
    run("cohort", raw, "--out", tmp_path / "c")
    assert {entry.name for entry in tmp_path.iterdir()} == {"c"}


# ---- simulate mimic3 ---------------------------------------------------------------------------


def test_copies_have_their_own_people_and_the_cohort_grows_with_them(raw, cohort, tmp_path):
    run("simulate", "mimic3", "--from", raw, "--copies", 2, "--out", tmp_path / "two")
    assert {file.suffix for file in (tmp_path / "two").iterdir()} == {".parquet"}
    run("cohort", tmp_path / "two", "--out", tmp_path / "c")
    one, two = (
        json.loads((folder / "funnel.json").read_bytes()) for folder in (cohort, tmp_path / "c")
    )
    pairs = [
        (one["stages"][stage]["n_stays"], two["stages"][stage]["n_stays"])
        for stage in (0, 5, 7)  # before imputation and dose ranks, which couple the stays
    ]
    told = [(single, double) for single, double in pairs if None not in (single, double)]
    assert told
    assert all(double == 2 * single for single, double in told)
    assert len(set(load_trajectories(tmp_path / "c").group.tolist())) == 2 * len(
        set(load_trajectories(cohort).group.tolist())
    )


def test_tables_are_written_in_the_format_asked_for(raw, tmp_path):
    run("simulate", "mimic3", "--from", raw, "--format", "csv.gz", "--out", tmp_path / "one")
    run("simulate", "mimic3", "--stays", 3, "--format", "parquet", "--out", tmp_path / "few")
    assert {file.suffix for file in (tmp_path / "one").iterdir()} == {".gz"}
    assert {file.suffix for file in (tmp_path / "few").iterdir()} == {".parquet"}


def test_overwriting_replaces_raw_tables_and_nothing_else(tmp_path):
    out = tmp_path / "raw"
    run("simulate", "mimic3", "--stays", 2, "--out", out)
    rows = json.loads(
        run("simulate", "mimic3", "--stays", 3, "--format", "parquet", "--out", out,
            "--overwrite", "--json")
    )  # fmt: skip
    assert {row["file"] for row in rows} == {file.name for file in out.iterdir()}
    assert {file.suffix for file in out.iterdir()} == {".parquet"}
    assert pl.read_parquet(out / "ICUSTAYS.parquet").height == 3
    assert "exists already" in refuse("simulate", "mimic3", "--stays", 2, "--out", out)
    (out / "thesis.txt").write_text("years of work")
    line = refuse("simulate", "mimic3", "--stays", 2, "--out", out, "--overwrite")
    assert "holds more than raw tables, so it stays" in line
    assert (out / "thesis.txt").read_text() == "years of work"
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("mimic3", "--copies", "2"), "--copies: needs --from"),
        (("mimic3", "--from", "RAW", "--stays", "3"), "--stays: cannot be used with --from"),
        (("clinic", "--copies", "2"), "apply to mimic3 or mimic4 only"),
        (("mimic3", "--from", "NOWHERE"), "must be a folder of tables or a DuckDB file"),
        (("mimic3", "--lag", "1"), "--lag: applies to icu-sepsis only"),
    ],
)
def test_options_that_do_not_go_together_are_refused(raw, tmp_path, options, words):
    places = {"RAW": raw, "NOWHERE": tmp_path / "nowhere"}
    chosen = [places.get(option, option) for option in options]
    assert words in refuse("simulate", *chosen, "--out", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_source_with_a_missing_table_is_not_copied(copy, tmp_path):
    (copy / "LABEVENTS.csv.gz").unlink()
    line = refuse("simulate", "mimic3", "--from", copy, "--out", tmp_path / "out")
    assert "missing: labevents" in line
    assert not (tmp_path / "out").exists()
