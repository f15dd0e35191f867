"""The features of tables as they are."""

import datetime

import numpy as np
import pyarrow as pa
import pytest
from strategies import read_small, small_table

import etips
from etips.data import read_table, write_table
from etips.errors import DataError
from etips.notes import collecting_notes

NAN = float("nan")


def times(*minutes):
    start = datetime.datetime(2024, 1, 1)
    return [start + datetime.timedelta(minutes=minute) for minute in minutes]


def test_one_row_a_patient_needs_neither_stay_nor_step():
    table = pa.table(
        {"a": [0, 1, 1], "l": [1.0, 0.0, 1.0], "age": [50, 60, 70], "sex": list("fmf")}
    )
    data = read_table(table, action="a", loss="l")
    assert (data.n_stays, data.n_steps, data.n_decisions, data.lag) == (3, 3, 3, 0)
    assert data.schema.sequence == ("age", "sex=f", "sex=m")
    assert data.schema.recipe.numbered == ("stay", "step")
    again = read_table(table.slice(0, 2), like=data.schema)
    assert again.sequence.tolist() == data.sequence[:2].tolist()


def test_a_stay_of_one_row_needs_no_step():
    table = pa.table({"id": ["b", "a"], "a": [0, 1], "l": [1.0, 0.0], "x": [1, 2]})
    data = read_table(table, stay="id", action="a", loss="l")
    assert (data.stay.tolist(), data.sequence.ravel().tolist(), data.lag) == (["a", "b"], [2, 1], 0)
    message = r"^table, column s: must not occur twice where no step is named; 4 of 6 rows fail"
    with pytest.raises(DataError, match=message + r".*--step \(step=\)\.$"):
        read_small(step=None)


def test_times_are_hours_since_the_first_row_of_the_stay():
    table = small_table(t=times(0, 30, 90, 600, 660, 720), when=times(0, 60, 120, 540, 660, 780))
    data = read_small(table)
    assert data.schema.sequence == ("x", "when", "hours_since_last")
    assert data.sequence[:, 1].tolist() == [0, 1, 2, -1, 1, 3]
    assert data.sequence[:, 2].tolist() == [0, 0.5, 1, 0, 1, 1]


def test_times_count_from_their_own_first_where_steps_are_numbers():
    when = times(0, 60, 120, 540, 660, 780)
    data = read_small(small_table(when=[None, *when[1:]]))
    expected = [NAN, 0, 1, 0, 2, 4]
    assert np.array_equal(data.sequence[:, 1], expected, equal_nan=True)
    assert data.schema.sequence == ("x", "when", "when_missing")


def test_a_date_that_does_not_change_is_years():
    born = [datetime.date(1950, 1, 1)] * 3 + [datetime.date(2000, 1, 1)] * 3
    data = read_small(small_table(born=born), static=["born"])
    assert data.static.ravel() == pytest.approx([-50, 0], abs=0.01)
    assert data.schema.recipe.kinds["born"].kind == "years"


def test_a_date_of_birth_is_an_age_where_another_time_says_when():
    born = [datetime.date(1950, 1, 1)] * 3 + [datetime.date(2000, 1, 1)] * 3
    table = small_table(t=times(0, 30, 90, 600, 660, 720), dob=born)
    with collecting_notes() as notes:
        data = read_small(table, static=["dob"])
    assert data.static.ravel() == pytest.approx([74, 24], abs=0.01)
    assert notes[0] == "column dob is read as age at the first row of the stay, in years"
    days = ["2001-07-01", "2002-07-01", "2003-07-01"]
    plain = pa.table({"birth_date": ["1941-07-01"] * 3, "admitted": days, "a": [0, 1, 1]})
    patients = read_table(plain, action="a", drop=["admitted"])
    assert patients.sequence.ravel() == pytest.approx([60, 61, 62], abs=0.01)
    again = read_table(plain, like=patients.schema)
    assert again.sequence.tolist() == patients.sequence.tolist()
    with pytest.raises(DataError, match=r"^table, column admitted: is missing from the table\.$"):
        read_table(plain.drop_columns(["admitted"]), like=patients.schema)


def test_equal_steps_have_no_elapsed_time_and_unequal_ones_have():
    n = 40
    even = small_table(s=[1] * n, t=[4 * i for i in range(n)], a=[0] * n, l=[0.0] * n, x=[0.0] * n)
    assert read_small(even).schema.recipe.elapsed is None
    odd = even.set_column(1, "t", [[i * i + 3 * i for i in range(n)]])
    with collecting_notes() as notes:
        data = read_small(odd)
    assert data.schema.sequence == ("x", "since_last")
    assert data.sequence[:4, 1].tolist() == [0, 4, 6, 8]
    assert notes[0].startswith("rows come at unequal times: feature since_last holds the time")


