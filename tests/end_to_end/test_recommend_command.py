"""`etips recommend`: one row a decision, or a question."""

import json
import re

import numpy as np
import pyarrow.parquet as pq
import pytest
from commands import refuse, run
from hospital_log import COLUMNS, SIMPLE, STATIC, read, settings_for

import etips
from etips.learn import RandomPolicy


def columns(n_actions=3):
    chances = [f"p_{k}" for k in range(n_actions)]
    return ["stay", "step", "logged_action", "recommended_action", *chances, "abstained"]


def test_a_log_gets_a_row_a_decision_in_decision_order(place, fitted, tmp_path):
    out = tmp_path / "r.parquet"
    (said,) = json.loads(run("recommend", fitted, place / "log.csv", "--out", out, "--json"))
    data, table = read(place / "log.csv"), pq.read_table(out)
    assert table.column_names == columns()
    stay, step = data.decisions()
    assert table["stay"].to_pylist() == data.stay[stay].tolist()
    assert table["step"].to_pylist() == step.tolist()
    assert table["logged_action"].to_pylist() == data.logged_action.tolist()
    found = np.stack([table[f"p_{k}"].to_numpy() for k in range(3)], axis=1)
    policy = etips.load(fitted)
    assert (found == policy.predict_proba(data)).all()
    assert table["recommended_action"].to_pylist() == policy.predict(data).tolist()
    assert table["abstained"].to_pylist() == policy.abstains(data).tolist()
    assert said["decisions"] == data.n_decisions


def test_without_action_and_loss_the_next_step_is_asked_too(place, fitted, tmp_path):
    out = tmp_path / "r.parquet"
    run("recommend", fitted, place / "asked.parquet", "--out", out)
    table = pq.read_table(out)
    assert table.column_names == columns()
    assert table["logged_action"].null_count == table.num_rows
    data = read(place / "log.csv")
    assert table.num_rows == data.n_steps  # one question after every step
    last = {}
    for stay, step in zip(table["stay"].to_pylist(), table["step"].to_pylist(), strict=True):
        last[stay] = step
    lengths = dict(zip(data.stay.tolist(), np.diff(data.offsets).tolist(), strict=True))
    assert last == lengths  # steps 0..T-1 are there; T is what comes next


def test_with_lag_0_every_step_is_asked_and_no_more(place, tmp_path):
    fit = ("fit", place / "log.csv", "--out", tmp_path / "r", "--lag", 0)
    run(*fit, *COLUMNS, *STATIC, *settings_for())
    out = tmp_path / "r.parquet"
    run("recommend", tmp_path / "r", place / "asked.parquet", "--out", out)
    table, data = pq.read_table(out), read(place / "log.csv")
    assert table["step"].to_pylist() == data.step.tolist()


def test_column_options_may_be_repeated_and_change_nothing(place, fitted, tmp_path):
    for name, more in (("a", []), ("b", [*COLUMNS, *STATIC, "--lag", 1])):
        run("recommend", fitted, place / "log.csv", "--out", tmp_path / f"{name}.parquet", *more)
    assert pq.read_table(tmp_path / "a.parquet").equals(pq.read_table(tmp_path / "b.parquet"))


def test_a_table_with_other_names_is_read_by_options(table, fitted, place, tmp_path):
    renamed = table.rename({"patient": "id", "t": "hour", "dose": "drug", "harm": "cost"})
    renamed.write_parquet(tmp_path / "other.parquet")
    options = ["--stay", "id", "--step", "hour", "--action", "drug", "--loss", "cost"]
    out = tmp_path / "r.parquet"
    run("recommend", fitted, tmp_path / "other.parquet", "--out", out, *options)
    run("recommend", fitted, place / "log.csv", "--out", tmp_path / "s.parquet")
    assert pq.read_table(out).equals(pq.read_table(tmp_path / "s.parquet"))


def test_a_folder_is_read_with_the_lag_of_the_run(place, tmp_path):
    run("fit", place / "log", "--out", tmp_path / "r", "--lag", 0, *settings_for())
    out = tmp_path / "r.parquet"
    run("recommend", tmp_path / "r", place / "log", "--out", out)
    assert pq.read_table(out).num_rows == read(place / "log.csv", lag=0).n_decisions


@pytest.mark.parametrize("method", SIMPLE)
def test_simple_policies_recommend_too(method, place, tmp_path):
    run("fit", place / "log", "--out", tmp_path / "r", "--method", method)
    out = tmp_path / "r.parquet"
    run("recommend", tmp_path / "r", place / "log", "--out", out)
    table = pq.read_table(out)
    assert table.column_names == columns()
    if method == "random":
        expected = (
            RandomPolicy().fit(read(place / "log.csv")).predict_proba(read(place / "log.csv"))
        )
        found = np.stack([table[f"p_{k}"].to_numpy() for k in range(3)], axis=1)
        assert (found == expected).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "no.csv"], "is not a file that exists"),
        (["nowhere", "log.csv"], "must be a folder"),
        (["log", "log.csv"], "policy.json"),
        (["run", "log.csv", "--lag", "0"], "--lag: must be as in the data"),
        (["run", "log.csv", "--static", "hr"], "--static: must be as in the data"),
        (["run", "log.csv", "--stay", "nobody"], "column nobody: is missing"),
        (["run", "short.csv"], "column lactate: is missing"),
    ],
)
def test_bad_input_is_refused_and_leaves_nothing(arguments, words, place, fitted, table, tmp_path):
    table.drop("lactate", "chance").write_csv(place / "short.csv")
    named, data, *rest = arguments
    out = tmp_path / "r.parquet"
    line = refuse("recommend", place / named, place / data, "--out", out, *rest)
    assert re.search(words, line)
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_is_not_parquet_is_refused(place, fitted, tmp_path):
    line = refuse("recommend", fitted, place / "log.csv", "--out", tmp_path / "r.csv")
    assert "must end in .parquet" in line


def test_a_changed_run_is_refused_by_file(place, tmp_path):
    run("fit", place / "log", "--out", tmp_path / "r", "--method", "random")
    path = tmp_path / "r" / "policy" / "policy.json"
    path.write_bytes(path.read_bytes().replace(b"uniform", b"softmax"))
    line = refuse("recommend", tmp_path / "r", place / "log", "--out", tmp_path / "o.parquet")
    assert "policy.json: was changed" in line
    assert not (tmp_path / "o.parquet").exists()
