"""Which part each column of a long table plays."""

import pyarrow as pa
import pytest
from strategies import read_small, small_table

from etips.data.intake.request import Request
from etips.data.tables.sources import open_source
from etips.data.tables.table_layout import lay_out
from etips.errors import DataError, SettingError

ROLES = {"stay": "s", "step": "t", "action": "a", "loss": "l", "group": None}


def layout_of(table, *, roles=ROLES, **more):
    return lay_out(open_source(table), Request.of(**roles, **more))


def test_what_has_no_part_is_sequential_in_the_order_of_the_table():
    layout = layout_of(small_table(z=[0] * 6, age=[60] * 6), static=("age",))
    assert layout.sequence == ("x", "z")
    assert layout.static == ("age",)
    assert layout.present == {"stay", "step", "action", "loss"}
    assert layout.role_columns() == {"stay": "s", "step": "t", "loss": "l"}
    assert layout.treatment == ("a",)
    assert layout.numeric(layout.sequence) == ["x", "z"]


def test_categories_are_those_named_and_those_that_their_type_tells():
    words = pa.array(["a", "b"] * 3)
    table = small_table(c=words.dictionary_encode(), d=words)
    assert layout_of(table, categorical=("d",)).categorical == {"c", "d"}
    assert layout_of(table, categorical=("x",)).categorical == {"c", "d", "x"}
    assert layout_of(table, drop=("c", "d")).categorical == set()


def test_a_role_that_the_table_lacks_gets_a_name_that_is_not_taken():
    layout = layout_of(small_table(group=[1.0] * 6))
    assert layout.sequence == ("x", "group")
    assert layout.roles.group == "group_"


def test_a_column_that_is_missing_or_plays_two_parts_is_refused_by_name():
    with pytest.raises(DataError, match=r"^table, column no: is missing from the table\.$"):
        layout_of(small_table(), static=("no",))
    with pytest.raises(SettingError, match=r"^column s: must play one part only\.$"):
        layout_of(small_table(), roles={**ROLES, "group": "s"})


def test_a_schema_takes_its_own_columns_and_leaves_others_alone():
    schema = read_small(small_table(c=["a", "b"] * 3), categorical=["c"]).schema
    table = small_table(c=["b", "a"] * 3, more=["text"] * 6)
    layout = layout_of(table, like=schema)
    assert set(layout.sequence) == {"x", "c"}
    assert layout.categorical == {"c"}
    with pytest.raises(DataError, match=r"^table, column c: is missing from the table\."):
        layout_of(small_table(), like=schema)


def test_an_empty_column_that_is_called_like_a_mark_is_none():
    table = small_table(x=[1.0, None, 3.0, 4.0, 5.0, 6.0], x_missing=pa.nulls(6))
    data = read_small(table)
    assert data.schema.sequence == ("x", "x_missing")
    assert layout_of(table, like=data.schema).sequence == ("x",)
