"""Treatments as actions 0..K-1, doses as classes, outcomes as losses."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import etips
from etips.data.intake.actions import find_actions
from etips.data.intake.dose_classes import DoseClasses
from etips.data.intake.labelled_columns import label_column
from etips.data.recipe import ActionReading, Component, Outcome, Recipe, find_components
from etips.errors import DataError, SettingError
from etips.notes import collecting_notes


def labelled(name, values, kind=None):
    column = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values], kind)
    return label_column(f"table, column {name}", name, column)


def find(n_actions=None, actions=(), **cells):
    columns = [labelled(name, values) for name, values in cells.items()]
    return find_actions(columns, n_actions=n_actions, actions=actions)


@pytest.mark.parametrize(
    ("cells", "action", "names"),
    [
        ([0, 2, None, 1], [0, 2, -1, 1], ()),
        ([1, 3, 2], [0, 2, 1], ("1", "2", "3")),
        ([200, 0, 100], [2, 0, 1], ("0", "100", "200")),
        ([1, -1], [1, 0], ("-1", "1")),
        ([0.5, 1.5, 1.0], [0, 2, 1], ("0.5", "1", "1.5")),
        (["heparin", "aspirin", None], [1, 0, -1], ("aspirin", "heparin")),
        ([True, False], [1, 0], ("no a", "a")),
    ],
)
def test_numbers_without_holes_stay_and_all_else_is_a_label(cells, action, names):
    found = find(a=cells)
    assert (found.action.tolist(), found.names) == (action, names)
    assert found.n_actions == (len(names) or 3)
    assert (found.reading is None) == (not names)


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
    with pytest.raises(SettingError, match=r"^n_actions: must be the number of actions, which is"):
        find(n_actions=3, a=["x", "y"])


@pytest.mark.parametrize(
    ("names", "cells", "action"),
    [
        (("none", "low", "high"), [30, 10, 20], [2, 0, 1]),  # codes in the order of their size
        (("none", "low", "high"), [0, 2], [0, 2]),  # a code that has a name need not occur
        (("placebo", "low", "high"), ["low", "placebo"], [1, 0]),  # the labels themselves
    ],
)
def test_names_that_are_given(names, cells, action):
    found = find(actions=names, a=cells)
    assert (found.action.tolist(), found.names, found.n_actions) == (action, names, 3)


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
    assert find(asp=[True, False], hep=[1, 0]).names == ("no asp, hep 0", "asp, hep 1")


def test_blanks_do_not_count_and_case_is_told():
    with collecting_notes() as notes:
        found = find(a=["Aspirin ", "aspirin", "Aspirin"])
    assert found.action.tolist() == [0, 1, 0]
    assert [note for note in notes if "Aspirin and aspirin differ only by case" in note]


@pytest.mark.parametrize(
    ("cells", "rule"),
    [
        (np.linspace(0, 1, 30), "at most 20 different treatments, holds 30 different num.*--dose"),
        (np.arange(0, 500, 2), "at most 20 different treatments, holds 250 .*--dose"),
        (np.tile(np.arange(0, 500, 2), 12), "at most 200 different treatments, holds 250 .*--dose"),
        (np.repeat(np.arange(0, 200, 2), 8), "at most 20 different treatments, holds 100 .*--dose"),
        ([f"free text {n}" for n in range(201)], "at most 40 .* holds 201 different texts"),
        ([None, "", " "], "at least one action"),
    ],
)
def test_too_many_labels_or_none_are_refused_with_the_remedy(cells, rule):
    with pytest.raises(DataError, match=f"^table, column a: must hold {rule}"):
        find(a=pa.array(cells))


def test_combinations_that_cannot_be_are_refused():
    n = np.arange(400)
    with pytest.raises(DataError, match=r"^a, b: must make at most 200 combinations"):
        find(a=pa.array(n % 20), b=pa.array(n // 20))
    many = {f"c{k}": pa.array(np.arange(1200) % 100 * 2) for k in range(12)}
    with pytest.raises(DataError, match=r"^c0, c1, .*: are too many to combine\."):
        find(**many)
    with pytest.raises(DataError, match="at least one row in which none is missing"):
        find(a=["x", None], b=[None, "y"])


def log(**columns):
    n = len(next(iter(columns.values())))
    return pa.table({**columns, "x": np.arange(n) * 1.0, "y": np.arange(n) % 2})


def as_of(before, **cells):
    """Actions of another table, read like the first."""
    first = etips.read_table(log(**before), action=list(before), loss="y")
    return etips.read_table(log(**cells), like=first.schema).action.tolist()


@pytest.mark.parametrize(
    ("before", "cells", "action"),
    [
        ([1, 3, 2], [3.0, 1.0, None], [2, 0, -1]),
        ([1, 3, 2], ["3", " 1", ""], [2, 0, -1]),
        ([True, False], [1, 0], [1, 0]),
        ([True, False], ["yes", "no"], [1, 0]),
        ([True, False], ["TRUE", "False"], [1, 0]),
        (["A", "a"], ["a", "A"], [1, 0]),  # case is kept where it tells labels apart
    ],
)
def test_another_table_is_read_by_the_labels_of_the_log(before, cells, action):
    assert as_of({"a": before}, a=cells) == action


def test_combinations_are_read_by_the_labels_of_the_log():
    both = {"a": ["x", "y"], "b": ["p", "q"]}
    assert as_of(both, a=["Y", "x"], b=["q", "P"]) == [1, 0]
    first = etips.read_table(log(**both), action=["a", "b"], loss="y")
    table = log(pair=["y, q", "x, p"])  # by their names
    again = etips.read_table(table, like=first.schema, action="pair", loss="y")
    assert again.action.tolist() == [1, 0]


def test_an_action_that_the_log_did_not_have_is_refused_by_row_with_those_it_knows():
    rule = r"^table, column a: must be one of the actions the policy was fitted on; 1 of 2 rows "
    with pytest.raises(DataError, match=rule + r"fail, first at row 1\. It knows x, y\."):
        as_of({"a": ["x", "y"]}, a=["x", "secret"])
    with pytest.raises(DataError, match=r"^table, columns a, b: .* first at row 0\. It knows x/p"):
        as_of({"a": ["x", "y"], "b": ["p", "q"]}, a=["x"], b=["q"])


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
    assert labelled("a", column).labels == ("x", "y")
    assert labelled("a", column).code.tolist() == [0, 1, -1]


def test_a_code_is_the_same_label_whatever_type_holds_it():
    kinds = [pa.int16(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(5, 1), pa.float16()]
    values = np.array([100, 200], np.float16)
    kept = [pa.array(values if k == pa.float16() else [100, 200], k) for k in kinds]
    assert {labelled("a", own).labels for own in kept} == {("100", "200")}
    assert labelled("a", ["100", "200"]).labels == ("100", "200")
    assert labelled("a", [0.1, 0.2], pa.float32()).labels == ("0.1", "0.2")


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
        labelled("drug", pa.array(values) if isinstance(values, np.ndarray) else values)


def test_an_ordered_category_keeps_its_order():
    doses = pd.Categorical(["high", "low", None], ["low", "mid", "high"], ordered=True)
    found = labelled("a", pa.chunked_array([pa.Array.from_pandas(pd.Series(doses))]))
    assert found.labels == ("low", "high")
    assert found.code.tolist() == [1, 0, -1]


def test_components_are_doses_or_columns_the_first_the_slow_one():
    fluid = DoseClasses("fluid_ml", (), (0.0, 400.0), unit="ml")
    vaso = DoseClasses("vaso", (0.1,), (0.0, None, 0.2))
    first, second = find_components(Recipe(doses=(fluid, vaso)))
    described = ("none", "some (median 400 ml)")
    assert first == Component("fluid", ("none", "some"), (0, 0, 0, 1, 1, 1), described)
    assert second.of_action == (0, 1, 2, 0, 1, 2)
    assert second.levels == ("none", "up to 0.1", "over 0.1")
    reading = ActionReading(("asp", "hep"), (("N", "N"), ("Y", "M"), ("Y", "N")))
    asp, hep = find_components(Recipe(action=reading))
    assert (asp.name, asp.levels, asp.of_action) == ("asp", ("N", "Y"), (0, 1, 1))
    assert (hep.name, hep.levels, hep.of_action) == ("hep", ("N", "M"), (0, 1, 0))
    plain = Recipe(action=ActionReading(("drug",), (("a",), ("b",))))
    assert [find_components(own) for own in (None, Recipe(), plain)] == [(), (), ()]


def ward(n=400, seed=0, **more):
    """One step a stay: two doses, two drugs, an outcome."""
    rng = np.random.default_rng(seed)
    given = rng.random(n) < 0.7
    columns = {
        "id": np.arange(n),
        "t": np.zeros(n, int),
        "fluid_ml": np.where(given, rng.gamma(2, 200, n), 0.0),
        "vaso": np.where(rng.random(n) < 0.5, rng.gamma(2, 0.1, n), 0.0),
        "drug": rng.choice(["heparin", "aspirin"], n).tolist(),
        "x": rng.normal(size=n),
        "survived": rng.integers(0, 2, n),
    }
    return pa.table({**columns, **more})


ROLES = {"stay": "id", "step": "t", "lag": 0, "reward": "survived"}


def of(*columns):
    return ward().select([*columns, "id", "t", "x", "survived"])


def test_two_doses_make_a_grid_of_classes_named_by_their_ranges():
    data = etips.read_table(of("fluid_ml", "vaso"), **ROLES, dose=["fluid_ml", "vaso"])
    fluid, vaso = data.schema.recipe.doses
    assert data.n_actions == 25
    assert (fluid.unit, fluid.n_classes, vaso.n_classes) == ("ml", 5, 5)
    assert data.schema.actions[0] == "fluid none, vaso none"
    assert data.schema.actions[6] == f"fluid {fluid.labels[1]}, vaso {vaso.labels[1]}"
    first, second = (np.array(ward()[name]) for name in ("fluid_ml", "vaso"))
    assert data.action.tolist() == (5 * fluid.apply("", first) + vaso.apply("", second)).tolist()
    assert data.schema.sequence == ("x",)
    counts = np.bincount(data.action // 5)
    assert counts[1:].max() - counts[1:].min() <= 1
    mixed = np.random.default_rng(1).permutation(400)
    again = etips.read_table(of("fluid_ml", "vaso").take(mixed), **ROLES, dose=["fluid_ml", "vaso"])
    assert (again.action.tolist(), again.loss.tolist()) == (
        data.action.tolist(),
        data.loss.tolist(),
    )


def test_a_policys_table_is_read_by_the_edges_of_the_log():
    data = etips.read_table(of("vaso"), **ROLES, dose="vaso", bins=4)
    assert data.n_actions == 4
    other = pa.table({"id": [1, 2, 3], "t": [0, 0, 0], "x": [0.0] * 3, "survived": [1, 0, 1],
                      "vaso": [1e6, 0.0, 1e-9]})  # fmt: skip
    assert etips.read_table(other, like=data.schema).action.tolist() == [3, 0, 1]


def dosed(dose, **more):
    n = len(dose)
    table = pa.table({"id": range(n), "t": [0] * n, "d": dose, "y": [0.0, 1.0] * (n // 2)})
    return etips.read_table(table, stay="id", step="t", dose="d", loss="y", lag=0, **more)


def test_a_missing_dose_is_no_decision_and_one_below_zero_is_refused():
    assert dosed([None, 0.0, 1.0, 2.0] * 5).n_decisions == 15
    message = r"^table, column d: must be a dose of 0 or more; 1 of 20 rows"
    with pytest.raises(DataError, match=message):
        dosed([-1.0, 0.0, 1.0, 2.0, *[None, 0.0, 1.0, 2.0] * 4])


def test_doses_that_are_alike_or_have_gaps_are_told():
    with collecting_notes() as notes:
        assert dosed([0, 1, 2] * 10).n_actions == 3
        dosed([None, 1.0, 2.0, 3.0] * 5, bins=2)
    fewer = "doses make 3 classes, not 5: too many doses are alike for more."
    assert f"table, column d: {fewer}" in notes
    (told,) = [note for note in notes if "no dose is 0" in note]
    assert told.endswith("Empty cells are no decisions: write 0 where none was given.")


def test_a_reward_is_a_loss_turned_round_and_so_is_that_of_a_policys_table():
    data = etips.read_table(of("drug"), **ROLES, action="drug")
    assert data.loss.tolist() == (1 - np.array(ward()["survived"])).tolist()
    assert data.schema.recipe.outcome == Outcome("reward", "one_minus")
    again = etips.read_table(of("drug"), like=data.schema)
    assert again.loss.tolist() == data.loss.tolist()
    assert again.action.tolist() == data.action.tolist()


def test_a_loss_or_a_reward_not_both_and_an_action_or_a_dose():
    with pytest.raises(SettingError, match=r"^loss, reward: "):
        etips.read_table(ward(), **ROLES, action="drug", loss="x")
    with pytest.raises(SettingError, match=r"^action, dose: "):
        etips.read_table(ward(), **ROLES, action="drug", dose="vaso")


@pytest.mark.parametrize("value", [1e308, -2e30])
def test_a_loss_beyond_what_can_be_computed_is_refused_by_row(value):
    """One of 1e308 ended some learners in a traceback, and left a folder behind."""
    table = log(a=["p", "q"] * 10).set_column(2, "y", pa.array([0.0, value] * 10))
    rule = r"^table, column y: must be within \+-1e\+30; 10 of 20 rows fail, first at row 1\. Resc"
    with pytest.raises(DataError, match=rule):
        etips.read_table(table, action="a", loss="y")


@pytest.mark.parametrize(
    "treatment", [{"action": "drug"}, {"action": ["drug", "x2"]}, {"dose": "vaso"}]
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_what_was_written_is_read_again(tmp_path, treatment, suffix):
    table = ward(x2=np.arange(400) % 3 * 50).drop(["fluid_ml"])
    unused = {"drug", "x2", "vaso"} - set(np.ravel(list(treatment.values())))
    data = etips.read_table(table.drop(list(unused)), **ROLES, **treatment)
    etips.write_table(data, tmp_path / f"log{suffix}")
    data.save(tmp_path / "folder")
    assert etips.load(tmp_path / "folder").schema == data.schema
    again = etips.read_table(tmp_path / f"log{suffix}", like=data.schema)
    assert again.action.tolist() == data.action.tolist()
    assert again.loss.tolist() == data.loss.tolist()


def test_doses_of_one_step_add_up_and_a_policys_table_is_read_alike():
    rng = np.random.default_rng(0)
    n, hours = 60, 24
    stay = np.repeat(np.arange(n), hours)
    time = np.datetime64("2020-01-01", "m") + np.tile(np.arange(hours), n) * 60
    dose = np.where(rng.random(stay.size) < 0.2, rng.gamma(2, 100, stay.size), 0.0)
    columns = {"x": rng.normal(size=stay.size), "y": rng.integers(0, 2, stay.size)}
    columns |= {"s": stay, "time": time.astype("datetime64[s]"), "fluid_ml": dose}
    table = pa.table(columns)
    roles = {"stay": "s", "step": "time", "dose": "fluid_ml", "loss": "y"}
    data = etips.read_table(table, **roles, bins=3, every="4h")
    sums = dose.reshape(n, 6, 4).sum(axis=2)
    (fluid,) = data.schema.recipe.doses
    assert data.action.tolist() == fluid.apply("", sums.ravel()).tolist()
    again = etips.read_table(table.slice(0, 10 * hours), like=data.schema)
    assert again.action.tolist() == data.action[:60].tolist()


def test_another_outcome_of_the_same_policy_is_told_as_it_was_read():
    table = pa.table({"drug": ["a", "b"] * 4, "x": range(8), "code": [1, 2, 3, 4] * 2})
    first = etips.read_table(table, action="drug", loss="code", bad=[1, 2])
    again = etips.read_table(table, like=first.schema)
    other = etips.read_table(table, like=first.schema, loss="code", bad=[1])
    assert again.schema == first.schema
    assert other.schema.recipe.outcome.words == ("1",)
    assert (again.loss.tolist(), other.loss.tolist()) == ([1, 1, 0, 0] * 2, [1, 0, 0, 0] * 2)