def test_missing_values_are_carried_and_told_by_default():
    with collecting_notes() as notes:
        data = read_small(small_table(x=[None, 2.0, None, 4.0, None, 6.0]))
    assert data.schema.sequence == ("x", "x_missing")
    assert notes[0].startswith("under 11 missing values in 1 of 1 columns are carried forward,")


def test_a_column_without_any_value_is_left_out_or_refused():
    table = small_table(y=pa.array([None] * 6), z=[""] * 6, c=[NAN] * 6)
    with collecting_notes() as notes:
        data = read_small(table)
    assert data.schema.sequence == ("x",)
    assert set(data.schema.recipe.kinds) == {"x"}
    assert notes[0] == "columns y, z, c hold no value at all and are left out"
    with pytest.raises(
        DataError, match=r"^3 faults: \(1\) table, columns y \(6 of 6 rows, first 0\), z "
    ):
        read_small(table, missing="refuse")


def test_a_category_without_any_value_is_left_out():
    table = small_table(c=pa.array([None] * 6, pa.string()).dictionary_encode())
    assert read_small(table).schema.sequence == ("x",)


def test_written_tables_come_back_whatever_kind_their_columns_had(tmp_path):
    table = small_table(
        t=times(0, 30, 90, 600, 660, 900),
        flag=["y", "n", None, "y", "y", "n"],
        when=times(0, 60, 120, 540, 660, 780),
        ward=["a", "b", None, "a", "a", "b"],
        born=["1950-01-01"] * 6,
    )
    data = read_small(table, static=["born"])
    for name in ("t.parquet", "t.csv"):
        write_table(data, tmp_path / name)
        again = read_table(tmp_path / name, like=data.schema)
        assert again.schema == data.schema
        assert np.array_equal(again.sequence, data.sequence, equal_nan=True)
        assert np.array_equal(again.static, data.static)


def test_a_saved_folder_knows_how_its_table_was_read(tmp_path):
    data = read_small(small_table(flag=["y", "n"] * 3))
    data.save(tmp_path / "log")
    assert etips.load(tmp_path / "log").schema == data.schema


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ({"features": ["R*"]}, ("RA", "RB")),
        ({"features": ["x", "RB"]}, ("x", "RB")),
        ({"drop": ["R?", "other"]}, ("x",)),
        ({"features": ["*"], "drop": ["RA"], "static": ["ot*"]}, ("x", "RB")),
    ],
)
def test_features_are_chosen_by_name_and_pattern(more, names):
    table = small_table(RA=[1] * 6, RB=[2] * 6, other=[3] * 6)
    assert read_small(table, **more).schema.sequence == names


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"features": ["Q*"]}, r"^table, features Q\*: matches no column\.$"),
        ({"drop": ["no"]}, r"^table, column no: is missing from the table\.$"),
        ({"drop": ["a"]}, r"^column a: must play one part only\. See drop\.$"),
        ({"drop": ["no"], "static": ["nor"]}, r"^2 faults: .*columns nor, no: is missing"),
    ],
)
def test_a_name_that_no_column_has_is_refused(more, message):
    with pytest.raises(etips.EtipsError, match=message):
        read_small(**more)


def test_faults_of_roles_and_features_are_told_together():
    table = small_table(x=[float("inf")] * 6, p=[2.0] * 6, l=[float("inf")] * 6)
    with pytest.raises(DataError, match=r"^2 faults: \(1\) .*column x: .*\(2\) .*column l: "):
        read_small(table)


def test_a_step_may_be_marked_by_yes_and_no():
    assert read_small(small_table(ok=["y", "n"] * 3), eligible="ok").eligible.tolist() == [1, 0] * 3
    with pytest.raises(DataError, match=r"^table, column ok: must be true or false; 6 of 6 rows"):
        read_small(small_table(ok=["perhaps"] * 6), eligible="ok")


def test_all_that_is_wrong_with_a_table_is_told_at_once():
    table = small_table(x=["1", "a"] * 3, note=[f"remark {i}" for i in range(6)], l=["?"] * 6)
    with pytest.raises(DataError) as caught:
        read_small(table, static=["no"], drop=["Q*"], group="who", every=None)
    for place in ("column no", "drop Q*", "column who", "column x", "column note"):
        assert place.removeprefix("column ") in str(caught.value)
    with pytest.raises(DataError, match=r"^3 faults: "):
        read_small(table)
