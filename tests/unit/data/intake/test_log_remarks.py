"""What is told of a log before anything is learned from it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from strategies import read_small, small_table

import etips
from etips.data.intake.log_remarks import remark_on_lag, remark_on_log
from etips.notes import collecting_notes


def log(action, people=None, **more):
    n = len(action)
    rng = np.random.default_rng(0)
    people = np.arange(n) if people is None else people
    columns = {"id": range(n), "t": [0] * n, "who": people, "drug": action, "x": rng.normal(size=n)}
    columns["y"] = rng.integers(0, 2, n)
    roles = {"stay": "id", "step": "t", "group": "who", "action": "drug", "loss": "y", "lag": 0}
    return etips.read_table(pa.table(columns), **roles, **more)


def test_an_action_that_hardly_anybody_got_is_told_by_name_and_without_the_count():
    with collecting_notes() as notes:
        log(["usual"] * 50 + ["rare"] * 7)
    assert [note for note in notes if "taken by" in note] == [
        "1 of 2 actions was taken by fewer than 11 people, or by nobody: rare. Little can be "
        "learned about it."
    ]
    assert not any("7" in note for note in notes)


def test_an_action_never_taken_is_told_and_a_common_one_is_not():
    with collecting_notes() as notes:
        log([0] * 50 + [2] * 50, n_actions=4)
        log([0] * 50 + [1] * 50)
    told = [note for note in notes if "taken by" in note]
    assert len(told) == 1
    assert (
        "2 of 4 actions were taken by fewer than 11 people, or by nobody: action 1; action 3"
        in told[0]
    )


def test_a_policys_table_is_read_without_such_remarks():
    data = log(["a"] * 30 + ["b"] * 30)
    with collecting_notes() as notes:
        n = 4
        etips.read_table(
            pa.table({"id": range(n), "t": [0] * n, "who": range(n), "drug": ["a"] * n,
                      "x": [0.0] * n, "y": [0] * n}),
            like=data.schema,
        )  # fmt: skip
    assert not [note for note in notes if "taken by" in note]


def test_a_log_of_one_action_has_nothing_to_compare():
    with collecting_notes() as notes:
        log(["usual"] * 50)
    assert "every decision has the same action, usual: nothing compares" in notes


def test_rows_without_an_action_are_told_and_few_are_not_counted():
    with collecting_notes() as notes:
        log(["a", "b"] * 40 + [None] * 20)
        log(["a", "b"] * 40 + [None] * 4)
        log(["a", "b"] * 40)
    told = [note for note in notes if "no action" in note]
    assert told == [
        "20 of 100 rows have no action and are no decisions",
        "under 11 rows have no action and are no decisions",
    ]


def test_a_loss_that_never_varies_is_told():
    """A registry that writes down deaths alone has an empty cell for the living."""
    columns = {"op": ["open", "lap"] * 20, "x": np.arange(40.0), "died": ["yes", None] * 20}
    with collecting_notes() as notes:
        etips.read_table(pa.table(columns), action="op", loss="died")
    same = "every known loss is the same: nothing compares"
    assert f"{same}. An empty cell is not known: write 0 where it means no" in notes
    columns["died"] = ["yes"] * 40
    with collecting_notes() as notes:
        etips.read_table(pa.table(columns), action="op", loss="died")
    assert same in notes
    columns["died"] = ["yes", "no"] * 20
    with collecting_notes() as notes:
        etips.read_table(pa.table(columns), action="op", loss="died")
    assert not [line for line in notes if same in line]


def test_an_empty_cell_in_place_of_no_treatment_is_told():
    with collecting_notes() as notes:
        log(["Y"] * 50 + [None] * 30)
    same = "every decision has the same action, Y: nothing compares. An empty cell is no decision: "
    assert same + "write a label where none was given" in notes


def severity_log(direction, n=400, names=("sofa", "lactate", "x2"), seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, len(names)))
    loss = (direction * features[:, 0] + direction * features[:, 1] + rng.normal(size=n) > 0) * 1.0
    data = etips.from_arrays(features, action=rng.integers(0, 2, n), loss=loss)
    schema = etips.data.schema.Schema(sequence=names, n_actions=2, lag=0)
    return replace(data, schema=schema)


def asked(data, column, reward=False):
    with collecting_notes() as notes:
        remark_on_log(data, column=column, reward=reward)
    return [line for line in notes if "should it be" in line]


@pytest.mark.parametrize(
    "name",
    ["survived", "Alive30", "discharged_home", "recovered", "improvement", "ventilator_free_days",
     "survival_days", "HospitalSurvival", "treatment_success"],
)  # fmt: skip
def test_good_things_are_known_by_their_names(name):
    assert "looks like a benefit" in asked(severity_log(0.0), name)[0]
    assert asked(severity_log(0.0), name, reward=True) == []


@pytest.mark.parametrize(
    ("name", "harm"),
    [("died", True), ("mortality_90d", True), ("Death", True), ("readmission", True),
     ("cost", True), ("loss", True), ("not_recovered", False), ("time_to_recovery", False),
     ("no_improvement", False), ("y", False), ("days_until_discharge", False)],
)  # fmt: skip
def test_bad_and_unknown_things_are_not_good(name, harm):
    assert asked(severity_log(0.0), name) == []
    assert bool(asked(severity_log(0.0), name, reward=True)) == harm


def test_a_name_is_enough_for_a_question():
    data = severity_log(0.0)
    assert asked(data, "survived") == [
        "survived looks like a benefit: should it be --reward survived, not a loss?"
    ]
    assert asked(data, "survived", reward=True) == []
    assert asked(data, "died", reward=True) == [
        "died looks like a harm: should it be --loss died, not a reward?"
    ]


def test_a_loss_that_falls_with_severity_is_asked_about():
    (question,) = asked(severity_log(-1.0), "y")
    assert question.startswith("y is lower where sofa, lactate is worse")
    assert question.endswith("--reward y, not a loss?")


def test_a_loss_that_rises_with_severity_or_does_not_care_is_not():
    assert asked(severity_log(1.0), "y") == []
    assert asked(severity_log(0.0), "y") == []


def test_what_is_called_a_harm_is_believed():
    assert asked(severity_log(-1.0), "died") == []


def test_signs_that_say_the_opposite_are_turned_round_and_contradiction_is_no_evidence():
    assert asked(severity_log(1.0, names=("gcs", "albumin", "x")), "y")
    assert asked(severity_log(-1.0, names=("gcs", "sofa", "x")), "y") == []
    assert asked(severity_log(-1.0, names=("dosage", "usage", "x")), "y") == []


N = 120


def codes_asked(**columns):
    rng = np.random.default_rng(0)
    table = {"drug": ["a", "b"] * (N // 2), "hr": rng.normal(80, 9, N), "y": rng.integers(0, 2, N)}
    with collecting_notes() as notes:
        etips.read_table(pd.DataFrame({**table, **columns}), action="drug", loss="y")
    return [line for line in notes if "does it stand for" in line]


def with_code(code, rows=20):
    values = np.random.default_rng(1).uniform(1, 6, N)
    values[:rows] = code
    return values


@pytest.mark.parametrize("code", [-9, 99, 999, -999])
def test_a_code_far_from_all_values_is_asked_about(code):
    line = f"column lactate holds {code} and nothing near it: does it stand for a missing value? "
    assert codes_asked(lactate=with_code(code)) == [f"{line}Then say --na lactate={code}"]


def test_values_that_are_near_others_rare_or_no_code_are_not():
    assert codes_asked(weight=np.linspace(40, 99, N).round()) == []
    assert codes_asked(lactate=with_code(999, rows=3)) == []
    assert codes_asked(lactate=with_code(250)) == []
    assert codes_asked(same=[99] * N) == []


def test_actions_that_mean_nobody_knows_are_asked_about():
    line = "99 is read as an action: does it stand for an unknown one? Then say --na drug=99"
    assert codes_asked(drug=[10, 20, 30, 99] * (N // 4)) == [line]
    assert codes_asked(drug=["none", "Unknown"] * (N // 2)) == [line.replace("99", "Unknown")]
    assert codes_asked(drug=[0, 50, 99] * (N // 3)) == []


def told(data, **more):
    with collecting_notes() as notes:
        remark_on_lag(data, **more)
    return notes


def test_what_lag_costs_is_told():
    n = 30
    table = small_table(
        s=[i // 2 for i in range(2 * n)],
        t=[0, 1] * n,
        a=[0, 1] * n,
        l=[0.0] * (2 * n - 24) + [None] * 24,
        x=[1.0] * 2 * n,
    )
    data = read_small(table)
    assert told(data) == ["lag 1: 18 first steps of stays are no decisions; --lag 0 keeps them"]
    assert told(data, fixed=True) == ["lag 1: 18 first steps of stays are no decisions"]
    assert told(data.with_lag(0)) == []
    assert told(data.without_log()) == []


def test_a_lag_that_costs_nothing_is_not_told():
    """An outcome on the last row of a stay."""
    n = 30
    table = small_table(
        s=[i // 2 for i in range(2 * n)],
        t=[0, 1] * n,
        a=[0, 1] * n,
        l=[None, 1.0] * n,
        x=[1.0] * 2 * n,
    )
    assert told(read_small(table)) == []


def test_what_lag_costs_is_about_right_where_it_would_tell_of_a_few_stays():
    """29 first steps of 30 stays are one stay without a loss."""
    n = 30
    table = small_table(
        s=[i // 2 for i in range(2 * n)],
        t=[0, 1] * n,
        a=[0, 1] * n,
        l=[0.0] * (2 * n - 2) + [None] * 2,
        x=[1.0] * 2 * n,
    )
    assert told(read_small(table)) == [
        "lag 1: about 30 first steps of stays are no decisions; --lag 0 keeps them"
    ]
