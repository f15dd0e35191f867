"""`etips recommend`: one row a decision, or a question."""

import json
import re

import numpy as np
import polars as pl
import pyarrow.csv as pa_csv
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


def test_an_output_of_another_kind_is_refused(place, fitted, tmp_path):
    line = refuse("recommend", fitted, place / "log.csv", "--out", tmp_path / "r.json")
    assert "must end in .parquet or .csv" in line


def test_a_csv_holds_the_same(place, fitted, tmp_path):
    for name in ("r.csv", "r.parquet"):
        run("recommend", fitted, place / "log.csv", "--out", tmp_path / name)
    found, wanted = pa_csv.read_csv(tmp_path / "r.csv"), pq.read_table(tmp_path / "r.parquet")
    assert found.column_names == wanted.column_names
    assert found["recommended_action"].to_pylist() == wanted["recommended_action"].to_pylist()


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """A table of one row a patient with two drugs as text and a dose, and what was survived."""
    rng = np.random.default_rng(0)
    n = 300
    dose = np.where(rng.random(n) < 0.6, rng.gamma(2, 100, n), 0.0)
    table = pl.DataFrame({
        "id": np.arange(n), "t": np.zeros(n, int), "x": rng.normal(size=n),
        "drug": rng.choice(["aspirin", "heparin"], n), "fluid_ml": dose,
        "survived": rng.integers(0, 2, n),
    })  # fmt: skip
    path = tmp_path_factory.mktemp("ward") / "ward.csv"
    table.write_csv(path)
    return path


ROLES = ("--stay", "id", "--step", "t", "--lag", 0, "--reward", "survived")


def test_treatments_are_recommended_by_their_names(ward, tmp_path):
    drop = ward.parent / "drug.csv"
    pl.read_csv(ward).drop("fluid_ml").write_csv(drop)
    run("fit", drop, "--out", tmp_path / "r", *ROLES, "--action", "drug", *settings_for())
    out = tmp_path / "r.csv"
    told = run("recommend", tmp_path / "r", drop, "--out", out)
    table = pl.read_csv(out)
    assert set(table["recommended_action"]) <= {"aspirin", "heparin"}
    assert table["logged_action"].to_list() == pl.read_csv(ward)["drug"].to_list()
    chosen = table["recommended_number"].to_list()
    assert [["aspirin", "heparin"][k] for k in chosen] == table["recommended_action"].to_list()
    assert {"p_aspirin", "p_heparin"} <= set(table.columns)
    assert any(name in told for name in ("aspirin", "heparin"))


def test_a_recommended_dose_has_its_range_and_median(ward, tmp_path):
    dose = ward.parent / "dose.csv"
    pl.read_csv(ward).drop("drug").write_csv(dose)
    run("fit", dose, "--out", tmp_path / "r", *ROLES, "--dose", "fluid_ml", "--bins", 3,
        "--method", "most-frequent")  # fmt: skip
    told = run("recommend", tmp_path / "r", dose, "--out", tmp_path / "r.parquet")
    table = pl.read_parquet(tmp_path / "r.parquet")
    given = pl.read_csv(ward)["fluid_ml"].to_numpy()
    assert {"fluid_low", "fluid_high", "fluid_median"} <= set(table.columns)
    assert "fluid none" in told
    assert set(table["recommended_action"]) == {"fluid none"}
    assert set(table["fluid_high"]) == {0.0}
    classes = [name for name in table.columns if name.startswith("p_")]
    middle = np.median(given[given > 0])
    assert classes == [f"p_fluid {words}" for words in
                       ("none", f"up to {middle:.3g}", f"over {middle:.3g}")]  # fmt: skip


def test_a_changed_run_is_refused_by_file(place, tmp_path):
    run("fit", place / "log", "--out", tmp_path / "r", "--method", "random")
    path = tmp_path / "r" / "policy" / "policy.json"
    path.write_bytes(path.read_bytes().replace(b"uniform", b"softmax"))
    line = refuse("recommend", tmp_path / "r", place / "log", "--out", tmp_path / "o.parquet")
    assert "policy.json: was changed" in line
    assert not (tmp_path / "o.parquet").exists()
