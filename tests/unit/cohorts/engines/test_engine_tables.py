"""Tables as the reader wants them: checked and cast, times as seconds, bad rows refused."""

import contextlib
import math
from datetime import datetime

import ibis
import polars as pl
import pytest

from etips.cohorts.engines.address import open_source
from etips.cohorts.engines.checked_tables import (
    in_seconds,
    open_checked,
    require_finite,
    require_owners,
    require_some,
)
from etips.cohorts.engines.duckdb_source import DuckDBSource
from etips.cohorts.engines.layouts import INT, TEXT, Layout, any_of, typed
from etips.errors import DataError


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


def test_a_column_of_lists_is_refused_by_its_name():
    with pytest.raises(DataError, match=r"^here: column a must hold one value a row"):
        cast("int64", [[1], [2]])


NEEDED = {"people": {"id": INT, "name": TEXT}}
OPTIONAL = {"people": {"note": TEXT}, "words": {"id": INT, "word": TEXT}}
LAYOUT = Layout("Test", {**NEEDED, "words": OPTIONAL["words"]})


def opened(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    with contextlib.closing(DuckDBSource(folder, LAYOUT)) as source:
        tables = open_checked(source, NEEDED, OPTIONAL, label="Test", version="Test 2")
        return {name: source.fetch(table).to_dicts() for name, table in tables.items()}


def test_a_column_of_text_that_may_be_missing_is_null_and_a_table_is_left_out(tmp_path):
    assert opened(tmp_path, people="id,name\n1,a\n") == {
        "people": [{"id": 1, "name": "a", "note": None}]
    }


def test_what_is_there_is_read(tmp_path):
    found = opened(tmp_path, people="id,name,note\n1,a,b\n", words="id,word\n2,c\n")
    assert found == {
        "people": [{"id": 1, "name": "a", "note": "b"}],
        "words": [{"id": 2, "word": "c"}],
    }


def test_an_optional_table_without_its_numbers_is_left_out(tmp_path):
    assert set(opened(tmp_path, people="id,name\n1,a\n", words="word\nc\n")) == {"people"}


def test_a_missing_table_and_a_missing_column_are_named(tmp_path):
    with pytest.raises(DataError, match="must hold the Test tables; missing: people"):
        opened(tmp_path, words="id,word\n2,c\n")
    with pytest.raises(DataError, match=r"must hold the Test 2 columns; missing: people\.name"):
        opened(tmp_path, people="id\n1\n")


WARD = Layout("Ward", {"visit": {"bed": INT}, "bed": {"bed": INT}})


def test_times_become_whole_seconds_and_the_rest_stays():
    frame = pl.DataFrame({"t": [datetime(1970, 1, 2), None], "n": [1.5, 2.5], "name": ["a", "b"]})
    assert in_seconds(frame).to_dict(as_series=False) == {
        "t": [86_400, None], "n": [1.5, 2.5], "name": ["a", "b"],
    }  # fmt: skip


@pytest.mark.parametrize(("visits", "refused"), [((1, 2, 2), False), ((1, 3), True)])
def test_a_row_without_its_owner_is_refused(tmp_path, visits, refused):
    pl.DataFrame({"bed": visits}).write_parquet(tmp_path / "visit.parquet")
    pl.DataFrame({"bed": [1, 2]}).write_parquet(tmp_path / "bed.parquet")
    rule = r"^beds: must have a row for every bed of visits\."
    expected = pytest.raises(DataError, match=rule) if refused else contextlib.nullcontext()
    with contextlib.closing(open_source(tmp_path, layouts=WARD)) as source, expected:
        rows, owners = (source.table(name, columns) for name, columns in WARD.tables.items())
        require_owners(source, rows, owners, key="bed", table="visits", owner="beds")


def test_a_table_without_a_row_is_refused():
    require_some("visits", 1)
    with pytest.raises(DataError, match=r"^visits: must hold rows that can be used"):
        require_some("visits", 0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_refused_and_a_missing_one_is_not(bad):
    fine = pl.DataFrame({"stay": [1, 2], "n": [0.5, None], "m": [None, 1.0]})
    require_finite("visits", fine)
    require_finite("visits", fine.select("stay"))
    rule = r"^visits: n and m must be finite; 1 rows fail\."
    with pytest.raises(DataError, match=rule):
        require_finite("visits", fine.with_columns(n=pl.Series([0.5, bad])))


OLD = Layout("Old", {"people": {"id": "int64"}, "beds": {"n": "int64"}}, signs=frozenset({"x"}))
NEW = Layout(
    "New",
    {"people": {"id": "string", "age": "int64"}},
    folders=("a", "b"),
)
BOTH = any_of((OLD, NEW))


def test_tables_folders_and_labels_of_all_are_looked_for():
    assert BOTH.label == "Old or New"
    assert BOTH.names == {"people", "beds", "x"}
    assert BOTH.folders == ("", "a", "b")


def test_a_column_has_the_kind_of_the_likeliest_layout_that_has_it():
    assert BOTH.tables["people"] == {"id": "int64", "age": "int64"}
