"""Ways of holding a table that once went wrong in silence."""

import numpy as np
import pandas as pd
import pytest

import etips
from etips.notes import collecting_notes


def small() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "stay": [1, 1, 1, 2, 2],
            "step": [0, 1, 2, 0, 1],
            "action": [0, 1, 0, 1, 1],
            "loss": [0.0, 1.0, 0.0, 1.0, 0.0],
            "propensity": [0.5, 0.5, 0.5, 0.5, 0.5],
            "SOFA": [6.0, 6.0, 4.0, 3.0, 3.0],
        }
    )


def read(table: pd.DataFrame, **more: object) -> etips.Trajectories:
    roles = {"stay": "stay", "step": "step", "action": "action", "loss": "loss"}
    return etips.read_table(table, **{**roles, **more})


def test_a_table_without_a_loss_column_is_read_and_its_loss_computed():
    table = small().drop(columns=["loss", "propensity"])
    data = etips.read_table(table, stay="stay", step="step", action="action", lag=0)
    assert data.n_decisions == 0
    assert data.with_loss(etips.sofa_change).logged_loss.tolist() == [1, 0, 0]


@pytest.mark.parametrize("labels", [[0, 4, 8, 0, 4], [0.5, 1.5, 2.5, 0.5, 1.5]])
def test_a_loss_that_no_step_has_is_refused(labels):
    data = read(small().assign(step=labels).drop(columns="propensity"))
    with pytest.raises(etips.DataError, match=r"^(loss: is known at no step|step: must be whole)"):
        data.with_loss(etips.sofa_change)


def test_times_as_step_labels_are_refused_by_the_sofa_loss():
    table = small().drop(columns="propensity")
    table["step"] = pd.to_datetime("2020-01-01") + pd.to_timedelta(table["step"], unit="h")
    with pytest.raises(etips.DataError, match=r"^step: must be whole numbers"):
        read(table).with_loss(etips.sofa_change)


def test_a_propensity_where_no_decision_can_be_is_not_looked_at():
    table = small()
    table.loc[0, "propensity"] = 0.0  # the first step of a stay, with lag 1
    table["eligible"] = [True, False, True, True, True]
    table.loc[1, "propensity"] = 7.0
    data = read(table, propensity="propensity", eligible="eligible")
    assert data.logged_propensity.tolist() == [0.5, 0.5]
    assert np.isnan(data.propensity[:2]).all()


def test_a_propensity_at_a_decision_is_still_refused():
    table = small()
    table.loc[2, "propensity"] = 0.0
    message = (
        r"^table, column propensity: must be in \(0, 1\] .* 1 of 5 rows fail, first at row 2\.$"
    )
    with pytest.raises(etips.DataError, match=message):
        read(table, propensity="propensity")


@pytest.mark.parametrize("more", [{"lag": 0}, {"n_actions": 3}, {"static": ["SOFA"]}])
def test_what_a_schema_fixes_cannot_be_asked_for_beside_it(more):
    schema = read(small()).schema
    with pytest.raises(etips.SettingError, match=r"^like: fixes static, features, drop"):
        etips.read_table(small(), like=schema, **more)


def test_none_is_a_treatment_in_text_and_missing_among_numbers(tmp_path):
    rows = "".join(
        f"{'None' if i % 3 else 'Broad'},{'None' if i % 5 else i},{i % 2}\n" for i in range(60)
    )
    path = tmp_path / "log.csv"
    path.write_text("drug,x,loss\n" + rows)
    with collecting_notes() as notes:
        data = etips.read_table(path, action="drug", loss="loss")
    assert data.schema.actions == ("Broad", "None")
    assert np.bincount(data.logged_action).tolist() == [20, 40]
    assert int(np.isnan(data.sequence[:, 0]).sum()) == 48
    assert 'log.csv: "None" was read as missing in column x' in notes


def test_columns_that_pandas_calls_by_numbers_may_be_named_so():
    numbered = small().set_axis(range(6), axis=1)
    data = etips.read_table(numbered, stay=0, step=1, action=2, loss=3, propensity=4, lag=0)
    assert data.schema.sequence == ("5",)
    assert data.logged_action.tolist() == small().action.tolist()


def test_intervals_of_pandas_are_refused_for_what_they_are():
    table = small().assign(band=pd.cut(small().SOFA, 2))
    with pytest.raises(etips.DataError, match=r"column band: must hold numbers, text or times\. "):
        read(table)
    named = read(table.assign(band=table.band.astype(str)))
    assert sum(name.startswith("band=") for name in named.schema.sequence) == 2


@pytest.mark.parametrize(
    "ids", [["1E2", "10E1"], ["12E1", "120E0"], ["9" * 22 + "1", "9" * 22 + "2"]]
)
def test_identifiers_that_spell_numbers_are_not_merged_or_rewritten(tmp_path, ids):
    path = tmp_path / "log.csv"
    path.write_text("id,drug,x,loss\n" + "".join(f"{i},a,1e3,0\n" for i in ids))
    data = etips.read_table(path, stay="id", action="drug", loss="loss")
    assert sorted(data.stay) == sorted(ids)
    assert data.sequence[:, 0].tolist() == [1000, 1000]


def test_a_sum_below_the_table_is_no_stay(tmp_path):
    path = tmp_path / "log.csv"
    rows = "".join(f"{i // 2},{i % 2},a,{i},{i % 2}\n" for i in range(40))
    path.write_text("id,t,drug,x,loss\n" + rows + "Total,40,,,\n")
    roles = {"stay": "id", "step": "t", "action": "drug", "loss": "loss"}
    with pytest.raises(etips.DataError, match=r"column id: .* Is it a footer\? Then delete it"):
        etips.read_table(path, **roles)


def test_actions_of_several_columns_have_names_of_their_own_though_labels_hold_commas():
    labels = [("A, B", "C"), ("A", "B, C"), ("A", "C")] * 4
    table = pd.DataFrame(labels, columns=["one", "two"]).assign(x=range(12), loss=[0, 1] * 6)
    data = etips.read_table(table, action=["one", "two"], loss="loss")
    assert set(data.schema.actions) == {"A, B + C", "A + B, C", "A + C"}


def test_labels_that_look_alike_are_told():
    labels = ["caf\u00e9", "cafe\u0301", "none"] * 4
    with collecting_notes() as notes:
        etips.read_table(
            pd.DataFrame({"drug": labels, "x": range(12), "loss": [0, 1] * 6}),
            action="drug",
            loss="loss",
        )
    assert any("look alike and are actions of their own" in line for line in notes)
