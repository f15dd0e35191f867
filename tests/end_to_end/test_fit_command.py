"""`etips fit`: from a table or a folder to a run."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from commands import refuse, run
from hospital_log import COLUMNS, METHODS, ROWS, SIMPLE, STATIC, read, settings_for

import etips
from etips.learn import EtIPS, Settings, Training
from etips.learn.fitting.stages import ENCODER, OUTCOME, POLICY, PROPENSITY

ETIPS = ("--method", "etips")  # one given later goes over it


@pytest.mark.parametrize("method", [*METHODS, *ROWS, *SIMPLE])
def test_every_method_learns_from_a_table(method, place, tmp_path):
    propensity = ["--propensity", "chance"]
    run(
        *("fit", place / "known.parquet", "--out", tmp_path / "run", "--method", method),
        *(*COLUMNS, *STATIC, *propensity, *settings_for(method)),
    )
    policy = etips.load(tmp_path / "run")
    assert policy.schema.sequence == ("hr", "lactate")
    assert policy.schema.static == ("age", "weight")
    assert policy.schema.lag == 1


def test_folder_csv_and_parquet_give_the_same_policy(place, fitted, tmp_path):
    run("fit", place / "log", "--out", tmp_path / "a", *settings_for())
    run("fit", place / "log.csv", "--out", tmp_path / "b", *COLUMNS, *STATIC, *settings_for())
    weights = Path("policy") / "weights.safetensors"
    found = (fitted / weights).read_bytes()
    assert (tmp_path / "a" / weights).read_bytes() == found
    assert (tmp_path / "b" / weights).read_bytes() == found


def test_the_clinicians_policy_stands_beside_ours(place, fitted, tmp_path):
    data = read(place / "log.parquet")
    clinicians = etips.load(fitted / "propensity").predict_proba(data)
    assert clinicians.tobytes() == etips.load(fitted).propensities(data).tobytes()
    run("fit", place / "log", "--out", tmp_path / "a", *settings_for())
    run("fit", place / "log", "--out", tmp_path / "a", "--method", "random", "--overwrite")
    assert not (tmp_path / "a" / "propensity").exists()  # a uniform policy has none


def test_another_seed_gives_another_policy(place, fitted, tmp_path):
    run("fit", place / "log", "--out", tmp_path / "a", "--seed", 1, *settings_for())
    weights = Path("policy") / "weights.safetensors"
    assert (tmp_path / "a" / weights).read_bytes() != (fitted / weights).read_bytes()


def test_it_does_what_python_does(place, fitted):
    data = read(place / "log.parquet")
    stages = {
        name: Settings(**{**vars(stage), "epochs": 2})
        for name, stage in zip(
            ("propensity", "outcome", "policy"), (PROPENSITY, OUTCOME, POLICY), strict=True
        )
    }
    learner = EtIPS(
        translations=(0.3, 0.7),
        encoder=replace(ENCODER, hidden=6),
        training=Training(n_folds=2, device="auto", **stages),
    ).fit(data)
    same = etips.load(fitted).predict_proba(data)
    assert same.tobytes() == learner.predict_proba(data).tobytes()


def test_the_lag_is_an_option(place, tmp_path):
    run("fit", place / "log.csv", "--out", tmp_path / "a", *COLUMNS, "--lag", 0, *settings_for())
    assert etips.load(tmp_path / "a").schema.lag == 0
    run("fit", place / "log", "--out", tmp_path / "b", "--lag", 0, *settings_for())
    assert etips.load(tmp_path / "b").schema.lag == 0


def test_candidates_fit_a_terminal_of_eighty_columns_in_one_table(place, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    said = run("fit", place / "log.parquet", "--out", tmp_path / "run", *COLUMNS, *settings_for())
    drawn = [line for line in said.splitlines() if line[:1] in "┏┃┡│└"]
    assert max(map(len, drawn)) <= 80
    assert "".join(drawn).count("candidate") == 1  # a table that does not fit is parted into two
    assert said.count("After selection, ") == 1


def test_json_lists_the_candidates_with_one_chosen(place, tmp_path):
    text = run("fit", place / "log", "--out", tmp_path / "a", "--json", *settings_for())
    rows = json.loads(text)
    assert sum(row["chosen"] != "" for row in rows) == 1
    assert {"candidate", "held-out SNIPS", "matching factor", "effective size"} <= set(rows[0])


def test_json_has_no_word_that_json_lacks(place, tmp_path):
    for method in ("eips", "direct", "random"):
        text = run(
            *("fit", place / "log", "--out", tmp_path / method, "--method", method, "--json"),
            *settings_for(method),
        )
        json.loads(text, parse_constant=pytest.fail)


def test_a_taken_place_is_refused_before_anything_is_read(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("keep")
    line = refuse("fit", tmp_path / "no.csv", "--out", tmp_path / "run")
    assert "exists already" in line
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["thesis.txt"]


def test_overwrite_replaces_runs_and_nothing_else(place, fitted, tmp_path):
    run("fit", place / "log", "--out", tmp_path / "r", "--method", "random")
    again = ("fit", place / "log", "--out", tmp_path / "r", "--method", "most-frequent")
    run(*again, "--overwrite")
    assert etips.load(tmp_path / "r").kind == "constant"
    for name in ("file", "folder"):
        other = tmp_path / name
        if name == "file":
            other.write_text("keep")
        else:
            other.mkdir()
            (other / "thesis.tex").write_text("keep")
        line = refuse("fit", place / "log", "--out", other, "--method", "random", "--overwrite")
        assert "is not a run folder, so it stays" in line
    assert (tmp_path / "file").read_text() == "keep"
    assert [p.name for p in (tmp_path / "folder").iterdir()] == ["thesis.tex"]


def test_a_run_folder_is_for_its_owner_only(fitted):
    assert fitted.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no.csv", *COLUMNS], "is not a file that exists"),
        (["log.csv", *COLUMNS[2:]], "stay: must name a column where step does"),
        (["log.csv", *COLUMNS[:4]], r"--(action|loss) \(or --(dose|reward)\).*: must name columns"),
        (["log.csv", *COLUMNS[:6]], r"--(action|loss) \(or --(dose|reward)\).*: must name columns"),
        (["log.csv", *COLUMNS, "--static", "age,height"], "column height: is missing"),
        (["log.csv", "--stay", "nobody", *COLUMNS[2:]], "column nobody: is missing"),
        (["log.csv", *COLUMNS, "--static", "hr"], "must not change within a stay"),
        (["log.csv", *COLUMNS, "--propensity", "hr"], r"must be in \(0, 1\]"),
        (["log", *COLUMNS], "column options: go with a table"),
        (["log/..", "--lag", "1"], "holds no schema.json"),
        (["log", "--method", "tips"], "propensity: is not in the data"),
        (["log", "--set", "hidden"], "--set: takes key=value"),
        (["log", "--set", "colour=red"], "--set colour: is not a setting of etips"),
        (["log", "--set", "hidden=many"], "--set hidden: has a value of the wrong kind"),
        (["log", "--set", "hidden=0"], "hidden: must be"),
        (["log", "--set", "epochs=0"], "epochs: must be at least 1"),
        (["log", "--set", "device.epochs=3"], "device.epochs: is not a setting"),
        (["log", "--set", "policy.colour=3"], "policy.colour: is not a setting"),
        (["log", "--set", "support=2"], r"support: must be in \[0, 1\)"),
        (["log", "--set", "support=nan"], r"support: must be in \[0, 1\)"),
        (["log", "--set", "translations=0.1,nan"], "translations: must hold"),
        (["log", "--set", "init=zero"], "--set init: must be propensity or random"),
        (["log", "--set", "selection=x"], "--set selection: must be held-out or paper"),
        (["log", "--set", "n_folds=0"], "n_folds: must be at least 1"),
        (["log", "--set", "kl=-1"], "kl: must be finite"),
        (["log", "--method", "direct", "--set", "kl=0.1"], "kl: is not a setting of direct"),
        (["log", "--method", "random", "--set", "hidden=3"], "random has no settings"),
    ],
)
def test_bad_input_is_refused_and_leaves_nothing(arguments, words, place, tmp_path):
    first, *rest = arguments
    line = refuse("fit", place / first, "--out", tmp_path / "run", *ETIPS, *rest)
    assert re.search(words, line)
    assert list(tmp_path.iterdir()) == []


def test_a_place_without_a_parent_is_refused_before_training(place, tmp_path):
    line = refuse("fit", place / "no.csv", "--out", tmp_path / "a" / "b")
    assert "must be a folder that exists" in line


def test_a_run_that_could_not_be_written_is_taken_up_by_the_same_command(
    place, tmp_path, monkeypatch
):
    def fail(*_, **__):
        raise etips.FileError("disk", "is full")

    command = ("fit", place / "log", "--out", tmp_path / "run", "--method", "random")
    with monkeypatch.context() as patch:
        patch.setattr("etips.runs.folder.save_policy", fail)
        assert "disk: is full" in refuse(*command)
    run(*command)
    assert etips.load(tmp_path / "run").kind == "uniform"
