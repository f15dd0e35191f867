"""`etips reproduce` as a user runs it: what it prints and writes, how it refuses."""

import json
import subprocess
import sys
import time

import pytest
import torch
from commands import refuse, run
from small_studies import clinic_document, zeros_document
from small_worlds import CLINIC

from etips.files.toml import format_toml


@pytest.fixture
def small(tmp_path):
    """The two small experiments as files."""
    places = {}
    for name, document in (("table1", zeros_document()), ("table2", clinic_document())):
        places[name] = tmp_path / f"{name}.toml"
        places[name].write_text(format_toml(document))
    return places


def test_table_two_is_printed_and_written(small, tmp_path):
    out = tmp_path / "out"
    printed = run(
        "reproduce", "table2", "--config", small["table2"], "--out", out, "--device", "cpu"
    )
    assert "Small Table II (preset etips)" in printed
    for name in ("predictive", "direct", "most-frequent", "random", "etips", "doubly-robust"):
        assert name in printed
    assert "QUICK" not in printed
    results = json.loads((out / "results.json").read_bytes())
    assert results["methods"][0]["name"] == "predictive"
    page = (out / "report.html").read_text()
    assert "Small Table II" in page
    assert "For research, not for clinical use" in page
    for chart in results["charts"]:
        assert (out / "figures" / f"{chart['name']}.svg").read_bytes().startswith(b"<?xml")
        assert (out / "figures" / f"{chart['name']}.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_command_again_writes_the_same_bytes(small, tmp_path):
    command = ("table2", "--config", small["table2"], "--out", tmp_path / "out", "--device", "cpu")
    run("reproduce", *command)
    first = (tmp_path / "out" / "results.json").read_bytes()
    run("reproduce", *command)
    assert (tmp_path / "out" / "results.json").read_bytes() == first


@pytest.mark.slow
def test_killed_again_and_again_it_ends_with_the_same_figures(small, tmp_path):
    """F2: while the data are made, while a network trains, with two processes at work."""
    given = ["reproduce", "table2", "--config", small["table2"], "--device", "cpu", "--out"]
    run(*given, tmp_path / "whole")
    out = tmp_path / "killed"
    moments = [
        (1, lambda: (out / "tasks").exists()),
        (1, lambda: (out / "tasks" / "predictive-fold-1" / "checkpoint").exists()),
        (2, lambda: (out / "tasks" / "etips-fold-1" / "log.jsonl").exists()),
    ]
    for jobs, reached in moments:
        command = [sys.executable, "-m", "etips", *given, out, "--jobs", jobs]
        process = subprocess.Popen(
            [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        while not reached() and process.poll() is None:
            time.sleep(0.002)
        process.kill()
        process.communicate()
        assert process.returncode == -9, "it was over before it could be killed"
    run(*given, out)
    whole, killed = (
        json.loads((tmp_path / name / "results.json").read_bytes()) for name in ("whole", "killed")
    )
    assert {**killed, "seconds": 0} == {**whole, "seconds": 0}


def test_table_one_prints_the_published_figure_beside(small, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # so that a spread stands beside its figure
    command = ("table1", "--task", "zeros", "--config", small["table1"], "--device", "cpu")
    printed = run(
        "reproduce", *command, "--out", tmp_path / "out", "--preset", "authors", "--quick"
    )
    assert printed.startswith("QUICK RUN: ")
    assert "0.923 ± 0.0122" in printed
    assert "zeros, direct: the answer 0 to every sequence" in printed
    assert "0.343" in printed


def test_json_holds_the_tables(small, tmp_path):
    command = ("table2", "--config", small["table2"], "--out", tmp_path / "out", "--device", "cpu")
    found = json.loads(run("reproduce", *command, "--json"))["table2"]
    assert found["title"] == "Small Table II"
    assert found["tables"][0]["columns"][0] == "policy"


def test_markdown_holds_the_tables_for_a_document(small, tmp_path):
    command = ("table2", "--config", small["table2"], "--out", tmp_path / "out", "--device", "cpu")
    lines = run("reproduce", *command, "--markdown").splitlines()
    assert lines[0] == "Preset etips: small."
    head = next(line for line in lines if line.startswith("| policy"))
    assert head.startswith("| policy | ATENP | IPS | SNIPS | DR | matching factor |")
    assert lines[lines.index(head) + 1].startswith("| --- | --- |")
    row = lines[lines.index(head) + 2]
    assert row.startswith("| predictive | ")
    assert row.count("|") == head.count("|")


def test_a_folder_of_stays_takes_the_place_of_the_world(small, tmp_path):
    CLINIC.log(60, seed=0).save(tmp_path / "cohort")
    command = ("table2", "--config", small["table2"], "--data", tmp_path / "cohort")
    run("reproduce", *command, "--lag", "0", "--out", tmp_path / "out", "--device", "cpu")
    results = json.loads((tmp_path / "out" / "results.json").read_bytes())
    assert (results["data"]["n_stays"], results["data"]["lag"]) == (60, 0)


REFUSED = [
    (("table2", "--task", "zeros"), "--task: does not apply to table2"),
    (("table1", "--lag", "1"), "--lag: does not apply to table1"),
    (("table1", "--data", "x"), "--data: does not apply to table1"),
    (("table1", "--world", "clinic"), "--world: does not apply to table1"),
    (("table2", "--data", "x", "--world", "clinic"), "--data, --world: must not both be given"),
    (("table2", "--world", "clinic", "--lag", "1"), "--lag: must be 0"),
    (("table1", "--config", "x.toml"), "--config: is one experiment: name its --task"),
    (("table2", "--config", "nowhere.toml"), "nowhere.toml: cannot be read"),
    (("table2", "--data", "nowhere"), "nowhere: must be a folder with schema.json"),
    (("table2", "--json", "--markdown"), "--json, --markdown: must not both be given"),
    (("table2", "--out", "nowhere/deep"), "nowhere: must be a folder that exists"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_options_that_make_no_sense_are_refused_in_one_line(
    arguments, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert message in refuse("reproduce", *arguments)


def test_an_experiment_of_the_other_table_is_refused(small, tmp_path):
    line = refuse(
        "reproduce",
        "table1",
        "--task",
        "rows",
        "--config",
        small["table2"],
        "--out",
        tmp_path / "o",
    )
    assert "is an experiment of table2" in line
    assert not (tmp_path / "o").exists()


def test_a_file_in_the_way_is_refused(small, tmp_path):
    (tmp_path / "out").write_text("")
    assert "exists and is not a folder" in refuse("reproduce", "table2", "--out", tmp_path / "out")


def test_the_short_run_of_the_digits_ends_as_shipped(tmp_path):
    """Every method of Table I, as a user runs it first: the one such run that is not slow."""
    printed = run("reproduce", "table1", "--task", "rows", "--quick", "--out", tmp_path / "o")
    assert printed.startswith("QUICK RUN: ")
    rows = ("full-supervision", "logging", "direct", "random", "ips", "tips", "eips", "etips")
    assert all(name in printed for name in (*rows, "doubly-robust", "predictive"))
    assert {"results.json", "report.html", "figures"} <= {
        p.name for p in (tmp_path / "o").iterdir()
    }


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("table1",), ("table2",), ("table2", "--lag", "1")])
@pytest.mark.parametrize("preset", ["etips", "paper", "authors"])
def test_the_shipped_short_runs_end(arguments, preset, tmp_path):
    printed = run("reproduce", *arguments, "--quick", "--preset", preset, "--out", tmp_path / "o")
    assert printed.startswith("QUICK RUN: ")


def test_data_that_are_not_there_leave_no_folder(tmp_path):
    out = tmp_path / "out"
    assert "must be a folder" in refuse(
        "reproduce", "table2", "--data", tmp_path / "nowhere", "--out", out
    )
    assert not out.exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU to be found")
@pytest.mark.parametrize("more", [(), ("--quick",), ("--jobs", "2")])
def test_a_gpu_that_is_not_there_leaves_no_folder(more, tmp_path):
    out = tmp_path / "out"
    line = refuse("reproduce", "table2", "--device", "cuda", "--out", out, *more)
    assert "device: cuda was asked for, but torch finds no GPU" in line
    assert not out.exists()
