"""Long tables into Trajectories: roles, order, routes, and the schema of a fitted policy."""

import gzip
import logging

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_cohorts import Cohort, cohorts
from strategies import TEXT, fingerprint, long_table, refusal_text, roles_of
from strategies import read_small as read
from strategies import small_table as table

from etips.data import Scaler, load_trajectories, read_table, write_table
from etips.errors import DataError, SettingError
from etips.notes import collecting_notes

NAN, INF = float("nan"), float("inf")


def test_every_column_without_a_role_is_sequential():
    data = read(table(y=[0, 0, 0, 0, 0, 1], age=[3, 3, 3, 4, 4, 4]), static=["age"])
    assert data.schema.sequence == ("x", "y")
    assert data.schema.static == ("age",)
    assert data.sequence.tolist() == [[1, 0], [2, 0], [3, 0], [4, 0], [5, 0], [6, 1]]
    assert data.static.tolist() == [[3], [4]]
    assert data.sequence.dtype == data.static.dtype == np.float32
    assert (data.n_actions, data.lag, data.n_decisions) == (3, 1, 4)


def test_action_and_loss_are_null_where_there_is_no_decision(caplog):
    caplog.set_level(logging.INFO)
    data = read(table(a=[0, None, 2, 0, 1, 2], l=[0.1, None, 0.3, 0.4, None, 0.6]), lag=0)
    assert list(zip(*map(list, data.decisions()), strict=True)) == [(0, 0), (0, 2), (1, 0), (1, 2)]
    assert data.action.tolist() == [0, -1, 2, 0, 1, 2]
    assert "loss: under 11 actions have none" in caplog.text


def test_propensity_eligible_and_group_are_read():
    data = read(
        table(
            p=[0.1, 0.2, 0.3, 0.4, 0.5, 1], e=[1, 1, 0, 1, 1, 1], g=["b", "b", "b", "a", "a", "a"]
        ),
        propensity="p",
        eligible="e",
        group="g",
    )
    assert data.propensity.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 1]
    assert data.eligible.tolist() == [True, True, False, True, True, True]
    assert data.group.tolist() == ["b", "a"]
    assert data.n_decisions == 3


def test_n_actions_and_action_names_may_be_given():
    data = read(n_actions=5, actions=["none", "a", "b", "c", "d"])
    assert data.n_actions == 5
    assert data.schema.actions == ("none", "a", "b", "c", "d")
    with pytest.raises(SettingError, match=r"^actions: must name all 3 actions or none\.$"):
        read(actions=["none"])


@pytest.mark.parametrize(
    "steps",
    [
        [0, 1, 2],
        [0.5, 1.5, 2.0],
        pd.to_datetime(["2101-01-01 00:00", "2101-01-01 04:00", "2101-01-02 00:00"]),
        pa.array([1, 2, 3], pa.date32()),
        pa.array([1, 2, 3], pa.timestamp("s", "UTC")),
        pa.array([1, 2, 3], pa.duration("ms")),
        pa.array([False, True]),
        pa.array([1, 2, 3]).cast(pa.decimal128(21, 2)),
        pa.array([1, 2, 3], pa.uint64()),
    ],
)
def test_steps_are_numbers_or_times_in_any_order(steps):
    n = len(steps)
    frame = pa.table({"s": [1] * n, "t": steps, "a": [0] * n, "l": [0.0] * n, "x": range(n)})
    forward = read(frame)
    backward = read(frame.take(list(range(n))[::-1]))
    assert forward.sequence[:, 0].tolist() == list(range(n))
    assert fingerprint(forward) == fingerprint(backward)


@pytest.mark.parametrize(
    ("kind", "ids"),
    [
        (pa.int16(), [3, 7]),
        (pa.uint64(), [3, 2**62]),
        (pa.float64(), [3, 7]),
        (pa.string(), ["ß", "ä"]),
        (pa.large_string(), ["a", "b"]),
        (pa.string_view(), ["a", "b"]),
        (pa.dictionary(pa.int8(), pa.string()), ["a", "b"]),
    ],
)
def test_a_stay_is_called_by_whole_numbers_or_text(kind, ids):
    low, high = ids
    data = read(table(s=pa.array([high, high, low, low, low, high], kind), t=[0, 1, 0, 1, 2, 2]))
    assert data.stay.tolist() == ids
    assert data.sequence.ravel().tolist() == [3, 4, 5, 1, 2, 6]


