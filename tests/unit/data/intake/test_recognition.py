"""What each feature column holds."""

import datetime

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from strategies import read_small, small_table

from etips.data import read_table
from etips.data.recipe import ColumnKind
from etips.data.tables.layout import recognise
from etips.data.tables.sources import open_source
from etips.data.tables.table_spec import TableSpec
from etips.errors import DataError, Faults, SeveralFaultsError
from etips.notes import collecting_notes


def find_kinds(*table):
    faults = Faults()
    kinds = recognise(*table, faults)
    faults.raise_any()
    return kinds


def kind_of(values, *, static=False, **more):
    source = open_source(pa.table({"x": values}))
    asked = TableSpec.of_arguments({"stay": "s", "step": "t", **more})
    sequence, still = ((), ("x",)) if static else (("x",), ())
    return find_kinds(source, asked, sequence, still)["x"]


WORDS = [f"word {i}" for i in range(60)]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "number"),
        ([1.5, None], "number"),
        ([True, False], "yes_no"),
        (["yes", "No"], "yes_no"),
        (["low", "high"], "category"),
        (["1", "2.5"], "number"),
        (pa.array([None, None]), "number"),
        (pa.array([None, None], pa.string()), "number"),
        (pa.array(["1", "2"]).dictionary_encode(), "category"),
        ([datetime.datetime(2024, 1, 1)], "hours"),
        ([datetime.date(2024, 1, 1)], "hours"),
        (["2024-01-01 10:00", None], "hours"),
        ([datetime.timedelta(hours=1)], "duration"),
        ([datetime.time(12)], "duration"),
    ],
)
def test_a_kind_is_told_from_the_type_or_the_words(values, kind):
    assert kind_of(values).kind == kind


def test_dates_that_stay_the_same_are_years():
    day = [datetime.date(2024, 1, 1)]
    assert kind_of(day, static=True).kind == "years"
    assert kind_of(day, stay=None, step=None).kind == "years"


def test_yes_and_no_keep_their_words():
    assert kind_of(["N", "Y"]) == ColumnKind("yes_no", ("N", "Y"))


@pytest.mark.parametrize(
    "values", [WORDS, WORDS[:55] * 3, WORDS[:6], pa.array(WORDS[:6], pa.large_string())]
)
def test_names_and_remarks_are_refused_with_the_way_out(values):
    message = r"identifier or free text\. Leave it out: --drop x .* a category: --categorical x "
    with pytest.raises(DataError, match=message):
        kind_of(values, stay=None, step=None)
    assert kind_of(values, stay=None, step=None, categorical=["x"]).kind == "category"


def test_a_name_for_each_stay_is_refused_though_it_repeats():
    table = pa.table({"s": [i // 3 for i in range(60)], "x": [f"n{i // 3}" for i in range(60)]})
    with pytest.raises(DataError, match="identifier or free text"):
        find_kinds(open_source(table), TableSpec(stay="s", step="t"), ("x",), ())


def test_words_that_occur_once_in_few_rows_are_levels():
    assert kind_of(WORDS[:4]).kind == "category"


@pytest.mark.parametrize("values", [[[1, 2]], [{"a": 1}]])
def test_lists_and_structs_are_refused(values):
    with pytest.raises(DataError, match=r"^table, column x: must hold numbers, text or times\."):
        kind_of(values)
    with pytest.raises(DataError, match=r"^table, column x: must hold numbers, text or times\."):
        kind_of(values, categorical=["x"])


def test_all_columns_that_have_no_kind_are_told_at_once():
    table = pa.table({"x": ["1", "a"], "y": [[1], [2]], "z": [1, 2]})
    with pytest.raises(SeveralFaultsError, match=r"^2 faults: \(1\) table, column x.*column y"):
        find_kinds(open_source(table), TableSpec(), ("x", "y", "z"), ())


def test_a_number_for_each_row_that_is_called_an_identifier_is_named():
    table = pa.table({"hospnum": range(40), "age": range(40), "visit_id": [1, 2] * 20})
    with collecting_notes() as notes:
        kinds = find_kinds(open_source(table), TableSpec(), tuple(table.column_names), ())
    assert {own.kind for own in kinds.values()} == {"number"}
    told = "column hospnum is used as a feature but may be an identifier; --drop hospnum omits it"
    assert notes == ["no stay is named: every row is a patient of its own", told]


def test_times_are_told():
    with collecting_notes() as notes:
        kind_of([datetime.date(2024, 1, 1)], static=True)
    assert notes == ["column x is read as years since 2000"]


LEVELS = ["low", "high", "low", "low", "high", "high"]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"c": LEVELS}),
        pd.DataFrame({"c": pd.Categorical(LEVELS, ["low", "high"], ordered=True)}),
        pd.DataFrame({"c": pd.array(LEVELS, "string")}),
        pl.DataFrame({"c": LEVELS}),
        pl.DataFrame({"c": pl.Series(LEVELS, dtype=pl.Enum(["low", "high"]))}),
        pl.DataFrame({"c": pl.Series(LEVELS, dtype=pl.Categorical)}),
    ],
)
def test_words_of_every_frame_are_categories(frame):
    column = pa.table(frame)["c"]
    data = read_small(small_table(c=column))
    assert data.schema.sequence == ("x", "c=high", "c=low")
    assert data.schema.recipe.kinds["c"] == ColumnKind("category", ("high", "low"))


def test_a_later_table_is_read_by_the_kinds_of_the_first():
    times = [datetime.datetime(2024, 1, 1, hour) for hour in range(6)]
    first = small_table(flag=["y", "n"] * 3, when=times, more=LEVELS)
    schema = read_small(first).schema
    same = read_table(small_table(flag=[1, 0] * 3, when=times, more=LEVELS), like=schema)
    assert same.sequence.tolist() == read_small(first).sequence.tolist()
    with pytest.raises(DataError, match=r"^table, column when: must be read as times, as in"):
        read_table(small_table(flag=["y"] * 6, when=LEVELS, more=LEVELS), like=schema)
    later = small_table(x=["1", "a"] * 3, flag=["y"] * 6, when=times, more=LEVELS)
    with pytest.raises(DataError, match=r"^table, column x: mixes numbers and text;"):
        read_table(later, like=schema)


def test_a_stay_that_the_table_lacks_is_told_though_text_asks_how_many_there_are():
    words = [f"word {n}" for n in range(12)]
    table = pa.table({"d": [0, 1] * 6, "l": [0, 1] * 6, "w": words})
    with pytest.raises(DataError, match="column nobody: is missing"):
        read_table(table, stay="nobody", action="d", loss="l")


def test_a_policys_table_is_not_told_to_leave_out_what_the_policy_needs():
    schema = read_table(pa.table({"a": [0, 1] * 9, "x": range(18), "l": [0, 1] * 9}), action="a",
                        loss="l").schema  # fmt: skip
    later = pa.table({"a": [0, 1], "x": ["7 mm", "12"], "l": [0, 1]})
    with pytest.raises(DataError, match=r"^table, column x: mixes numbers and text") as caught:
        read_table(later, like=schema)
    assert "--drop" not in str(caught.value)
