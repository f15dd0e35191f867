"""`etips bench` as a user calls it."""

import json

import pytest
from commands import refuse, run

from etips.bench.bench_worlds import QUICK_WORLDS
from etips.learn.learners.catalogue import METHODS


def test_two_methods_in_two_worlds_leave_results_a_page_and_figures(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = tmp_path / "bench"
    asked = ("bench", "--quick", "--out", out, "--worlds", "clinic-hidden,icu-sepsis-lag1")
    told = run(*asked, "--methods", "random,q-learning", "--jobs", "1")
    assert {p.name for p in out.iterdir()} >= {"results.json", "report.html", "figures", "tasks"}
    assert "clinic-hidden" in told
    assert "q-learning" in told
    results = json.loads((out / "results.json").read_text())
    assert [own["world"] for own in results["standings"]] == ["clinic-hidden", "icu-sepsis-lag1"]
    assert results["standings"][1]["clinicians_stay"] is not None
    again = run(*asked, "--methods", "random,q-learning", "--jobs", "1", "--markdown")
    assert "## clinic-hidden" in again
    assert json.loads((out / "results.json").read_text())["entries"] == results["entries"]


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("--worlds", "nowhere", "--worlds: must be some of"),
        ("--worlds", ",", "--worlds: must name at least one"),
        ("--methods", "magic", "--methods: must be some of"),
        ("--worlds", "stroke-trial", "needs its file"),
        ("--trial", "none.csv", "cannot be read"),
    ],
)
def test_what_is_not_there_is_refused_and_nothing_is_left(option, value, rule, tmp_path):
    assert rule in refuse("bench", "--quick", "--out", tmp_path / "bench", option, value)
    assert not (tmp_path / "bench").exists()


@pytest.mark.slow
def test_a_quick_bench_has_every_method_in_every_kind_of_world(tmp_path):
    run("bench", "--quick", "--out", tmp_path / "bench")
    results = json.loads((tmp_path / "bench" / "results.json").read_text())
    assert len(results["entries"]) == len(METHODS) * len(QUICK_WORLDS)
    assert [e["method"] for e in results["entries"] if e["failed"] is not None] == []
