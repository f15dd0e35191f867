"""Frames become Arrow tables, or are refused with every column at fault."""

import re

import pandas as pd
import pytest

from etips.data.tables.data_frames import index_names, require_distinct, to_arrow
from etips.data.tables.reading import read_table
from etips.errors import DataError
from etips.notes import collecting_notes


def test_all_columns_of_mixed_types_are_told_at_once():
    frame = pd.DataFrame({"a": [1, "x"], "b": [1, 2], "c": [{1}, 2]}, dtype=object)
    with pytest.raises(
        DataError, match=r"^2 faults: \(1\) table, columns a, c: must be of one type"
    ):
        to_arrow(frame)


def test_an_index_is_no_column():
    frame = pd.DataFrame({"a": [1, 2]}, index=["p", "q"])
    assert to_arrow(frame).column_names == ["a"]


def test_a_column_that_stands_in_the_index_is_told():
    frame = pd.DataFrame({"stay": [1, 2], "a": [0, 1], "y": [0, 1], "x": [3, 4]}).set_index("stay")
    assert index_names(to_arrow(frame).schema) == ("stay",)
    remedy = r"column stay: is missing .* It is the index of the frame: pass frame\.reset_index\(\)"
    with pytest.raises(DataError, match=remedy):
        read_table(frame, stay="stay", action="a", loss="y")
    with collecting_notes() as notes:
        read_table(frame, action="a", loss="y")
    assert notes[0] == (
        "the index of the frame (stay) is not read; frame.reset_index() makes columns"
    )


def test_names_that_repeat_are_named():
    with pytest.raises(DataError, match=r'^table: .* distinct; "a", "b" occurs more than once\.'):
        require_distinct("table", ["a", "b", "a", "b", "c"])


def test_names_in_several_levels_are_refused_with_the_line_that_joins_them():
    frame = pd.DataFrame([[1, 2.0]], columns=pd.MultiIndex.from_tuples([("id", 7), ("hr", "max")]))
    message = r"^table: must have one name a column, not several levels\. Join them: (.*)\.$"
    with pytest.raises(DataError, match=message) as caught:
        to_arrow(frame)
    joined = re.match(message, str(caught.value))[1].removeprefix("frame.columns = ")
    frame.columns = eval(joined, {"frame": frame})
    assert to_arrow(frame).column_names == ["id_7", "hr_max"]
