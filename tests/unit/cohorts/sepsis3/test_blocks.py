"""Four-hour rows block by block: the same in one block or in many, and kept."""

import contextlib
from dataclasses import replace
from types import SimpleNamespace

import duckdb
import polars as pl
import pytest
from happenings import events, stay

from etips.cohorts.engines.store import Store
from etips.cohorts.sepsis3 import blocks
from etips.cohorts.sepsis3.blocks import rows_of_both_windows
from etips.cohorts.sepsis3.rules import PAPER

PEOPLE = pl.concat([stay(stay=number) for number in (1, 2, 3)])


@pytest.fixture
def kept(tmp_path):
    connection = duckdb.connect()
    store = Store(connection, work=tmp_path, keep=None, memory_limit="200MB")
    with contextlib.closing(connection), contextlib.closing(store):
        yield store


def extraction(kept, size, asked):
    """One measurement a stay; notes which stays it is asked for."""
    happened = events(measured=[("HR", 0, 80.0)]).measurements

    def of(first, last):
        asked.append((first, last))
        owners = pl.DataFrame({"stay": list(range(first, last + 1))})
        measured = happened.drop("stay").join(owners, how="cross")
        return replace(events(), measurements=measured)

    rules = replace(PAPER, stays_per_block=size)
    return SimpleNamespace(rules=rules, kept=kept, events=of)


def test_blocks_change_nothing_and_are_asked_for_once(kept):
    asked, told = [], []
    whole, later = rows_of_both_windows(extraction(kept, 9, asked), PEOPLE)
    parts, rest = rows_of_both_windows(
        extraction(kept, 2, asked), PEOPLE, progress=lambda what, share: told.append(share)
    )
    assert whole.equals(parts)
    assert later().equals(rest())
    assert whole["icustayid"].to_list() == [1, 2, 3]
    assert (asked, told) == ([(1, 3), (1, 2), (3, 3)], [0.5, 1.0])


def test_a_block_that_was_kept_is_not_made_again(kept):
    first, again = [], []
    made, _ = rows_of_both_windows(extraction(kept, 2, first), PEOPLE)
    taken, _ = rows_of_both_windows(extraction(kept, 2, again), PEOPLE)
    assert made.equals(taken)
    assert (len(first), again) == (2, [])


def test_memory_is_asked_for_what_all_blocks_will_need(kept, monkeypatch):
    wanted = []
    monkeypatch.setattr(blocks, "require_memory", wanted.append)
    rows_of_both_windows(extraction(kept, 1, []), PEOPLE)
    assert wanted == [3, 4, 6]  # half of 6 likely ones, then what there is
