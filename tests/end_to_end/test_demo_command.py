"""`etips demo`: what it writes, what it says."""

import json
import re

import pytest
from commands import refuse, run


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """What the demo wrote, and what it said."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    return folder, run("demo", "--out", folder, "--stays", 60, "--jobs", 1)


def test_it_writes_a_report_and_results_of_the_contract(written):
    folder, output = written
    assert {p.name for p in folder.iterdir()} == {"report.html", "results.json", "figures"}
    results = json.loads((folder / "results.json").read_bytes())
    assert set(results) >= {"data", "methods", "seconds"}
    assert results["methods"]
    for method in results["methods"]:
        wanted = {"name", "estimates", "diagnostics", "verdict", "reasons", "truth"}
        assert set(method) >= wanted
        assert 0 < method["truth"] < 1
        for estimate in method["estimates"]:
            fields = {"estimator", "risk", "std_error", "low", "high"}
            assert set(estimate) >= fields
    found, honest, *throughout, where = output[output.index("Least true risk") :].splitlines()
    assert "The policy decides throughout" in " ".join(throughout)
    best = min(results["methods"], key=lambda method: method["truth"])
    assert found.startswith(f"Least true risk: {best['name']}, {best['truth']:.4f}; the clinicians")
    assert re.fullmatch(
        r"\d of 7 intervals hold the truth; of the \d called reliable, \d do\.", honest
    )
    assert (
        where == f"Open {folder / 'report.html'} to look at it, or read {folder / 'results.json'}."
    )


def test_every_learner_is_judged_and_the_truth_stands_beside(written):
    results = json.loads((written[0] / "results.json").read_bytes())
    names = [method["name"] for method in results["methods"]]
    assert names == [
        "predictive",
        "direct",
        "most-frequent",
        "random",
        "eips",
        "etips",
        "doubly-robust",
    ]
    assert all(method["verdict"] for method in results["methods"])


def test_the_report_loads_nothing_from_elsewhere(written):
    page = (written[0] / "report.html").read_text()
    assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", page)
    assert "default-src 'none'" in page
    assert "not for clinical use" in page


def test_a_second_run_gives_the_same(written):
    folder = written[0]
    before = json.loads((folder / "results.json").read_bytes())
    run("demo", "--out", folder, "--stays", 60, "--jobs", 1)
    after = json.loads((folder / "results.json").read_bytes())
    for results in (before, after):
        del results["seconds"]
    assert before == after


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("keep")
    assert "is not a folder" in refuse("demo", "--out", tmp_path / "file", "--stays", 60)
    assert "must be a folder" in refuse("demo", "--out", tmp_path / "a" / "b", "--stays", 60)
    assert (tmp_path / "file").read_text() == "keep"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]
