"""Tables as files: which of a folder's files are taken, and times that would be misread."""

import gzip
import re
import shutil

import duckdb
import polars as pl
import pytest
from cohort_building import built

from etips.cohorts.databases import LAYOUTS, open_source
from etips.cohorts.engines.tablefiles import find
from etips.cohorts.mimic.mimic3 import CLEAN, PAPER, needed
from etips.errors import DataError, FileError, SettingError

STAYS = needed(PAPER.reading)["icustays"]
ODD_TIME = "ICUSTAYS.csv.gz: column intime must hold times as YYYY-MM-DD HH:MM:SS, without zone"


@pytest.fixture
def copy(hospital, tmp_path):
    """A copy of the hospital that a test may change."""
    return shutil.copytree(hospital, tmp_path / "raw")


def read(folder, table="icustays", columns=STAYS):
    """A table as the engine reads it."""
    source = open_source(folder)
    try:
        return source.fetch(source.table(table, columns)).sort(pl.all())
    finally:
        source.close()


def rewrite_times(folder, change, table="ICUSTAYS"):
    """Change every time of a table, given as text."""
    path = folder / f"{table}.csv.gz"
    text = gzip.decompress(path.read_bytes()).decode()
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", lambda found: change(found[0]), text)
    path.write_bytes(gzip.compress(text.encode()))


def as_parquet(folder, change=lambda rows: rows):
    path = folder / "ICUSTAYS.csv.gz"
    change(pl.read_csv(path, infer_schema=False)).write_parquet(folder / "icustays.parquet")
    path.unlink()


# ---- which files -------------------------------------------------------------------------------


def test_files_that_hold_no_needed_table_are_left_alone(copy):
    (copy / "._ICUSTAYS.csv.gz").write_bytes(b"\x00\x05\x16\x07 of macOS")
    (copy / "NOTEEVENTS.csv.gz").write_bytes(b"not even gzip")
    (copy / "my notes.csv").write_bytes("Größe".encode("latin-1"))
    assert set(find(copy, LAYOUTS)) == set(needed(CLEAN.reading))
    assert read(copy).height == 60


def test_a_folder_of_parts_may_be_called_as_spark_calls_it(copy):
    rows = pl.read_csv(copy / "ICUSTAYS.csv.gz", infer_schema=False)
    before = read(copy)
    (copy / "ICUSTAYS.csv.gz").unlink()
    (copy / "icustays.parquet").mkdir()
    rows[:7].write_parquet(copy / "icustays.parquet" / "part-0.parquet")
    rows[7:].write_parquet(copy / "icustays.parquet" / "part-1.parquet")
    (copy / "icustays.parquet" / "_SUCCESS").touch()
    assert read(copy).equals(before)
    assert read(copy.rename(copy.parent / "mimic [v1.4]")).equals(before)


def test_two_files_of_one_table_and_kind_are_refused_and_parquet_goes_before_csv(copy):
    before = read(copy)
    shutil.copy(copy / "ICUSTAYS.csv.gz", copy / "icustays.csv.gz")
    message = "must hold one file of icustays; found ICUSTAYS.csv.gz and icustays.csv.gz"
    with pytest.raises(DataError, match=message):
        open_source(copy)
    (copy / "ICUSTAYS.csv.gz").unlink()
    (copy / "icustays.csv.gz").rename(copy / "ICUSTAYS.csv.gz")
    as_parquet(copy)
    (copy / "ICUSTAYS.csv.gz").write_bytes(b"an older one")
    assert read(copy).equals(before)


@pytest.mark.parametrize("name", ["mimic [v1.4]", "all * of it", "which?", "it's", "größer & so"])
def test_a_folder_may_have_any_name(copy, name):
    before = read(copy)
    assert read(copy.rename(copy.parent / name)).equals(before)


# ---- times -------------------------------------------------------------------------------------


@pytest.mark.parametrize("behind", [" PM", "+02:00", "-05", " Europe/Berlin", " or so"])
def test_a_time_with_something_behind_it_is_refused_by_line(copy, behind):
    rewrite_times(copy, lambda time: time + behind)
    with pytest.raises(DataError, match=ODD_TIME) as caught:
        read(copy)
    assert "fails at line 2." in str(caught.value)
    assert behind not in str(caught.value).replace("AM and PM", "")


@pytest.mark.parametrize(
    "change",
    [
        lambda time: time.replace(" ", "T"),
        lambda time: time + ".000",
        lambda time: time + "Z",
        lambda time: time + "+00:00",
    ],
)
@pytest.mark.parametrize("parquet", [False, True])
def test_other_spellings_of_the_same_time_are_read(copy, change, parquet):
    before = read(copy)
    rewrite_times(copy, change)
    if parquet:
        as_parquet(copy)
    assert read(copy).equals(before)


def zoned(name):
    def change(rows):
        time = pl.col("intime", "outtime").str.to_datetime("%Y-%m-%d %H:%M:%S")
        return rows.with_columns(time.dt.replace_time_zone(name, non_existent="null"))

    return change


def test_times_of_parquet_in_a_zone_are_refused_but_for_utc(copy, monkeypatch):
    before = read(copy)
    other = shutil.copytree(copy, copy.parent / "other")
    as_parquet(copy, zoned("UTC"))
    monkeypatch.setenv("TZ", "America/New_York")
    assert read(copy).equals(before)
    as_parquet(other, zoned("Asia/Tokyo"))
    with pytest.raises(DataError, match=r"icustays\.parquet: column (in|out)time must hold times"):
        read(other)


def test_a_column_of_lists_is_refused_by_name(copy):
    as_parquet(copy, lambda rows: rows.with_columns(pl.concat_list("intime").alias("intime")))
    with pytest.raises(DataError, match=r"icustays\.parquet: column intime must hold one value"):
        read(copy)


# ---- a database file ---------------------------------------------------------------------------


def database(hospital, path, *, schemas=("main",), kind="TABLE"):
    with duckdb.connect(str(path)) as opened:
        for schema in schemas:
            opened.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            for name, file in find(hospital, LAYOUTS).items():
                reader = f"read_csv('{file.path}', all_varchar = true)"
                opened.execute(f"CREATE {kind} {schema}.{name} AS FROM {reader}")
    return path


def test_a_database_file_with_a_table_in_two_schemas_is_refused(hospital, tmp_path):
    path = database(hospital, tmp_path / "m.duckdb", schemas=("old", "new"))
    with pytest.raises(DataError, match="must hold admissions once"):
        open_source(path)


# ---- tables that do not belong together --------------------------------------------------------


@pytest.mark.parametrize("table", ["labevents", "outputevents", "microbiologyevents"])
def test_an_empty_table_that_no_hospital_has_is_refused(copy, table):
    path = copy / f"{table.upper()}.csv.gz"
    header = gzip.decompress(path.read_bytes()).split(b"\n")[0]
    path.write_bytes(gzip.compress(header + b"\n"))
    with pytest.raises(DataError, match=f"{table}: must hold rows that can be used"):
        built(copy)


# ---- settings ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", ["", "much", "0", "-1GB", "50%", "1KB", "63MB", "2GBs"])
def test_a_memory_limit_that_is_none_is_refused_before_anything_is_made(hospital, tmp_path, size):
    with pytest.raises(SettingError, match="memory limit: must be a size such as 2GB"):
        open_source(hospital, keep=tmp_path / "work", memory_limit=size)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_other_files_only_is_refused(tmp_path):
    (tmp_path / "letters.csv").write_text("a,b\n")
    with pytest.raises(FileError, match="holds no CSV"):
        open_source(tmp_path)
