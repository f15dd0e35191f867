"""A long table in the order of stay and step, whatever order its rows came in."""

import numpy as np
import pytest
from strategies import small_table

from etips.data.intake.request import Request
from etips.data.tables.sorting import read_sorted
from etips.data.tables.sources import open_source
from etips.data.tables.table_layout import lay_out
from etips.errors import DataError

ROLES = {"stay": "s", "step": "t", "action": ("a",), "loss": "l"}


def sorted_table(table):
    source = open_source(table)
    return read_sorted(source, lay_out(source, Request(**ROLES)))


def test_a_table_in_order_is_left_alone():
    table = sorted_table(small_table())
    assert table.rows is None
    assert table.stays.tolist() == [1, 2]
    assert table.offsets.tolist() == [0, 3, 6]
    assert table.starts.tolist() == [0, 0, 0, 3, 3, 3]
    assert table.matrices["sequence"][:, 0].tolist() == [1, 2, 3, 4, 5, 6]


def test_rows_in_any_order_come_out_alike_and_know_where_they_stood():
    order = np.random.default_rng(2).permutation(6)
    plain, mixed = sorted_table(small_table()), sorted_table(small_table().take(order))
    assert (order[mixed.rows] == np.arange(6)).all()
    assert (mixed.matrices["sequence"] == plain.matrices["sequence"]).all()
    assert mixed.number("loss").tolist() == plain.number("loss").tolist()
    assert mixed.step.tolist() == plain.step.tolist()
    assert mixed.label("stay")[1].tolist() == [0, 0, 0, 1, 1, 1]


def test_a_step_that_occurs_twice_is_refused_by_the_row_the_user_gave_it():
    twice = small_table(t=[0, 1, 2, 0, 1, 1])
    with pytest.raises(DataError, match=r"^table, column t: must not occur twice in a stay; 1 of"):
        sorted_table(twice)


def test_nan_is_told_from_nothing():
    table = sorted_table(small_table(l=[0.1, None, float("nan"), 0.4, 0.5, 0.6]))
    assert np.isnan(table.number("loss")).tolist() == [False, True, True, False, False, False]
    assert table.is_nan("loss").tolist() == [False, False, True, False, False, False]


def test_a_category_of_free_text_is_refused():
    n = 1001
    table = small_table(
        s=[1] * n, t=range(n), a=[0] * n, l=[0.0] * n, x=[f"w{i}" for i in range(n)]
    )
    source = open_source(table)
    layout = lay_out(source, Request(**ROLES, categorical=("x",)))
    with pytest.raises(DataError, match=r"^table, column x: must have at most 1000 levels\.$"):
        read_sorted(source, layout).features("sequence", {})
