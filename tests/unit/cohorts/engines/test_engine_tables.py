"""From an address to tables as they are asked for; what is refused, without a patient's value."""

import contextlib
import importlib.util
import math
from datetime import datetime

import duckdb
import ibis
import polars as pl
import pytest

from etips.cohorts.databases import open_source, resumable_source
from etips.cohorts.engines import address
from etips.cohorts.engines.address import Engine
from etips.cohorts.engines.layouts import INT, TEXT, Layout, any_of, typed
from etips.cohorts.engines.sources import DuckDBSource, refusal_of, refusals
from etips.cohorts.engines.store import in_seconds, require_finite
from etips.errors import DataError, FileError, ResourceError, SettingError


def cast(kind, values):
    """One column `A`, asked for as `a`, as Ibis itself computes it."""
    table = ibis.memtable(pl.DataFrame({"A": values}))
    backend = ibis.duckdb.connect()
    try:
        return backend.to_polars(typed(table, {"a": kind}, where="here"))["a"].to_list()
    finally:
        backend.disconnect()


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("int64", ["7", None], [7, None]),
        ("float64", ["1.5", "2"], [1.5, 2.0]),
        ("string", [7], ["7"]),
        ("code", [9326, None], ["009326", None]),
        ("code", ["9326"], ["9326"]),
    ],
)
def test_a_column_gets_the_kind_that_is_asked(kind, values, expected):
    assert cast(kind, values) == expected


def test_a_time_is_read_and_one_with_something_behind_it_is_refused_by_the_engine():
    (time,) = cast("timestamp", ["2150-01-02 03:04:05"])
    assert (time.year, time.hour, time.second) == (2150, 3, 5)
    with pytest.raises(Exception, match="not a time"):
        cast("timestamp", ["2150-01-02 03:04:05 PM"])


NEEDED = {"people": {"id": INT, "name": TEXT}}
OPTIONAL = {"people": {"note": TEXT}, "words": {"id": INT, "word": TEXT}}
LAYOUT = Layout("Test", {**NEEDED, "words": OPTIONAL["words"]})