def test_identifiers_at_both_ends_of_the_range_do_not_wrap_around():
    """Their difference is beyond 64 bits, so order must not be judged by it."""
    far = 9 * 10**18
    data = read(table(s=[far, -far, 0, far, 0, -far], t=[0, 0, 0, 1, 1, 1]))
    assert data.stay.tolist() == [-far, 0, far]
    assert np.diff(data.offsets).tolist() == [2, 2, 2]


def routes(data, folder, seed):
    """The same table by every route, its rows in another order each time."""
    rng = np.random.default_rng(seed)
    frame = long_table(data)

    def shuffled():
        return frame.take(pa.array(rng.permutation(frame.num_rows)))

    def columns(part):
        return part.select(list(rng.permutation(part.column_names)))

    pandas = shuffled().to_pandas()
    yield "pandas", pandas[[*frame.column_names]]
    yield "pandas with another index", pandas.set_index(np.arange(len(pandas))[::-1])
    yield "polars", pl.from_arrow(shuffled())
    yield "arrow", frame
    chunk = int(rng.integers(1, 4))
    yield "arrow in chunks", pa.Table.from_batches(shuffled().to_batches(max_chunksize=chunk))
    for name in ("a.csv", "a.csv.gz"):
        text = pa.BufferOutputStream()
        pa.csv.write_csv(shuffled(), text)
        content = text.getvalue().to_pybytes()
        (folder / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        yield name, folder / name
    pa.parquet.write_table(shuffled(), folder / "a.parquet", row_group_size=chunk)
    yield "parquet", folder / "a.parquet"


def test_d4_every_route_gives_identical_decisions(tmp_path):
    """D4: 200 random cohorts; CSV, CSV.gz, Parquet, pandas, polars, Arrow, any order and chunk."""
    for seed in range(200):
        data = Cohort(
            seed=seed,
            n_stays=1 + seed % 5,
            longest=2 + seed % 4,
            lag=seed % 2,
            n_static=seed % 3,
            gaps=(0.0, 0.3, 0.7)[seed % 3],
            text_ids=seed % 4 == 0,
            readmissions=seed % 3 == 0,
            propensity=seed % 5 != 0,
        ).make()
        expected = fingerprint(data)
        for route, frame in routes(data, tmp_path, seed):
            found = read_table(frame, **roles_of(data))
            assert found.schema.sequence == data.schema.sequence
            assert fingerprint(found) == expected, (seed, route)


@given(cohorts, st.data())
def test_rows_may_come_in_any_order(cohort, draw):
    data = cohort.make()
    frame = long_table(data)
    order = draw.draw(st.permutations(range(frame.num_rows)))
    found = read_table(frame.take(pa.array(order, pa.int64())), **roles_of(data))
    assert fingerprint(found) == fingerprint(data)


def test_columns_may_come_in_any_order_where_a_schema_says_which_is_which():
    data = Cohort(seed=4, n_features=3).make()
    frame = long_table(data)
    first = read_table(frame, **roles_of(data))
    again = read_table(frame.select(frame.column_names[::-1]), like=first.schema)
    assert fingerprint(again) == fingerprint(first)
    assert again.schema == first.schema


HOLES = [None, 2.0, None, 4.0, None, None]
WARDS = ["icu", "er", "icu", "or", "er", "icu"]


@pytest.fixture
def fitted():
    frame = table(x=HOLES, ward=WARDS, age=[3, 3, 3, 4, 4, 4], g=[7, 7, 7, 8, 8, 8])
    return read(
        frame, categorical=["ward"], missing="carry", static=["age"], group="g", n_actions=4
    )


def later(**changes):
    return table(x=HOLES, ward=WARDS, age=[3, 3, 3, 4, 4, 4], g=[7, 7, 7, 8, 8, 8], **changes)


def test_like_reads_the_same_table_to_the_same_data(fitted):
    again = read_table(later(), like=fitted.schema)
    assert again.schema == fitted.schema
    assert np.array_equal(again.sequence, fitted.sequence, equal_nan=True)
    assert np.array_equal(again.group, fitted.group)


def test_like_knows_levels_marks_order_and_roles_from_before(fitted):
    frame = pa.table(
        {
            "note": [TEXT] * 2,
            "age": [9, 9],
            "ward": ["or", "or"],
            "x": [1.0, 2.0],
            "t": [1, 0],
            "s": [5, 5],
        }
    )
    data = read_table(frame, like=fitted.schema)
    assert not data.logged
    assert data.schema == fitted.schema
    assert data.n_actions == 4
    names = data.schema.sequence
    assert names == ("x", "ward=er", "ward=icu", "ward=or", "x_missing")
    assert data.sequence.tolist() == [[2, 0, 0, 1, 0], [1, 0, 0, 1, 0]]
    assert data.n_decisions == 2  # the second step, and the one after the last
    assert data.group is None


@pytest.mark.parametrize("gone", ["a", "l"])
def test_like_takes_half_a_log_for_questions(fitted, gone):
    data = read_table(later(**{gone: None}), like=fitted.schema)
    assert not data.logged
    assert data.n_decisions == 6


def test_a_level_never_seen_before_is_missing_and_told(fitted):
    frame = later().set_column(
        5, "ward", [["icu", TEXT, "icu", TEXT, "er", "or"]]
    )  # the last but two: nothing to carry
    with collecting_notes() as notes:
        data = read_table(frame, like=fitted.schema)
    at = [i for i, name in enumerate(data.schema.sequence) if name.startswith("ward=")]
    assert np.isnan(data.sequence[:, at]).all(axis=1).tolist() == [False] * 3 + [True, False, False]
    assert notes.count("column ward: under 11 rows hold a level not seen before, read as missing")


def test_a_level_never_seen_before_is_refused_by_row_where_gaps_are(fitted):
    frame = later().set_column(5, "ward", [["icu", TEXT, "icu", TEXT, "er", "or"]])
    message = (
        r"^table, column ward: must be one of the levels known so far; "
        r"2 of 6 rows fail, first at row 1\.$"
    )
    with pytest.raises(DataError, match=message) as caught:
        read_table(frame, like=fitted.schema, missing="refuse")
    assert TEXT not in refusal_text(caught.value)


@pytest.mark.parametrize("gone", ["x", "ward", "age", "s", "t"])
def test_a_column_a_fitted_policy_needs_is_refused_by_name_when_missing(fitted, gone):
    table = later().drop_columns([gone])
    with pytest.raises(DataError, match=rf"^table, column {gone}: is missing from the table\."):
        read_table(table, like=fitted.schema)


@pytest.mark.parametrize("gone", ["x", "ward", "age"])
def test_a_column_that_another_site_lacks_may_be_added_empty_as_the_refusal_says(gone):
    schema = read(table(x=HOLES, ward=WARDS, age=[3, 3, 3, 4, 4, 4]), static=["age"]).schema
    lacking = table(x=HOLES, ward=WARDS, age=[3, 3, 3, 4, 4, 4]).drop_columns([gone])
    with pytest.raises(DataError, match=r"fitted on it\. Add it; its cells may be empty\.$"):
        read_table(lacking, like=schema)
    empty = lacking.append_column(gone, pa.nulls(len(lacking)))
    assert read_table(empty, like=schema).schema.sequence == schema.sequence


def test_a_feature_that_only_looks_like_a_mark_is_refused_by_its_own_name():
    schema = read(table(x_missing=[0.0] * 6)).schema
    with pytest.raises(DataError, match=r"^table, column x_missing: is missing from the table\."):
        read_table(table(), like=schema)


def test_like_refuses_a_category_where_there_was_a_number():
    frame = table(x=pa.array(WARDS).dictionary_encode())
    message = r"^table, column x: must be read as numbers, as in the data the policy was fitted on"
    with pytest.raises(DataError, match=message):
        read_table(frame, like=read().schema)


def test_a_written_table_that_lost_one_of_its_marks_reads_in_the_order_of_before(tmp_path):
    data = read(table(x=HOLES, y=HOLES[::-1]), missing="carry")
    assert data.schema.sequence == ("x", "y", "x_missing", "y_missing")
    write_table(data, tmp_path / "t.parquet")
    lost = pa.parquet.read_table(tmp_path / "t.parquet").drop_columns(["x_missing"])
    again = read_table(lost, like=data.schema)
    assert again.schema == data.schema
    assert np.array_equal(again.sequence[:, [0, 1, 3]], data.sequence[:, [0, 1, 3]], equal_nan=True)
    assert again.sequence[:, 2].tolist() == [1, 0, 0, 0, 0, 0]  # only what was never known is left


def test_a_gap_where_there_was_none_in_training_is_carried_without_a_mark_and_told():
    schema = read().schema
    with collecting_notes() as notes:
        data = read_table(table(x=HOLES), like=schema)
    assert data.schema == schema
    assert np.array_equal(data.sequence[:, 0], [NAN, 2, 2, 4, 4, 4], equal_nan=True)
    assert [text for text in notes if text.startswith("column x has missing values, unlike in")]
    scaled = Scaler().fit(read()).transform(data)
    assert np.isfinite(scaled.sequence).all()


def test_like_refuses_a_gap_where_there_was_none_in_training_if_gaps_are_refused():
    schema = read(missing="refuse").schema
    with pytest.raises(DataError, match=r"^table, column x: must not be missing; 4 of 6 rows fail"):
        read_table(table(x=HOLES), like=schema)
    kept = read(table(x=HOLES, y=[1.0] * 6), missing="carry").schema
    frame = table(x=HOLES, y=[1.0, None, 1.0, 1.0, 1.0, 1.0])
    with pytest.raises(DataError, match=r"^table, column y: must not be missing; 1 of 6 rows fail"):
        read_table(frame, like=kept, missing="refuse")


def test_like_keeps_an_action_beyond_those_known_out(fitted):
    with pytest.raises(DataError, match=r"^table, column a: must be in 0\.\.3; 1 of 6 rows fail"):
        read_table(later(a=[0, 1, 2, 0, 4, 0]), like=fitted.schema)


def test_like_accepts_other_names_of_roles(fitted):
    frame = later().rename_columns(["stay_id", "t", "a", "l", "x", "ward", "age", "g"])
    data = read_table(frame, like=fitted.schema, stay="stay_id")
    assert data.schema.roles.stay == "stay_id"
    assert np.array_equal(data.sequence, fitted.sequence, equal_nan=True)


@pytest.mark.parametrize("kind", ["feature", "static"])
def test_a_feature_may_bear_the_name_of_a_role_that_the_table_lacks(tmp_path, kind):
    frame = table(group=[1.0, 1, 1, 2, 2, 2], propensity=[9.0] * 6, eligible=[5.0] * 6)
    static = ["group"] if kind == "static" else []
    data = read(frame, static=static)
    assert data.group is None
    assert data.propensity is None
    again = read_table(frame, like=data.schema)
    assert again.schema == data.schema
    data.save(tmp_path / "saved")
    loaded = load_trajectories(tmp_path / "saved")
    assert loaded.group is None
    assert fingerprint(loaded) == fingerprint(data) == fingerprint(again)


def test_a_table_without_action_and_loss_holds_questions():
    data = read_table(table(a=None, l=None), stay="s", step="t", n_actions=3)
    assert not data.logged
    assert data.n_decisions == 6
    assert data.n_actions == 3


def test_a_category_missing_at_the_start_survives_writing_and_reading(tmp_path):
    data = read(
        table(ward=[None, "a", None, "b", None, "a"]), categorical=["ward"], missing="carry"
    )
    write_table(data, tmp_path / "t.parquet")
    again = read_table(tmp_path / "t.parquet", like=data.schema)
    assert again.schema == data.schema
    assert np.array_equal(again.sequence, data.sequence, equal_nan=True)
