"""What `etips fit` does if nothing is said: the super learner, from the table to the page."""

import html
import json
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import replace

import pytest
from commands import call, refuse, run
from hospital_log import COLUMNS, STATIC, read

import etips
from etips.results.parsing import read_choice

QUICK = [
    part
    for own in ("candidates=regression,forest", "seconds=60", "n_folds=2")
    for part in ("--set", own)
]


@pytest.fixture(scope="module")
def learned(place, tmp_path_factory):
    """A run of the default, and what was printed."""
    folder = tmp_path_factory.mktemp("default") / "run"
    given = ("fit", place / "log.parquet", "--out", folder, *COLUMNS, *STATIC, *QUICK)
    return folder, run(*given)


def test_the_default_is_the_super_learner_and_its_settings_are_kept(learned, place, tmp_path):
    config = learned[0] / "config.toml"
    found = tomllib.loads(config.read_text())
    assert found["method"] == "auto"
    settings = {"candidates": ["regression", "forest"], "seconds": 60.0, "n_folds": 2}
    assert found["settings"] == settings
    run("fit", place / "log.parquet", "--out", tmp_path / "again", "--config", config)
    weights = "policy/weights.safetensors"
    assert (tmp_path / "again" / weights).read_bytes() == (learned[0] / weights).read_bytes()


def test_it_does_what_python_does(learned, place):
    training = etips.learn.Training(n_folds=2)
    own = etips.SuperLearner(candidates=["regression", "forest"], seconds=60, training=training)
    data = read(place / "log.parquet")
    same = etips.load(learned[0]).predict_proba(data)
    assert same.tobytes() == own.fit(data).predict_proba(data).tobytes()


@pytest.mark.parametrize("asked", ["magic", "", "forest,magic"])
def test_a_candidate_that_is_not_there_is_refused(asked, place, tmp_path):
    line = refuse("fit", place / "log", "--out", tmp_path / "run", "--set", f"candidates={asked}")
    assert "candidates: must be some of regression, forest, boosting" in line
    assert list(tmp_path.iterdir()) == []


def test_what_was_tried_is_one_table_of_eighty_columns_with_what_it_means(
    place, tmp_path, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    given = ("fit", place / "log.parquet", "--out", tmp_path / "run", *COLUMNS, *STATIC, *QUICK)
    said = run(*given)
    drawn = [line for line in said.splitlines() if line[:1] in "┏┃┡│└"]
    assert max(map(len, drawn)) <= 80
    assert sum(line.startswith("┏") for line in drawn) == 1  # not in parts
    assert [line for line in drawn if "<-" in line]
    assert "Models are shown as each would do alone" in said
    assert "Kept: " in said


def test_the_record_is_in_the_run_and_comes_back(learned, place, tmp_path):
    record = read_choice(learned[0] / "choice.json")
    assert record.sentence in " ".join(learned[1].split())
    assert sum(own.weight or 0 for own in record.tried) == pytest.approx(1)
    assert sum(own.kept for own in record.tried if own.tier != "model") == 1
    assert set(record.seconds) == {own.name for own in record.tried if own.tier == "model"}
    given = ("fit", place / "log", "--out", tmp_path / "run", "--method", "random")
    run(*given)
    assert not (tmp_path / "run" / "choice.json").exists()


def test_what_costs_too_much_is_named_with_the_way_to_have_it(place, tmp_path):
    given = ("fit", place / "log", "--out", tmp_path / "run", *QUICK, "--set", "seconds=0.2")
    result = call(*given, "--json")
    rows = json.loads(result.stdout)
    assert [row["candidate"] for row in rows if row["kind"] == "left out"]
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("Left out")]
    assert "forest (about " in line
    assert "--set seconds=" in line
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [own for own in log if own["stage"] == "regression" and "fitted in" in own["event"]]


def test_it_is_judged_recommended_from_explained_exported_and_shown(learned, place, tmp_path):
    folder, data = learned[0], place / "log"
    run("evaluate", folder, data, "--allow-seen")
    run("report", folder)
    page = (folder / "report.html").read_text()
    assert "What was tried, what was kept" in page
    assert read_choice(folder / "choice.json").sentence in html.unescape(page)
    run("recommend", folder, data, "--out", tmp_path / "advice.csv")
    assert "Kept: " in " ".join(run("explain", folder, data).split())
    run("export", folder, "--onnx", tmp_path / "policy.onnx")


def test_f2_killed_and_started_again_it_ends_with_the_same_bytes(place, tmp_path):
    """F2: networks go on where they stood, models of rows are fitted anew."""
    settings = ("candidates=regression,forest,network", "n_folds=2", "hidden=8", "epochs=30")
    given = ["fit", place / "log", *(part for own in settings for part in ("--set", own))]
    run(*given, "--out", tmp_path / "whole")
    killed = tmp_path / "killed"
    start = [sys.executable, "-c", "from etips.cli.main import main; main()"]
    process = subprocess.Popen(
        [*start, *map(str, given), "--out", str(killed)], stderr=subprocess.PIPE
    )
    while not list(killed.glob("checkpoint/outcome*")) and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -9, "it was over before it could be killed"
    assert list(killed.glob("checkpoint/propensity*"))
    run(*given, "--out", killed)
    for name in ("policy", "propensity"):
        for file in (tmp_path / "whole" / name).iterdir():
            assert (killed / name / file.name).read_bytes() == file.read_bytes()
    records = [read_choice(folder / "choice.json") for folder in (tmp_path / "whole", killed)]
    assert replace(records[0], seconds={}) == replace(records[1], seconds={})
    assert not (killed / "checkpoint").exists()
