"""Sections 7 and 12: timestamps to steps, and events of stays to rows, block by block."""

import contextlib
from dataclasses import replace

import duckdb
import numpy as np
import polars as pl
import pytest
from happenings import HOUR, T, events, stay
from hypothesis import given
from hypothesis import strategies as st

from etips.cohorts.engines.store import Scratch, Store
from etips.cohorts.sepsis3 import rows
from etips.cohorts.sepsis3.grid import INDEX, Grid, first_of_run, make_steps, steps_of
from etips.cohorts.sepsis3.rows import rows_of_both_windows, step_rows
from etips.cohorts.sepsis3.rules import CLEAN, PAPER
from etips.cohorts.sepsis3.variables import GRID, PASS_1_COLUMNS
from etips.errors import ResourceError

STEP = 4 * HOUR


def heart_rates(hours, values, stays=None, config=PAPER, **options):
    """Steps of stays whose heart rate is charted at given hours."""
    t = T + np.round(np.array(hours) * HOUR).astype(int)
    stay = np.ones(t.size, int) if stays is None else np.array(stays)
    grid = np.full((len(GRID), t.size), np.nan)
    grid[INDEX["HR"]] = values
    return make_steps(Grid(stay, t, first_of_run(stay), grid), config, **options)


def test_a_timestamp_on_an_edge_counts_in_both_steps_and_in_one_if_half_open():
    both = heart_rates([0, 4, 5], [60, 80, 100])
    np.testing.assert_array_equal(both.means[INDEX["HR"]], [70, 90])
    one = heart_rates([0, 4, 5], [60, 80, 100], config=CLEAN)
    np.testing.assert_array_equal(one.means[INDEX["HR"]], [60, 90])


def test_a_nine_hour_hole_leaves_a_gap_in_the_block_numbers():
    assert heart_rates([0, 1, 3.5, 12.5, 13], 80).number.tolist() == [0, 3]


@given(st.lists(st.integers(-STEP, 25 * STEP), max_size=30), st.booleans())
def test_steps_of_agrees_with_the_definition(offsets, half_open):
    expected = [
        (index, j)
        for index, offset in enumerate(offsets)
        for j in range(20)
        if j * STEP <= offset < (j + 1) * STEP + (not half_open)
    ]
    rules = replace(PAPER, half_open_steps=half_open)
    index, number = steps_of(np.array(offsets, int), rules)
    assert sorted(zip(index.tolist(), number.tolist(), strict=True)) == expected


def hearts(*hours):
    return events(measured=[("HR", hour, 80.0 + hour) for hour in hours])


def test_rows_begin_at_the_first_measurement_of_the_window_or_at_its_edge_in_clean():
    found = step_rows(hearts(-60, -50, -45), stay(), PAPER, second_pass=False)
    assert tuple(found.columns[:-1]) == PASS_1_COLUMNS
    assert found["charttime"].to_list() == [T - 50 * HOUR, T - 46 * HOUR]
    clean = step_rows(hearts(-25, -23, 1), stay(), CLEAN, second_pass=False)
    assert clean["charttime"].to_list() == [T - 24 * HOUR, T]
    assert clean["bloc"].to_list() == [1, 7]


def test_only_measurements_in_the_icu_open_a_step_in_clean():
    icu = stay(icu_in=T)
    rules = replace(PAPER, open_steps_in_icu_only=True)
    assert step_rows(hearts(-5, 1), icu, PAPER, second_pass=False).height == 2
    assert step_rows(hearts(-5, 1), icu, rules, second_pass=False)["bloc"].to_list() == [2]


PEOPLE = pl.concat([stay(stay=number) for number in (1, 2, 3)])


@pytest.fixture
def kept(tmp_path):
    connection = duckdb.connect()
    store = Store(connection, Scratch(tmp_path, memory_limit="200MB"))
    with contextlib.closing(connection), contextlib.closing(store):
        yield store


def in_blocks(kept, size, asked, **options):
    """Rows of one measurement a stay; notes which stays are asked for."""

    def read(first, last):
        asked.append((first, last))
        one = events(measured=[("HR", 0, 80.0)])
        owners = pl.DataFrame({"stay": list(range(first, last + 1))})
        measured = one.measurements.drop("stay").join(owners, how="cross")
        return replace(one, measurements=measured)

    rules = replace(PAPER, stays_per_block=size)
    return rows_of_both_windows(read, PEOPLE, rules, kept, **options)


def test_blocks_change_nothing_are_asked_for_once_and_not_made_again_once_kept(kept):
    asked, shares, again = [], [], []
    whole, later = in_blocks(kept, 9, asked)
    parts, rest = in_blocks(kept, 2, asked, progress=lambda what, share: shares.append(share))
    assert whole.equals(parts)
    assert later().equals(rest())
    assert whole["icustayid"].to_list() == [1, 2, 3]
    assert (asked, shares) == ([(1, 3), (1, 2), (3, 3)], [0.5, 1.0])
    assert in_blocks(kept, 2, again)[0].equals(whole)
    assert again == []


def test_memory_is_asked_for_what_all_blocks_will_need(kept, monkeypatch):
    wanted = []
    monkeypatch.setattr(rows, "require_memory", wanted.append)
    in_blocks(kept, 1, [])
    assert wanted == [3, 4, 6]  # half of 6 likely ones, then what there is


def test_what_would_not_fit_is_refused_before_it_is_begun(monkeypatch):
    gib = 2**30
    monkeypatch.setattr(rows, "free_memory", lambda: gib)
    rows.require_memory(gib // rows.BYTES_PER_ROW)
    with pytest.raises(ResourceError, match=r"^cohort: needs about 2\.0 GiB .* 1\.0 GiB are free"):
        rows.require_memory(2 * gib // rows.BYTES_PER_ROW)
    monkeypatch.setattr(rows, "free_memory", lambda: None)  # a machine that does not know
    rows.require_memory(10**12)
