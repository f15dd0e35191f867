"""Cells that somebody said mean "missing"."""

import pyarrow as pa

from etips.data.tables.missing_marks import without_marks


def test_texts_and_numbers_are_emptied_in_every_column():
    table = pa.table(
        {
            "text": ["a", " Not Done", "999", None],
            "whole": [1, 999, 3, None],
            "part": [1.5, 999.0, -9.0, None],
            "flag": [True, False, True, None],
            "level": pa.array(["not done", "x", "x", None]).dictionary_encode(),
        }
    )
    found = without_marks(table, ["not done", "999", "-9"]).to_pydict()
    assert found == {
        "text": ["a", None, None, None],
        "whole": [1, None, 3, None],
        "part": [1.5, None, None, None],
        "flag": [True, False, True, None],
        "level": [None, "x", "x", None],
    }


def test_a_mark_of_one_column_is_left_in_others():
    table = pa.table({"a": [1, 9], "b": [9, 2], "c": ["x=9", "9"]})
    found = without_marks(table, ["a=9", "x=9"]).to_pydict()
    assert found == {"a": [1, None], "b": [9, 2], "c": [None, "9"]}


def test_nothing_changes_without_marks_or_where_there_are_none():
    table = pa.table({"x": [1, 2], "level": pa.array(["a", "b"]).dictionary_encode()})
    assert without_marks(table, []) is table
    assert without_marks(table, ["9"]).schema == table.schema
