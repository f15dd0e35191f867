"""Treatments as actions 0..K-1."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from etips.data.intake.action_labels import apply_labels, apply_names, find_actions, label_column
from etips.data.intake.dose_classes import DoseClasses
from etips.data.recipe import ActionReading, Component, Recipe, find_components
from etips.errors import DataError, SettingError
from etips.notes import collecting_notes


def columns(**cells):
    return [
        label_column(f"table, column {name}", name, pa.chunked_array([values]))
        for name, values in cells.items()
    ]


def find(n_actions=None, actions=(), **cells):
    return find_actions(columns(**cells), n_actions=n_actions, actions=actions)


def test_numbers_without_holes_stay_as_they_are():
    found = find(a=[0, 2, None, 1])
    assert (found.action.tolist(), found.n_actions, found.names) == ([0, 2, -1, 1], 3, ())
    assert found.reading is None


@pytest.mark.parametrize(
    ("cells", "action", "names"),
    [
        ([1, 3, 2], [0, 2, 1], ("1", "2", "3")),
        ([200, 0, 100], [2, 0, 1], ("0", "100", "200")),
        ([1, -1], [1, 0], ("-1", "1")),
        ([0.5, 1.5, 1.0], [0, 2, 1], ("0.5", "1", "1.5")),
        (["heparin", "aspirin", None], [1, 0, -1], ("aspirin", "heparin")),
        ([True, False], [1, 0], ("no a", "a")),
    ],
)
def test_everything_else_is_a_label_by_which_the_action_is_called(cells, action, names):
    found = find(a=cells)
    assert found.action.tolist() == action
    assert found.names == names
    assert found.n_actions == len(names)
    assert found.reading.columns == ("a",)


def test_codes_that_are_labels_are_told_and_text_is_not():
    with collecting_notes() as notes:
        find(a=[1, 2, 4])
        find(a=["x", "y"])
    assert len(notes) == 1
    assert notes[0].startswith("table, column a: the codes 1, 2, 4 are labels of 3 actions")


def test_with_n_actions_numbers_are_a_range():
    found = find(n_actions=4, a=[0, 3])
    assert (found.action.tolist(), found.n_actions, found.reading) == ([0, 3], 4, None)
    with pytest.raises(DataError, match=r"must be in 0\.\.2; 1 of 2 rows fail, first at row 1\."):
        find(n_actions=3, a=[0, 3])
    with pytest.raises(DataError, match="must be a whole number"):
        find(n_actions=3, a=[0, 0.5])
    with pytest.raises(
        SettingError, match=r"^n_actions: must be the number of actions, which is 2"
    ):
        find(n_actions=3, a=["x", "y"])


def test_codes_get_the_names_that_were_given_in_the_order_of_their_size():
    found = find(actions=("none", "low", "high"), a=[30, 10, 20])
    assert (found.action.tolist(), found.names) == ([2, 0, 1], ("none", "low", "high"))


def test_a_code_that_has_a_name_need_not_occur():
    found = find(actions=("none", "low", "high"), a=[0, 2])
    assert (found.action.tolist(), found.n_actions, found.reading) == ([0, 2], 3, None)


def test_names_that_are_the_labels_give_their_order_and_may_be_more():
    found = find(actions=("placebo", "low", "high"), a=["low", "placebo"])
    assert (found.action.tolist(), found.names) == ([1, 0], ("placebo", "low", "high"))


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        (("low",), "must be all labels"),
        (("low", "hihg"), "must be all labels"),
        (("a", "b", "c"), "must name all 2"),
    ],
)
def test_names_that_do_not_fit_are_refused(names, rule):
    with pytest.raises(SettingError, match=f"^actions: {rule}"):
        find(actions=names, a=["low", "high"])


def test_several_columns_make_the_combinations_that_occur():
    found = find(RXASP=["Y", "N", "Y", None], RXHEP=["M", "N", "N", "M"])
    assert found.names == ("N, N", "Y, M", "Y, N")
    assert found.action.tolist() == [1, 0, 2, -1]
    assert found.reading.columns == ("RXASP", "RXHEP")
    assert found.reading.labels == (("N", "N"), ("Y", "M"), ("Y", "N"))


def test_combinations_of_codes_and_booleans_say_what_they_are_of():
    found = find(asp=[True, False], hep=[1, 0])
    assert found.names == ("no asp, hep 0", "asp, hep 1")


def test_blanks_do_not_count_and_case_is_told():
    with collecting_notes() as notes:
        found = find(a=["Aspirin ", "aspirin", "Aspirin"])
    assert found.action.tolist() == [0, 1, 0]
    assert [note for note in notes if "Aspirin and aspirin differ only by case" in note]


@pytest.mark.parametrize(
    ("cells", "rule"),
    [
        (
            np.linspace(0, 1, 30),
            "at most 20 different treatments, holds 30 different numbers.*--dose",
        ),
        (np.arange(0, 500, 2), "at most 20 different treatments, holds 250 .*--dose"),
        (np.tile(np.arange(0, 500, 2), 12), "at most 200 different treatments, holds 250 .*--dose"),
        (np.repeat(np.arange(0, 200, 2), 8), "at most 20 different treatments, holds 100 .*--dose"),
        (
            np.array([f"free text {n}" for n in range(201)]),
            "at most 40 .* holds 201 different texts",
        ),
    ],
)
def test_too_many_labels_are_refused_with_the_remedy(cells, rule):
    with pytest.raises(DataError, match=f"^table, column a: must hold {rule}"):
        find(a=pa.array(cells))


def test_too_many_combinations_are_refused():
    n = np.arange(400)
    with pytest.raises(DataError, match=r"^a, b: must make at most 200 combinations"):
        find(a=pa.array(n % 20), b=pa.array(n // 20))


def test_columns_that_nobody_could_combine_are_refused():
    many = {f"c{k}": pa.array(np.arange(1200) % 100 * 2) for k in range(12)}
    with pytest.raises(DataError, match=r"^c0, c1, .*: are too many to combine\."):
        find(**many)


@pytest.mark.parametrize("cells", [[None, None], ["", " "]])
def test_a_column_without_any_action_is_refused(cells):
    with pytest.raises(DataError, match="must hold at least one action"):
        find(a=pa.array(cells, pa.string()))


def test_rows_without_all_columns_have_no_action_and_one_must_have_them():
    with pytest.raises(DataError, match="at least one row in which none is missing"):
        find(a=["x", None], b=[None, "y"])


def test_another_table_is_read_by_the_labels_of_the_log():
    reading = find(a=[1, 3, 2]).reading
    assert apply_labels(columns(a=[3.0, 1.0, None]), reading).tolist() == [2, 0, -1]
    assert apply_labels(columns(a=["3", " 1", ""]), reading).tolist() == [2, 0, -1]
    both = find(a=["x", "y"], b=["p", "q"]).reading
    assert apply_labels(columns(a=["Y", "x"], b=["q", "P"]), both).tolist() == [1, 0]


def test_true_and_false_are_known_in_other_spellings():
    reading = find(a=[True, False]).reading
    for cells in ([1, 0], ["yes", "no"], ["TRUE", "False"]):
        assert apply_labels(columns(a=cells), reading).tolist() == [1, 0]


def test_case_is_kept_where_it_tells_labels_apart():
    reading = find(a=["A", "a"]).reading
    assert apply_labels(columns(a=["a", "A"]), reading).tolist() == [1, 0]


def test_an_action_that_the_log_did_not_have_is_refused_by_row_with_those_it_knows():
    reading = find(a=["x", "y"]).reading
    rule = r"^table, column a: must be one of the actions the policy was fitted on; 1 of 2 rows "
    with pytest.raises(DataError, match=rule + r"fail, first at row 1\. It knows x, y\."):
        apply_labels(columns(a=["x", "secret"]), reading)
    both = find(a=["x", "y"], b=["p", "q"]).reading
    with pytest.raises(DataError, match=r"^table, columns a, b: .* first at row 0\. It knows x/p"):
        apply_labels(columns(a=["x"], b=["q"]), both)


def test_actions_are_found_by_their_names():
    assert apply_names(columns(a=["Y, M", "N, N"])[0], ("N, N", "Y, M")).tolist() == [1, 0]


def labelled(values, kind=None):
    column = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values], kind)
    return label_column("table, column drug", "drug", column)


@pytest.mark.parametrize(
    "column",
    [
        pa.chunked_array([pa.array(["x", "y", None])]).dictionary_encode(),
        pa.table({"c": pa.Array.from_pandas(pd.Series(["x", "y", None], dtype="category"))})["c"],
        pl.Series("c", ["x", "y", None], dtype=pl.Categorical).to_frame().to_arrow()["c"],
        pl.Series("c", ["x", "y", None]).to_frame().to_arrow()["c"],
    ],
)
def test_categories_of_every_library_are_labels(column):
    assert labelled(column).labels == ("x", "y")
    assert labelled(column).code.tolist() == [0, 1, -1]


def test_a_code_is_the_same_label_whatever_type_holds_it():
    kinds = [pa.int16(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(5, 1)]
    assert {labelled([100, 200], kind).labels for kind in kinds} == {("100", "200")}
    assert (
        labelled([0.1, 0.2], pa.float32()).labels == labelled([0.1, 0.2]).labels == ("0.1", "0.2")
    )
    assert labelled(["100", "200"]).labels == ("100", "200")


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ([float("inf"), 0.0], "must be finite"),
        ([1e300, 0.0], r"must be below 2\*\*53"),
        (["a" * 101, "b"], "must be text of at most 100 characters"),
        ([np.datetime64("2020-01-01", "us")], "must be text, numbers, or true and false"),
        ([b"\xff", b"a"], "must be UTF-8 text"),
        (np.arange(70_000), "must hold at most 65,536 different treatments"),
    ],
)
def test_what_is_no_treatment_is_refused(values, rule):
    with pytest.raises(DataError, match=rf"^table, column drug: {rule}"):
        labelled(pa.array(values) if isinstance(values, np.ndarray) else values)


def test_an_ordered_category_keeps_its_order():
    doses = pd.Categorical(["high", "low", None], ["low", "mid", "high"], ordered=True)
    found = labelled(pa.chunked_array([pa.Array.from_pandas(pd.Series(doses))]))
    assert found.labels == ("low", "high")
    assert found.code.tolist() == [1, 0, -1]


def test_two_doses_are_two_components_the_first_the_slow_one():
    fluid = DoseClasses("fluid_ml", (), (0.0, 400.0), unit="ml")
    vaso = DoseClasses("vaso", (0.1,), (0.0, None, 0.2))
    first, second = find_components(Recipe(doses=(fluid, vaso)))
    assert first == Component(
        "fluid", ("none", "some"), (0, 0, 0, 1, 1, 1), ("none", "some (median 400 ml)")
    )
    assert second.of_action == (0, 1, 2, 0, 1, 2)
    assert second.levels == ("none", "up to 0.1", "over 0.1")


def test_combined_columns_are_a_component_each_though_not_all_pairs_occur():
    reading = ActionReading(("asp", "hep"), (("N", "N"), ("Y", "M"), ("Y", "N")))
    asp, hep = find_components(Recipe(action=reading))
    assert (asp.name, asp.levels, asp.of_action) == ("asp", ("N", "Y"), (0, 1, 1))
    assert (hep.name, hep.levels, hep.of_action) == ("hep", ("N", "M"), (0, 1, 0))


def test_a_plain_action_has_none():
    assert find_components(None) == ()
    assert find_components(Recipe()) == ()
    assert find_components(Recipe(action=ActionReading(("drug",), (("a",), ("b",))))) == ()
