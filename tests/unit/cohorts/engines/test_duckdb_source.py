"""Bad input: one line, the place and the rule, never a value; and what a source may look like."""

import gzip
import logging

import duckdb
import polars as pl
import pytest
from cohort_building import built

from etips.cohorts.databases import LAYOUTS
from etips.cohorts.engines.tablefiles import find
from etips.errors import DataError, FileError

SECRET = "S3CRET"


@pytest.fixture
def copy(hospital, tmp_path):
    """A copy of the hospital that a test may damage."""
    for file in hospital.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def edit(folder, table, change):
    """Change the text of a table."""
    path = folder / f"{table.upper()}.csv.gz"
    path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()))))


def set_field(line, column, value):
    """Set one field of one line, counted from 1."""

    def change(text):
        lines = text.split(b"\n")
        header = lines[0].split(b",")
        fields = lines[line - 1].split(b",")
        fields[header.index(column)] = value
        lines[line - 1] = b",".join(fields)
        return b"\n".join(lines)

    return change


def refused(folder, kind, match, **options):
    with pytest.raises(kind, match=match) as caught:
        built(folder, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert SECRET not in message
    assert caught.value.__cause__ is None
    return message


def test_a_column_that_only_the_clean_profile_needs_is_missed_there_only(copy):
    edit(copy, "chartevents", lambda text: text.replace(b"error", b"errors", 1))
    assert built(copy).table.height > 0
    refused(copy, DataError, r"missing: chartevents\.error", profile="clean")


def test_a_truncated_gzip_is_refused(copy):
    path = copy / "CHARTEVENTS.csv.gz"
    path.write_bytes(path.read_bytes()[:-2000])
    refused(copy, FileError, r"^CHARTEVENTS\.csv\.gz: must be a whole gzip file")


@pytest.mark.parametrize(
    ("table", "column", "rule"),
    [
        ("icustays", b"intime", "column intime must hold times as YYYY-MM-DD HH:MM:SS"),
        ("chartevents", b"charttime", "column charttime must hold times as YYYY-MM-DD HH:MM:SS"),
        ("icustays", b"icustay_id", "column icustay_id must hold whole numbers"),
        ("labevents", b"valuenum", "column valuenum must hold numbers"),
    ],
)
def test_a_field_that_does_not_parse_is_refused_by_line(copy, table, column, rule):
    edit(copy, table, set_field(5, column, SECRET.encode()))
    refused(copy, DataError, f"{table.upper()}.csv.gz: {rule}; fails at line 5")


def test_an_infinite_number_is_refused(copy):
    edit(copy, "outputevents", set_field(2, b"value", b"inf"))
    ids = pl.read_csv(copy / "ICUSTAYS.csv.gz")["icustay_id"]
    edit(copy, "outputevents", lambda text: b"\n".join(
        [text.split(b"\n")[0], *(b"%d,2150-01-01 00:00:00,226559,inf,mL" % i for i in ids), b""]
    ))  # fmt: skip
    refused(copy, DataError, "^outputevents: amount must be finite; [0-9]+ rows fail")


def test_a_repeated_stay_is_refused(copy):
    edit(copy, "icustays", lambda text: text + text.split(b"\n")[1].replace(b"2", b"3") + b"\n")
    edit(copy, "admissions", lambda text: text + set_field(2, b"dischtime", b"2150-01-01 00:00:00")(
        text).split(b"\n")[1] + b"\n")  # fmt: skip
    refused(copy, DataError, "must each name one row")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text.split(b"\n")[0].upper() + b"\n" + b"\n".join(text.split(b"\n")[1:]),
    ],
    ids=["byte order mark", "CRLF", "upper case"],
)
def test_harmless_differences_are_accepted(copy, paper_cohort, change):
    for table in ("icustays", "prescriptions", "outputevents"):
        edit(copy, table, change)
    assert built(copy).table.equals(paper_cohort.table)


def test_a_duckdb_file_gives_the_identical_cohort(hospital, paper_cohort, tmp_path):
    path = tmp_path / "mimic.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE SCHEMA mimiciii")
        for name, file in find(hospital, LAYOUTS).items():
            text = {"prescriptions": "gsn", "chartevents": "value"}.get(name)
            types = f", types = {{'{text}': 'VARCHAR'}}" if text else ""
            reader = f"read_csv('{file.path}'{types})"
            database.execute(f"CREATE TABLE mimiciii.{name.upper()} AS FROM {reader}")
    assert built(path).table.equals(paper_cohort.table)


def test_codes_stored_as_numbers_get_their_zeros_back(copy, paper_cohort):
    path = copy / "PRESCRIPTIONS.csv.gz"
    rows = pl.read_csv(path, try_parse_dates=True)
    assert rows["gsn"].dtype == pl.Int64
    rows.write_parquet(copy / "prescriptions.parquet")
    path.unlink()
    assert built(copy).table.equals(paper_cohort.table)


def test_nothing_is_left_behind_and_no_value_is_logged(hospital, tmp_path, caplog):
    with caplog.at_level(logging.DEBUG, logger="etips"):
        built(hospital, work=tmp_path)
    assert list(tmp_path.iterdir()) == []
    ids = pl.read_csv(hospital / "ICUSTAYS.csv.gz")["icustay_id"].cast(pl.String)
    assert not any(i in caplog.text for i in ids)
