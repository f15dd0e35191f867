"""Features that follow from the outcome or the action are told; strong predictors are not."""

import numpy as np
import pyarrow as pa
import pytest

import etips
from etips.data.intake.leaks import Leak, find_leaks, words_of
from etips.notes import collecting_notes

N = 600


def log(seed=0, **more):
    rng = np.random.default_rng(seed)
    severity = rng.normal(size=N)
    action = rng.integers(0, 3, N)
    died = (rng.random(N) < 1 / (1 + np.exp(-2 * severity + 1))).astype(float)
    columns = {"severity": severity, "age": rng.normal(60, 10, N), "arm": action, "y": died}
    for name, make in more.items():
        columns[name] = make(columns, rng)
    return pa.table(columns)


def leaks(table, loss="y"):
    data = etips.read_table(
        table.append_column("id", pa.array(range(N))).append_column("t", pa.array([0] * N)),
        stay="id", step="t", action="arm", loss=loss, lag=0,
        categorical=[n for n in table.column_names if pa.types.is_string(table[n].type)],
    )  # fmt: skip
    return find_leaks(data)


def test_ordinary_features_are_no_leaks():
    for seed in range(5):
        assert leaks(log(seed)) == []


def test_a_strong_predictor_is_no_leak():
    def strong(columns, rng):
        return columns["y"] * 3 + rng.normal(size=N)  # an AUC of about 0.98

    assert leaks(log(strong=strong)) == []


def test_nor_is_a_group_so_sick_that_all_of_a_few_dozen_died():
    def shock(columns, rng):
        return (columns["y"] == 1) & (np.cumsum(columns["y"]) <= 60)

    assert leaks(log(shock=shock)) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda c, rng: c["y"],
        lambda c, rng: 1 - c["y"],
        lambda c, rng: c["y"] == 1,
        lambda c, rng: np.where(c["y"] == 1, rng.uniform(1, 30, N), 99.0),  # days lived
        lambda c, rng: pa.array(np.where(c["y"] == 1, "morgue", "home").tolist()),
        lambda c, rng: pa.array(
            [["home", "ward"][k % 2] if y == 0 else "gone" for k, y in enumerate(c["y"])]
        ),
        lambda c, rng: np.where(c["y"] == 1, 3.0, rng.integers(1, 6, N) // 3 * 3 + 1.0),  # code 3
        lambda c, rng: pa.array([1.5 if y else None for y in c["y"]]),  # known of the dead alone
    ],
)
def test_what_follows_from_the_loss_is_a_leak(make):
    assert leaks(log(late=make)) == [Leak("late", "loss")]


def test_of_a_loss_that_is_a_number_too():
    def cost(c, rng):
        return rng.gamma(2, 2, N)

    table = log(
        cost=cost,
        squared=lambda c, rng: c["cost"] ** 2,
        near=lambda c, rng: c["cost"] + 3 * rng.normal(size=N),
    )
    assert leaks(table.drop(["y"]), loss="cost") == [Leak("squared", "loss")]


def test_a_value_with_which_the_loss_is_certain_is_told():
    def hospice(c, rng):
        return ((c["y"] == 1) & (rng.random(N) < 0.7)).astype(int)

    assert leaks(log(hospice=hospice)) == [Leak("hospice", "part of the loss")]


def test_values_with_which_a_common_enough_loss_never_comes_are_told():
    rng = np.random.default_rng(0)
    n = 4000
    died_later = rng.random(n) < 0.6
    died_soon = died_later & (rng.random(n) < 0.5)
    columns = {"id": range(n), "t": [0] * n, "arm": rng.integers(0, 2, n), "x": rng.normal(size=n)}
    table = pa.table({**columns, "later": died_later, "y": died_soon})
    data = etips.read_table(table, stay="id", step="t", action="arm", loss="y", lag=0)
    assert find_leaks(data) == [Leak("later", "part of the loss")]


def test_a_group_in_which_nobody_died_is_ordinary():
    def young(c, rng):
        return (c["severity"] < -1.2).astype(int)

    table = log(young=young)
    rare = np.where(np.array(table["young"]) == 1, 0.0, np.array(table["y"]))
    assert leaks(table.set_column(table.column_names.index("y"), "y", pa.array(rare))) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda c, rng: c["arm"] * 100,
        lambda c, rng: pa.array([["a", "b", "c"][k] for k in c["arm"]]),
        lambda c, rng: c["arm"] * 10 + rng.random(N),  # a dose within the class
    ],
)
def test_what_tells_the_action_is_a_leak(make):
    assert leaks(log(copy=make)) == [Leak("copy", "action")]


def test_a_column_called_like_an_outcome_is_told_by_its_name():
    names = ["dischargeStatus", "days_to_death", "predicted_mortality_risk", "studied", "lost"]
    table = log(**{name: lambda c, rng: rng.normal(size=N) for name in names})
    assert leaks(table) == [Leak("dischargeStatus", "name"), Leak("days_to_death", "name")]


def test_what_earlier_steps_show_is_no_leak_with_lag_1():
    rng = np.random.default_rng(0)
    stay, step = np.repeat(np.arange(100), 6), np.tile(np.arange(6), 100)
    action, loss = rng.integers(0, 2, 600), rng.integers(0, 2, 600).astype(float)
    columns = {"s": stay, "t": step, "a": action, "y": loss, "same_a": action, "same_y": loss}
    roles = {"stay": "s", "step": "t", "action": "a", "loss": "y"}
    assert find_leaks(etips.read_table(pa.table(columns), **roles)) == []
    now = find_leaks(etips.read_table(pa.table(columns), **roles, lag=0))
    assert now == [Leak("same_a", "action"), Leak("same_y", "loss")]


def test_a_reader_is_told_once_for_each_reason_and_of_the_remedy():
    table = log(one=lambda c, rng: c["y"], two=lambda c, rng: 2 * c["y"])
    with collecting_notes() as notes:
        leaks(table)
    told = [note for note in notes if "one" in note]
    assert told == [
        "columns one, two: foretell the loss almost perfectly. Were they known before the "
        "decision? If not, leave them out: --drop one,two"
    ]


def test_a_few_rows_are_not_enough_to_suspect_anything():
    few = log(late=lambda c, rng: c["y"]).slice(0, 40)
    data = etips.read_table(
        few.append_column("id", pa.array(range(40))).append_column("t", pa.array([0] * 40)),
        stay="id", step="t", action="arm", loss="y", lag=0, n_actions=3,
    )  # fmt: skip
    assert find_leaks(data) == []
    assert find_leaks(data.without_log()) == []


def test_words_of_a_name_are_found_in_every_spelling():
    assert words_of("DischargeStatus_30d") == {"discharge", "status", "d"}


def test_many_actions_of_a_few_rows_each_are_told_by_nothing():
    def arm(columns, rng):
        return rng.integers(0, 150, N)

    table = log(many=arm).drop(["arm"]).rename_columns(["severity", "age", "y", "arm"])
    data = etips.read_table(table, action="arm", loss="y", n_actions=150)
    assert find_leaks(data) == []


def test_what_tells_one_of_two_doses_is_a_leak_too():
    rng = np.random.default_rng(0)
    dose = {name: np.where(rng.random(N) < 0.3, 0, rng.gamma(2, 100, N)) for name in ("a", "b")}
    columns = {
        **dose,
        "copy": dose["b"] / 1000,
        "x": rng.normal(size=N),
        "y": rng.integers(0, 2, N),
    }
    data = etips.read_table(pa.table(columns), dose=["a", "b"], bins=3, loss="y")
    assert find_leaks(data) == [Leak("copy", "action")]