def opened(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    with contextlib.closing(DuckDBSource(folder, LAYOUT)) as source:
        tables = source.open_tables(NEEDED, OPTIONAL, label="Test", release="Test 2")
        return {name: source.fetch(table).to_dicts() for name, table in tables.items()}


def test_what_may_be_missing_is_null_or_left_out_and_read_where_it_is(tmp_path):
    found = opened(tmp_path, people="id,name\n1,a\n", words="word\nc\n")
    assert found == {"people": [{"id": 1, "name": "a", "note": None}]}
    found = opened(tmp_path, people="id,name,note\n1,a,b\n", words="id,word\n2,c\n")
    assert found == {
        "people": [{"id": 1, "name": "a", "note": "b"}],
        "words": [{"id": 2, "word": "c"}],
    }


def test_a_missing_table_and_a_missing_column_are_named(tmp_path):
    with pytest.raises(DataError, match="must hold the Test tables; missing: people"):
        opened(tmp_path, words="id,word\n2,c\n")
    with pytest.raises(DataError, match=r"must hold the Test 2 columns; missing: people\.name"):
        opened(tmp_path, people="id\n1\n")


def test_times_become_whole_seconds_and_the_rest_stays():
    frame = pl.DataFrame({"t": [datetime(1970, 1, 2), None], "n": [1.5, 2.5], "name": ["a", "b"]})
    assert in_seconds(frame).to_dict(as_series=False) == {
        "t": [86_400, None], "n": [1.5, 2.5], "name": ["a", "b"],
    }  # fmt: skip


WARD = Layout("Ward", {"visit": {"bed": INT}, "bed": {"bed": INT}})


@pytest.mark.parametrize(("visits", "refused"), [((1, 2, 2), False), ((1, 3), True)])
def test_a_row_without_its_owner_is_refused(tmp_path, visits, refused):
    pl.DataFrame({"bed": visits}).write_parquet(tmp_path / "visit.parquet")
    pl.DataFrame({"bed": [1, 2]}).write_parquet(tmp_path / "bed.parquet")
    rule = r"^beds: must have a row for every bed of visits\."
    expected = pytest.raises(DataError, match=rule) if refused else contextlib.nullcontext()
    with contextlib.closing(address.open_source(tmp_path, layouts=WARD)) as source, expected:
        rows, owners = (source.table(name, columns) for name, columns in WARD.tables.items())
        source.require_owners(rows, owners, key="bed", table="visits", owner="beds")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_refused_and_a_missing_one_is_not(bad):
    fine = pl.DataFrame({"stay": [1, 2], "n": [0.5, None], "m": [None, 1.0]})
    require_finite("visits", fine)
    require_finite("visits", fine.select("stay"))
    rule = r"^visits: n and m must be finite; 1 rows fail\."
    with pytest.raises(DataError, match=rule):
        require_finite("visits", fine.with_columns(n=pl.Series([0.5, bad])))


def test_of_several_layouts_all_is_looked_for_and_the_first_kind_of_a_column_counts():
    old = Layout("Old", {"people": {"id": "int64"}, "beds": {"n": "int64"}})
    new = Layout("New", {"people": {"id": "string", "age": "int64"}}, folders=("a", "b"))
    both = any_of((old, new))
    assert (both.label, both.folders) == ("Old or New", ("", "a", "b"))
    assert both.tables == {"people": {"id": "int64", "age": "int64"}, "beds": {"n": "int64"}}


def test_an_interrupt_that_an_engine_passes_on_is_one():
    """DuckDB turns Ctrl-C during a query into an error of its own."""
    with pytest.raises(KeyboardInterrupt), refusals("here"):
        raise RuntimeError("Query interrupted")
    with pytest.raises(RuntimeError, match="else"), refusals("here"):
        raise RuntimeError("something else")


FULL = "No space left on device S3CRET"


@pytest.mark.parametrize(
    ("complaint", "kind", "text"),
    [
        ("Out of Memory Error: failed S3CRET", ResourceError, "here: needs more memory"),
        (f"IO Error: {FULL}", ResourceError, "the disk for temporary files: is"),
        (f'IO Error: Could not write file "/scratch/work/a.tmp": {FULL}', ResourceError,
         "the disk of /scratch/work: is full. Free some space"),
        ("Conversion Error: S3CRET", DataError, "here: times and numbers must be written as such"),
        ("/a/b/X.csv.gz: gzip stream is broken", FileError, "X.csv.gz: must be a whole gzip file"),
        ("CSV Error on Line: 7 S3CRET", DataError, "here: must be a well-formed table; fails at"),
        ("CSV Error on Line: 7 Column c is being converted as type BIGINT from S3CRET", DataError,
         "here: column c must hold whole numbers; fails at line 7"),
        ("something else S3CRET", FileError, "here: cannot be read"),
    ],
)  # fmt: skip
def test_a_complaint_becomes_place_and_rule_without_the_value(complaint, kind, text):
    refusal = refusal_of("here", complaint)
    assert isinstance(refusal, kind)
    assert str(refusal).startswith(text)
    assert "S3CRET" not in str(refusal)


def test_an_error_of_the_engine_is_refused_and_a_bug_is_not():
    with pytest.raises(FileError, match=r"^here: cannot be read"), refusals("here"):
        raise duckdb.Error("S3CRET")
    with pytest.raises(ZeroDivisionError), refusals("here"):
        _ = 1 / 0


@pytest.mark.parametrize(
    ("place", "engine", "rule"),
    [
        ("nowhere", Engine.DUCKDB, "must be an existing folder or file"),
        ("nowhere", Engine.POSTGRES, "must be postgresql://"),
        ("postgresql://u:S3CRET@h:notaport/d", Engine.DUCKDB, "must be postgresql://user@host"),
        ("postgresql://[::1/x", Engine.DUCKDB, "must be postgresql://user@host"),
    ],
)
def test_an_address_that_is_none_is_refused(tmp_path, monkeypatch, place, engine, rule):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingError, match=f"^source: {rule}") as caught:
        open_source(place, engine=engine)
    assert "S3CRET" not in str(caught.value)


def test_what_was_read_stays_after_an_interrupt_and_goes_after_anything_else(hospital, tmp_path):
    out = tmp_path / "c"
    for error, left in ((KeyboardInterrupt, [".c.work"]), (ValueError, [])):
        with pytest.raises(error), resumable_source(hospital, out=out):
            raise error
        assert [entry.name for entry in tmp_path.iterdir()] == left
    with (
        pytest.raises(FileError, match="must be a folder that exists"),
        resumable_source(hospital, out=tmp_path / "none" / "c"),
    ):
        pass


def test_without_pyspark_the_refusal_says_what_to_install(tmp_path):
    if importlib.util.find_spec("pyspark") is not None:
        pytest.skip("pyspark is installed")
    for place, engine in ((str(tmp_path), Engine.SPARK), ("spark:mimic", Engine.DUCKDB)):
        with pytest.raises(SettingError, match=r"spark needs pyspark. .*etips\[spark\]"):
            open_source(place, engine=engine)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # sockets that Spark leaves to the collector
def test_a_place_that_is_no_folder_is_refused(tmp_path):
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'etips[spark]'")
    with pytest.raises(FileError, match="must be a folder of tables"):
        open_source(tmp_path / "nowhere", engine=Engine.SPARK)
