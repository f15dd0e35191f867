"""Actions and losses as a table holds them."""

import numpy as np
import pyarrow as pa
import pytest
from strategies import read_small, small_table

import etips
from etips.data.recipe import Outcome
from etips.errors import DataError, SettingError
from etips.notes import collecting_notes


def test_whole_numbers_are_actions_as_they_stand():
    data = read_small(small_table(a=[0, 2, None, 1, 0, 1]))
    assert data.action.tolist() == [0, 2, -1, 1, 0, 1]
    assert data.n_actions == 3


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


ROLES = {"stay": "id", "step": "t", "lag": 0}
OUTCOME = {"reward": "survived"}


def of(*columns):
    return ward().select([*columns, "id", "t", "x", "survived"])


def test_two_doses_make_a_grid_of_classes_named_by_their_ranges():
    data = etips.read_table(of("fluid_ml", "vaso"), **ROLES, **OUTCOME, dose=["fluid_ml", "vaso"])
    fluid, vaso = data.schema.recipe.doses
    assert data.n_actions == 25
    assert (fluid.unit, fluid.n_classes, vaso.n_classes) == ("ml", 5, 5)
    assert data.schema.actions[0] == "fluid none, vaso none"
    assert data.schema.actions[6] == f"fluid {fluid.labels[1]}, vaso {vaso.labels[1]}"
    cells = ward()
    expected = 5 * fluid.apply("", np.array(cells["fluid_ml"])) + vaso.apply(
        "", np.array(cells["vaso"])
    )
    assert data.action.tolist() == expected.tolist()
    assert data.schema.sequence == ("x",)
    counts = np.bincount(data.action // 5)
    assert counts[1:].max() - counts[1:].min() <= 1


def test_one_dose_makes_as_many_actions_as_asked_for():
    table = of("vaso")
    assert etips.read_table(table, **ROLES, **OUTCOME, dose="vaso", bins=3).n_actions == 3


def test_a_policys_table_is_read_by_the_edges_of_the_log():
    data = etips.read_table(of("vaso"), **ROLES, **OUTCOME, dose="vaso", bins=4)
    other = pa.table({"id": [1, 2, 3], "t": [0, 0, 0], "x": [0.0] * 3, "survived": [1, 0, 1],
                      "vaso": [1e6, 0.0, 1e-9]})  # fmt: skip
    assert etips.read_table(other, like=data.schema).action.tolist() == [3, 0, 1]


def test_a_missing_dose_is_no_decision_and_one_below_zero_is_refused():
    dose = [None, 0.0, 1.0, 2.0] * 5
    table = pa.table({"id": range(20), "t": [0] * 20, "d": dose, "y": [0.0, 1.0] * 10})
    data = etips.read_table(table, stay="id", step="t", dose="d", loss="y", lag=0)
    assert data.n_decisions == 15
    bad = table.set_column(2, "d", pa.array([-1.0, *dose[1:]]))
    with pytest.raises(
        DataError, match=r"^table, column d: must be a dose of 0 or more; 1 of 20 rows"
    ):
        etips.read_table(bad, stay="id", step="t", dose="d", loss="y", lag=0)


def test_doses_of_which_too_many_are_alike_make_fewer_classes_and_that_is_told():
    table = pa.table({"id": range(30), "t": [0] * 30, "d": [0, 1, 2] * 10, "y": [0.0, 1.0] * 15})
    with collecting_notes() as notes:
        data = etips.read_table(table, stay="id", step="t", dose="d", loss="y", lag=0)
    assert data.n_actions == 3
    assert (
        "table, column d: doses make 3 classes, not 5: too many doses are alike for more." in notes
    )


def test_rows_in_any_order_have_the_same_actions():
    order = np.random.default_rng(1).permutation(400)
    roles = {**ROLES, **OUTCOME, "dose": ["fluid_ml", "vaso"]}
    plain = etips.read_table(of("fluid_ml", "vaso"), **roles)
    mixed = etips.read_table(of("fluid_ml", "vaso").take(order), **roles)
    assert mixed.action.tolist() == plain.action.tolist()
    assert mixed.loss.tolist() == plain.loss.tolist()


def test_a_reward_is_a_loss_turned_round_and_so_is_that_of_a_policys_table():
    data = etips.read_table(of("drug"), **ROLES, **OUTCOME, action="drug")
    assert data.loss.tolist() == (1 - np.array(ward()["survived"])).tolist()
    assert data.schema.recipe.outcome == Outcome("reward", "one_minus")
    again = etips.read_table(of("drug"), like=data.schema)
    assert again.loss.tolist() == data.loss.tolist()
    assert again.action.tolist() == data.action.tolist()


def test_a_loss_or_a_reward_not_both_and_an_action_or_a_dose():
    with pytest.raises(SettingError, match=r"^loss, reward: "):
        etips.read_table(ward(), **ROLES, action="drug", loss="x", reward="survived")
    with pytest.raises(SettingError, match=r"^action, dose: "):
        etips.read_table(ward(), **ROLES, action="drug", dose="vaso", loss="x")


@pytest.mark.parametrize(
    "treatment", [{"action": "drug"}, {"action": ["drug", "x2"]}, {"dose": "vaso"}]
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_what_was_written_is_read_again(tmp_path, treatment, suffix):
    table = ward(x2=np.arange(400) % 3 * 50).drop(["fluid_ml"])
    unused = {"drug", "x2", "vaso"} - set(np.ravel(list(treatment.values())))
    data = etips.read_table(table.drop(list(unused)), **ROLES, **OUTCOME, **treatment)
    etips.write_table(data, tmp_path / f"log{suffix}")
    again = etips.read_table(tmp_path / f"log{suffix}", like=data.schema)
    assert again.action.tolist() == data.action.tolist()
    assert again.loss.tolist() == data.loss.tolist()


def test_a_folder_keeps_how_the_actions_were_read(tmp_path):
    data = etips.read_table(of("drug"), **ROLES, **OUTCOME, action="drug")
    data.save(tmp_path / "log")
    again = etips.load(tmp_path / "log")
    assert again.schema == data.schema
    assert again.action.tolist() == data.action.tolist()


def test_doses_without_a_zero_but_with_gaps_ask_what_a_gap_means():
    dose = [None, 1.0, 2.0, 3.0] * 5
    table = pa.table({"d": dose, "x": range(20), "y": [0.0, 1.0] * 10})
    with collecting_notes() as notes:
        etips.read_table(table, dose="d", loss="y", bins=2)
    (told,) = [note for note in notes if "no dose is 0" in note]
    assert told.endswith("Empty cells are no decisions: write 0 where none was given.")


def test_doses_of_one_step_add_up_and_a_policys_table_is_read_alike():
    rng = np.random.default_rng(0)
    n, hours = 60, 24
    stay = np.repeat(np.arange(n), hours)
    time = np.datetime64("2020-01-01", "m") + np.tile(np.arange(hours), n) * 60
    dose = np.where(rng.random(stay.size) < 0.2, rng.gamma(2, 100, stay.size), 0.0)
    columns = {"x": rng.normal(size=stay.size), "y": rng.integers(0, 2, stay.size)}
    columns |= {"s": stay, "time": time.astype("datetime64[s]"), "fluid_ml": dose}
    table = pa.table(columns)
    data = etips.read_table(
        table, stay="s", step="time", dose="fluid_ml", bins=3, loss="y", every="4h"
    )
    sums = dose.reshape(n, 6, 4).sum(axis=2)
    (fluid,) = data.schema.recipe.doses
    assert (
        data.action.reshape(n, 6).tolist() == fluid.apply("", sums.ravel()).reshape(n, 6).tolist()
    )
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
