"""Frames become Arrow tables, or are refused with every column at fault."""

import pandas as pd
import pytest

from etips.data.tables.data_frames import require_distinct, to_arrow
from etips.errors import DataError


def test_all_columns_of_mixed_types_are_told_at_once():
    frame = pd.DataFrame({"a": [1, "x"], "b": [1, 2], "c": [{1}, 2]}, dtype=object)
    with pytest.raises(
        DataError, match=r"^2 faults: \(1\) table, columns a, c: must be of one type"
    ):
        to_arrow(frame)


def test_an_index_is_no_column():
    frame = pd.DataFrame({"a": [1, 2]}, index=["p", "q"])
    assert to_arrow(frame).column_names == ["a"]


def test_names_that_repeat_are_named():
    with pytest.raises(DataError, match=r'^table: .* distinct; "a", "b" occurs more than once\.'):
        require_distinct("table", ["a", "b", "a", "b", "c"])
