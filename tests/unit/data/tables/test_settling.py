"""Columns of text get their types and names, and what can be doubted is told."""

import pyarrow as pa
import pytest

from etips.data.tables.settling import name_columns, settle
from etips.data.tables.text_cells import Habits
from etips.errors import DataError
from etips.notes import collecting_notes


def test_columns_without_name_and_content_are_left_out():
    table = pa.Table.from_arrays(
        [pa.array([0, 1]), pa.array([5, 6]), pa.array([None, None])], ["", " x ", ""]
    )
    with collecting_notes() as notes:
        assert name_columns("a.csv", table).column_names == ["x"]
    assert notes == ["a.csv: 2 columns without a name were left out"]


def test_a_column_with_content_and_no_name_is_refused_by_its_number():
    table = pa.Table.from_arrays([pa.array([1, 2]), pa.array([5, 6])], ["a", ""])
    with pytest.raises(DataError, match=r"^a\.csv: column 2 has no name\. Give"):
        name_columns("a.csv", table)


def test_names_that_differ_by_spaces_alone_are_refused():
    table = pa.Table.from_arrays([pa.array([1]), pa.array([5])], ["a", "a "])
    with pytest.raises(DataError, match=r'must be distinct; "a" occurs'):
        name_columns("a.csv", table)


def test_what_one_column_leaves_open_another_settles():
    table = pa.table({"a": ["1,234", "2"], "b": ["36,6", "-"], "c": ["x ", "y"]})
    with collecting_notes() as notes:
        found = settle("a.csv", table, Habits(), seen=(), usual=None)
    assert found.table.to_pydict() == {"a": [1.234, 2.0], "b": [36.6, None], "c": ["x", "y"]}
    assert found.faults == {}
    assert notes == [
        "a.csv: decimal commas in columns a, b",
        'a.csv: "-" was read as missing in column b',
    ]


def test_columns_that_disagree_settle_nothing():
    table = pa.table({"a": ["1,234", "2"], "b": ["36,6", "1,5"]})
    found = settle("a.csv", table, Habits(), seen=(".",), usual=None)
    assert list(found.faults) == ["a"]
    assert found.table.column("b").to_pylist() == [36.6, 1.5]


def test_whole_numbers_that_look_like_dates_are_told():
    table = pa.table({"seen": [20240131, 20231201], "id": [20240199, 20230001]})
    with collecting_notes() as notes:
        settle("a.csv", table, Habits(), seen=(), usual=None)
    assert notes == ["a.csv: column seen looks like dates; they are read if written 2024-12-31"]


def test_whole_numbers_that_look_like_dates_with_a_time_are_told():
    """HL7 writes times that way; as numbers, the hours between them would be nonsense."""
    columns = {"minute": [202401312359, 202312010000], "second": [20240131235959, 20231201000000]}
    table = pa.table({**columns, "unix": [1_700_000_000, 1_700_000_600]})
    with collecting_notes() as notes:
        settle("a.csv", table, Habits(), seen=(), usual=".")
    assert [line.split()[2] for line in notes if "looks like dates" in line] == [*columns]
