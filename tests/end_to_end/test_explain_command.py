"""`etips explain`: a stay, the whole, a page; what cannot be explained is refused in a line."""

import json
import sys

import pytest
from commands import call, refuse, run

from etips.cli.main import INTERRUPTED


def test_a_stay_is_explained_on_the_terminal_and_as_a_page(place, fitted, tmp_path):
    out = tmp_path / "why.html"
    said = run("explain", fitted, place / "log.csv", "--stay", "stay 001", "--out", out)
    assert said.startswith("stay stay 001\n  step 1: recommends ")
    assert "under 11 people" in said or "people (effective)" in said
    assert out.read_text().startswith("<!doctype html>")


def test_json_is_that_of_python(place, fitted):
    said = json.loads(run("explain", fitted, place / "log.csv", "--stay", "stay 001", "--json"))
    assert said["stay"]["stay"] == "stay 001"
    assert said["overall"] is None
    assert {"attribution", "similar", "measure_next"} <= set(said["stay"]["decisions"][0])


def test_left_out_the_whole_policy_is_explained_also_beside_another_seed(place, fitted):
    said = run("explain", fitted, place / "log.csv", "--also", fitted)
    assert said.startswith("what the policy goes by: ")
    assert "over 2 seeds: 100%" in said


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--stay", "nobody"], "stay: is not in the data"),
        (["--out", "why.txt"], "must end in .html, .json or .png"),
        (["--save-rules", "rules"], "goes with --tree"),
    ],
)
def test_refusals(place, fitted, options, line):
    assert line in refuse("explain", fitted, place / "log.csv", *options)


def test_without_captum_one_line_says_what_to_install(place, fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "captum", None)
    line = refuse("explain", fitted, place / "log.csv")
    assert "pip install 'etips[explain]'" in line


def test_a_run_is_exported_for_other_programs(fitted, tmp_path):
    out = tmp_path / "policy.onnx"
    assert "probabilities" in run("export", fitted, "--onnx", out)
    session = pytest.importorskip("onnxruntime").InferenceSession(str(out))
    assert [own.name for own in session.get_outputs()] == ["probabilities", "abstained"]
    assert "must end in .onnx" in refuse("export", fitted, "--onnx", tmp_path / "policy.txt")


def test_interrupted_it_says_so_in_a_line_and_leaves_nothing(place, fitted, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("etips.explanation.explanation_file.render_explanation", stop)
    result = call("explain", fitted, place / "log.csv", "--out", tmp_path / "a.html")
    assert result.exit_code == INTERRUPTED
    assert result.stdout == ""
    assert result.stderr == "etips explain: interrupted\n"
    assert list(tmp_path.iterdir()) == []
