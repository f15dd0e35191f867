"""Tables of a source are opened once it is known that nothing is missing."""

import contextlib

import pytest

from etips.cohorts.engines.checked_tables import open_checked
from etips.cohorts.engines.duckdb_source import DuckDBSource
from etips.cohorts.engines.layouts import INT, TEXT, Layout, Layouts
from etips.errors import DataError

NEEDED = {"people": {"id": INT, "name": TEXT}}
OPTIONAL = {"people": {"note": TEXT}, "words": {"id": INT, "word": TEXT}}
LAYOUTS = Layouts((Layout("Test", {**NEEDED, "words": OPTIONAL["words"]}),))


def opened(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    with contextlib.closing(DuckDBSource(folder, LAYOUTS)) as source:
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
