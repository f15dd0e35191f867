"""Features of a table: kinds, gaps, what is told."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_cohorts import cohorts
from strategies import long_table, read_small, roles_of, small_table
from strategies import read_small as read
from strategies import small_table as table

import etips
from etips.data import Scaler, read_table, write_table
from etips.errors import DataError, SettingError
from etips.notes import collecting_notes

NAN, INF = float("nan"), float("inf")


def test_booleans_become_zero_and_one():
    data = read(table(b=[True, False, True, False, True, False]))
    assert data.sequence[:, 1].tolist() == [1, 0, 1, 0, 1, 0]
    assert data.schema.sequence == ("x", "b")


WARDS = ["icu", "er", "icu", "or", "er", "icu"]
WARD_COLUMNS = [[0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    "frame",
    [
        table(ward=WARDS),
        table(ward=pa.array(WARDS).dictionary_encode()),
        table(
            ward=pa.chunked_array([pa.array(WARDS[:2]), pa.array(WARDS[2:])]).dictionary_encode()
        ),
        table().to_pandas().assign(ward=WARDS),
        table().to_pandas().assign(ward=pd.Categorical(WARDS)),
        pl.from_arrow(table(ward=WARDS)),
        pl.from_arrow(table(ward=WARDS)).with_columns(pl.col("ward").cast(pl.Categorical)),
        pl.from_arrow(table(ward=WARDS)).with_columns(
            pl.col("ward").cast(pl.Enum(["or", "unused", "icu", "er"]))
        ),
    ],
    ids=[
        "text",
        "dictionary",
        "chunks",
        "pandas text",
        "category",
        "polars",
        "categorical",
        "enum",
    ],
)
def test_a_category_becomes_one_column_a_level(frame, request):
    by_type = request.node.callspec.id in (
        "dictionary",
        "chunks",
        "category",
        "categorical",
        "enum",
    )
    data = read(frame, categorical=[] if by_type else ["ward"])
    assert data.schema.sequence == ("x", "ward=er", "ward=icu", "ward=or")
    assert data.schema.categories == {"ward": ("er", "icu", "or")}
    assert data.sequence[:, 1:].tolist() == WARD_COLUMNS


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        ([3, 10, 3, 3, 10, 3], ("10", "3")),
        ([True, False, True, True, False, True], ("false", "true")),
        (pd.Categorical([3, 10, 3, 3, 10, 3]), ("10", "3")),
    ],
)
def test_whole_numbers_and_booleans_may_be_categories(values, levels):
    data = read(table().to_pandas().assign(c=values), categorical=["c"])
    assert data.schema.categories == {"c": levels}
    assert data.sequence[:, 1].tolist() == [0, 1, 0, 0, 1, 0]


def test_free_text_is_no_category():
    """Every level becomes a column and its text part of the schema."""
    n = 1001
    notes = [f"note {i}" for i in range(n)]
    frame = pa.table({"s": [1] * n, "t": range(n), "a": [0] * n, "l": [0.0] * n, "note": notes})
    assert len(read(frame.slice(1), categorical=["note"]).schema.sequence) == 1000
    with pytest.raises(DataError, match=r"^table, column note: must have at most 1000 levels\.$"):
        read(frame, categorical=["note"])


def test_a_static_category_is_spread_once_a_stay():
    data = read(table(sex=["f", "f", "f", "m", "m", "m"]), static=["sex"], categorical=["sex"])
    assert data.schema.static == ("sex=f", "sex=m")
    assert data.static.tolist() == [[1, 0], [0, 1]]


HOLES = [None, 2.0, None, 4.0, None, None]


def test_missing_values_are_refused_unless_asked_for():
    message = (
        r"^table, column x: must not be missing; 4 of 6 rows fail, first at row 0\. "
        r'Fill it, or carry the last value forward: --missing carry \(missing="carry"\)\.$'
    )
    with pytest.raises(DataError, match=message):
        read(table(x=HOLES), missing="refuse")


def test_missing_values_are_carried_forward_within_a_stay_and_marked():
    data = read(table(x=HOLES), missing="carry")
    assert data.schema.sequence == ("x", "x_missing")
    assert data.schema.indicators == ("x",)
    expected = [[NAN, 1], [2, 0], [2, 1], [4, 0], [4, 1], [4, 1]]
    assert np.array_equal(data.sequence, expected, equal_nan=True)


def plain_carry(rows):
    """(stay, value) pairs in order, NaN missing: the last known value of the same stay."""
    last, found = {}, []
    for stay, value in rows:
        if not np.isnan(value):
            last[stay] = value
        found.append((last.get(stay, NAN), float(np.isnan(value))))
    return found


@given(cohorts, st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_carrying_forward_agrees_with_a_plain_loop(cohort, share, seed):
    data = cohort.make()
    rng = np.random.default_rng(seed)
    frame = long_table(data)
    hidden = rng.random(frame.num_rows) < share
    holey = pa.array(frame["vital0"].to_numpy(), mask=hidden)
    frame = frame.set_column(frame.column_names.index("vital0"), "vital0", holey)
    order = rng.permutation(frame.num_rows)
    found = read_table(frame.take(pa.array(order)), **roles_of(data), missing="carry")
    values = np.where(hidden, NAN, frame["vital0"].to_numpy(zero_copy_only=False))
    stays = np.repeat(np.arange(data.n_stays), np.diff(data.offsets))
    carried, marks = np.array(plain_carry(zip(stays, values, strict=True))).T
    names = found.schema.sequence
    if hidden.all():  # nothing to carry: a column without a value is no feature
        assert not {"vital0", "vital0_missing"} & set(names)
        return
    got = found.sequence[:, names.index("vital0")]
    assert np.array_equal(got, carried.astype(np.float32), equal_nan=True)
    if hidden.any():
        assert found.sequence[:, names.index("vital0_missing")].tolist() == marks.tolist()
    else:
        assert "vital0_missing" not in names


def test_a_column_that_is_complete_gets_no_mark_when_carrying():
    data = read(table(x=HOLES, y=[1, 2, 3, 4, 5, 6]), missing="carry")
    assert data.schema.sequence == ("x", "y", "x_missing")


def test_what_was_never_measured_becomes_the_training_mean_and_never_a_silent_zero():
    data = read(table(x=HOLES), missing="carry")
    scaler = Scaler().fit(data)
    scaled = scaler.transform(data)
    seen = np.array([2, 2, 4, 4, 4])  # what is there after carrying forward
    assert scaler.mean_["x"] == pytest.approx(seen.mean())
    assert scaled.sequence[0, 0] == 0  # the mean, once scaled
    assert scaled.sequence[0, 1] == 1  # and marked
    assert np.isfinite(scaled.sequence).all()


def test_a_missing_category_is_carried_forward_level_by_level():
    data = read(
        table(ward=[None, "a", None, "b", None, "a"]), categorical=["ward"], missing="carry"
    )
    assert data.schema.sequence == ("x", "ward=a", "ward=b", "ward_missing")
    expected = [[NAN, NAN, 1], [1, 0, 0], [1, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0]]
    assert np.array_equal(data.sequence[:, 1:], expected, equal_nan=True)


def test_a_static_value_known_at_one_step_speaks_for_the_stay():
    data = read(table(age=[None, 50, None, None, None, None]), static=["age"], missing="carry")
    assert data.schema.static == ("age", "age_missing")
    assert np.array_equal(data.static, [[50, 0], [NAN, 1]], equal_nan=True)


def test_a_column_that_already_bears_the_name_of_a_mark_is_refused():
    frame = table(x=HOLES, x_missing=[0, 0, 0, 0, 0, 0])
    message = r"^column x_missing: has the name of a feature that is made of another column\. "
    with pytest.raises(
        SettingError, match=message + "Rename it, or leave it out: --drop x_missing"
    ):
        read(frame, missing="carry")
    assert "x_missing" in read(frame, missing="carry", drop=["x_missing"]).schema.sequence


def test_a_level_never_stands_in_a_refusal_though_its_column_has_a_sign_in_its_name():
    frame = table(**{"a=b": pa.array(["u", None, "u", "v", "v", "v"]).dictionary_encode()})
    with pytest.raises(DataError, match=r"^table, column a=b: must not be missing; 1 of 6 rows"):
        read(frame, missing="refuse")
    data = read(frame)
    assert data.schema.sequence == ("x", "a=b=u", "a=b=v", "a=b_missing")


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
