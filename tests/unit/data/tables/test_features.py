"""Booleans, categories and missing values of a long table."""

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
from strategies import long_table, roles_of
from strategies import read_small as read
from strategies import small_table as table

from etips.data import Scaler, read_table
from etips.errors import DataError, SettingError

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


def test_missing_must_be_refuse_or_carry():
    with pytest.raises(SettingError, match=r'^missing: must be "refuse" or "carry"\.$'):
        read(missing="zero")


def test_a_level_never_stands_in_a_refusal_though_its_column_has_a_sign_in_its_name():
    frame = table(**{"a=b": pa.array(["u", None, "u", "v", "v", "v"]).dictionary_encode()})
    with pytest.raises(DataError, match=r"^table, column a=b: must not be missing; 1 of 6 rows"):
        read(frame, missing="refuse")
    data = read(frame)
    assert data.schema.sequence == ("x", "a=b=u", "a=b=v", "a=b_missing")
