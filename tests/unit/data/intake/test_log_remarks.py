"""What the reader of a log is told before anything is learned from it."""

import numpy as np
import pyarrow as pa

import etips
from etips.data.intake.log_remarks import note_rare_actions, rare_actions
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


def test_people_are_counted_not_decisions():
    assert rare_actions(log(["a"] * 50 + ["b"] * 50, people=[*range(50), *([50] * 50)])) == [1]


def test_an_action_never_taken_is_told_and_a_common_one_is_not():
    with collecting_notes() as notes:
        note_rare_actions(log([0] * 50 + [2] * 50, n_actions=4))
        note_rare_actions(log([0] * 50 + [1] * 50))
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
