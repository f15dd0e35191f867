"""Rows at any time put into steps."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from etips.data import read_table, write_table
from etips.data.intake.step_grid import parse_every
from etips.errors import DataError, SettingError
from etips.notes import collecting_notes

NAN = float("nan")
ROLES = {"stay": "s", "step": "t", "action": "a", "loss": "l"}


def at(*hours):
    start = datetime.datetime(2024, 1, 1, 22)
    return [start + datetime.timedelta(hours=hour) for hour in hours]


def log(**more):
    """Stay 1 has rows at 0, 1, 3.9, 4, 13 hours; stay 2 at 0 and 1."""
    columns = {
        "s": [1, 1, 1, 1, 1, 2, 2],
        "t": at(0, 1, 3.9, 4, 13, 100, 101),
        "a": [0, None, 1, 1, 0, None, 1],
        "l": [None, 0.2, None, 0.4, 0.5, 0.6, 0.7],
        "x": [1.0, 2.0, None, 4.0, 5.0, None, 7.0],
    }
    return pa.table({**columns, **more})


def read(table=None, **more):
    return read_table(log() if table is None else table, **{**ROLES, "every": "4h", **more})


@pytest.mark.parametrize(
    ("text", "length", "of_time"),
    [
        ("4h", 4 * 3600, True),
        ("30min", 1800, True),
        (" 1 day ", 86400, True),
        ("1d", 86400, True),
        ("2 Hours", 7200, True),
        ("90s", 90, True),
        ("day", 86400, True),
        ("0.5h", 1800, True),
        ("4", 4, False),
    ],
)
def test_lengths_are_read_as_people_write_them(text, length, of_time):
    assert parse_every(text) == (length, of_time)


@pytest.mark.parametrize("text", ["", "four hours", "0h", "-4h", "4 parsecs", "h4", "4h30"])
def test_what_is_no_length_is_refused(text):
    with pytest.raises(SettingError, match=r"^every: must be a length of time\. Such as 4h"):
        parse_every(text)


def test_rows_are_put_into_steps_counted_from_the_first_of_the_stay():
    data = read()
    assert data.offsets.tolist() == [0, 4, 5]
    assert data.step.tolist() == [0, 1, 2, 3, 0]
    assert data.action.tolist() == [1, 1, -1, 0, 1]
    assert np.array_equal(data.loss, [0.2, 0.4, NAN, 0.5, 0.7], equal_nan=True)
    assert data.schema.sequence == ("x", "x_missing")
    assert data.sequence.tolist() == [[2, 0], [4, 0], [4, 1], [5, 0], [7, 0]]
    assert data.decisions().step.tolist() == [1, 3]  # the empty step is none
    assert data.schema.recipe.every.every == "4h"
    assert data.schema.recipe.elapsed is None


@pytest.mark.parametrize(
    ("how", "values"),
    [
        ("first", [1, 4, 5, 7]),
        ("last", [2, 4, 5, 7]),
        ("mean", [1.5, 4, 5, 7]),
        ("sum", [3, 4, 5, 7]),
        ("max", [2, 4, 5, 7]),
        ("min", [1, 4, 5, 7]),
    ],
)
def test_a_column_is_combined_as_asked(how, values):
    data = read(combine={"x": how})
    assert data.sequence[[0, 1, 3, 4], 0].tolist() == values
    wanted = {} if how == "last" else {"x": how}
    assert data.schema.recipe.every.combine == wanted


def test_rows_may_come_in_any_order_and_at_the_same_time():
    table = log()
    mixed = table.take([6, 3, 0, 5, 2, 4, 1])
    assert read(mixed).sequence.tolist() == read().sequence.tolist()
    same = read(log(t=at(0, 0, 0, 4, 13, 100, 100)), combine={"x": "sum"})
    assert same.sequence[:, 0].tolist() == [3, 4, 4, 5, 7]


def test_what_does_not_change_is_there_in_empty_steps_too():
    table = log(age=[50] * 5 + [60] * 2, who=["a"] * 5 + ["b"] * 2, ok=[True] * 7)
    table = table.append_column("ward", pa.array(["er", "er", "icu", None, "er", "er", "icu"]))
    data = read(table, static=["age"], group="who", eligible="ok", missing="carry")
    assert data.static.tolist() == [[50], [60]]
    assert data.group.tolist() == ["a", "b"]
    assert data.eligible.tolist() == [True, True, False, True, True]
    names = data.schema.sequence
    assert data.sequence[:, names.index("ward=icu")].tolist() == [1, 1, 1, 0, 1]
    assert data.sequence[:, names.index("ward_missing")].tolist() == [0, 1, 1, 0, 0]


def test_steps_of_numbers_have_no_unit():
    table = log(t=[0, 1, 3.9, 4, 13, 100, 101])
    assert read(table, every="4").sequence.tolist() == read().sequence.tolist()
    with pytest.raises(SettingError, match=r"^every: must have a unit where the steps are times"):
        read(table)
    with pytest.raises(SettingError, match=r"^every: must have a unit where the steps are times"):
        read(every="4")


def test_a_later_table_is_put_into_the_same_steps():
    data = read(combine={"x": "mean"})
    again = read_table(log(), like=data.schema)
    assert np.array_equal(again.sequence, data.sequence)
    assert again.action.tolist() == data.action.tolist()


def test_a_written_table_is_in_steps_already(tmp_path):
    data = read()
    write_table(data, tmp_path / "t.parquet")
    again = read_table(tmp_path / "t.parquet", like=data.schema)
    assert np.array_equal(again.sequence, data.sequence)
    with pytest.raises(DataError, match=r"^table, column t: must hold times, or steps of 4h coun"):
        read_table(log(t=[0, 4, 8, 12, 16, 0, 4]), like=data.schema)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"combine": {"x": "median"}}, r"^combine x: must be one of last, first, mean, sum"),
        ({"combine": {"no": "sum"}}, r"^combine no: is no sequential feature and plays no part"),
        ({"every": None, "combine": {"x": "sum"}}, r"^combine: needs every\. Such as --every 4h"),
        ({"step": None, "stay": None, "combine": {}}, r"^every: needs step\."),
    ],
)
def test_what_cannot_be_combined_is_refused(more, message):
    with pytest.raises(SettingError, match=message):
        read(**more)


def test_a_wrong_century_is_refused_before_it_takes_all_memory():
    with pytest.raises(DataError, match=r"^table, column t: would make far more steps than rows\."):
        read(log(t=[*at(0, 1, 3.9, 4), datetime.datetime(2124, 1, 1), *at(100, 101)]))


def test_what_became_of_the_rows_is_told():
    with collecting_notes() as notes:
        read(combine={"x": "sum"})
    told = "every 4h: 7 rows make 5 steps, of which the last value counts, but x (sum); under 11 "
    assert notes[0] == told + "steps have no row and are no decisions"


def test_steps_of_different_actions_are_told():
    n = 60
    hours = at(*[2 * i for i in range(n)])
    table = pa.table({"s": [1] * n, "t": hours, "a": ["p", "q"] * (n // 2), "l": [0.0] * n})
    with collecting_notes() as notes:
        read(table)
    assert "30 steps hold different actions, of which the last counts; " in notes[1]
    with collecting_notes() as notes:
        read(table.set_column(2, "a", [["p", None, "q", "q"] * (n // 4)]))
    assert not any("different actions" in text for text in notes)


def test_doses_of_a_step_add_up_and_of_rates_the_largest_counts():
    """Two rows of 0.1 mcg/kg/min are not 0.2."""
    n = 40
    columns = {
        "s": np.repeat(range(n), 4),
        "t": at(0, 1, 4, 5) * n,
        "fluid_ml": [100, 200, 0, 50] * n,
        "vaso [mcg/kg/min]": [0.1, 0.3, 0.0, 0.2] * n,
        "l": [0, 1] * 2 * n,
    }
    roles = {"stay": "s", "step": "t", "loss": "l", "every": "4h", "lag": 0, "bins": 3}
    data = read_table(pa.table(columns), dose=["fluid_ml", "vaso [mcg/kg/min]"], **roles)
    assert [own.medians[-1] for own in data.schema.recipe.doses] == [300, pytest.approx(0.3)]
    chosen = {"combine": {"vaso [mcg/kg/min]": "sum"}}
    data = read_table(pa.table(columns), dose="vaso [mcg/kg/min]", **roles, **chosen)
    assert data.schema.recipe.doses[0].medians[-1] == pytest.approx(0.4)
