"""From a table to a page: what `etips evaluate` leaves, what `etips report` makes of it (P1)."""

import json
import logging
import re

import numpy as np
import polars as pl
import pytest
from commands import call, refuse, run

import etips
from etips.results.parsing import parse_results

QUICK = ["--method", "etips"] + [
    part
    for setting in ("hidden=4", "epochs=1", "n_folds=2", "translations=0.3,0.7")
    for part in ("--set", setting)
]
COLUMNS = ("--stay", "patient", "--step", "t", "--action", "dose", "--loss", "harm")
CANARIES = {
    "patient": "CANARYSTAY",
    "t": 7919,
    "hr": 104729.375,
    "lactate": 611953.25,
    "age": 15485.875,
    "ward": "CANARYWARD",
    "chance": 0.3141592,
}


@pytest.fixture(scope="module")
def table():
    """Eighty stays of three steps; one stay carries a canary in every column but two."""
    rng = np.random.default_rng(0)
    n_stays, n = 80, 240
    frame = pl.DataFrame(
        {
            "patient": [f"s{i:03}" for i in np.repeat(np.arange(n_stays), 3)],
            "t": np.tile(np.arange(3), n_stays),
            "hr": rng.normal(80, 10, n),
            "lactate": rng.normal(2, 1, n),
            "age": np.repeat(rng.integers(20, 90, n_stays), 3).astype(float),
            "ward": np.repeat(np.where(np.arange(n_stays) % 2, "a", "b"), 3),
            "dose": rng.integers(0, 3, n),
            "harm": (rng.random(n) < 0.4).astype(float),
            "chance": np.full(n, 1 / 3),
        }
    )
    marked = frame["patient"] == "s007"
    last = marked & (frame["t"] == 2)
    for name, value in CANARIES.items():
        where = last if name in ("t", "hr", "lactate", "chance") else marked
        changed = pl.when(pl.Series(where)).then(pl.lit(value)).otherwise(pl.col(name))
        frame = frame.with_columns(changed.alias(name))
    return frame


@pytest.fixture(scope="module")
def place(tmp_path_factory, table):
    folder = tmp_path_factory.mktemp("work")
    table.write_csv(folder / "log.csv")
    roles = {"stay": "patient", "step": "t", "action": "dose", "loss": "harm"}
    more = {**roles, "static": ["age", "ward"], "categorical": ["ward"]}
    etips.read_table(folder / "log.csv", propensity="chance", **more).save(folder / "known")
    etips.read_table(table.drop("chance"), **more).save(folder / "log")
    run("fit", folder / "log", "--out", folder / "run", *QUICK)
    run("evaluate", folder / "run", folder / "log", "--allow-seen")
    return folder


def test_one_run_keeps_its_results_with_all_that_a_report_holds(place):
    document = json.loads((place / "run" / "results.json").read_bytes())
    assert parse_results(document).exhibits
    assert [m["name"] for m in document["methods"]] == ["run"]
    assert document["exhibits"]["settings"]["run"]["method"] == "etips"
    path = document["exhibits"]["paths"]["run"]
    assert sum(c["chosen"] for c in path) == 1
    assert {c["translation"] for c in path} - {None} == {0.3, 0.7}


def test_several_runs_write_only_where_they_are_told(place, tmp_path):
    run("fit", place / "log", "--out", tmp_path / "run", "--method", "random")
    runs = [place / "run", tmp_path / "run"]
    out = run("evaluate", *runs, place / "log", "--allow-seen", "--json")
    assert [m["name"] for m in json.loads(out)["methods"]] == [str(r) for r in runs]
    assert not (tmp_path / "run" / "results.json").exists()
    run("evaluate", tmp_path / "run", place / "log", "--out", tmp_path / "r.json")
    assert not (tmp_path / "run" / "results.json").exists()
    run("report", tmp_path / "r.json", "--out", tmp_path / "r.html")
    assert "Report on run" in (tmp_path / "r.html").read_text()


def test_a_report_is_one_file_and_its_verdict_is_told(place, tmp_path):
    said = run("report", place / "run", "--out", tmp_path / "r.html")
    document = json.loads((place / "run" / "results.json").read_bytes())
    assert f"verdict: {document['methods'][0]['verdict']}" in said
    page = (tmp_path / "r.html").read_text()
    assert "default-src 'none'" in page
    assert "not for clinical use" in page
    assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", page)
    assert "translation 0.7" in page


def test_without_a_place_the_page_goes_beside_the_results(place):
    run("report", place / "run")
    assert (place / "run" / "report.html").is_file()
    run("report", place / "run", "--out", place / "run.csv")
    assert (place / "run.csv").read_text().startswith("policy,verdict,estimator,risk")


def test_fitting_anew_takes_the_results_of_the_old_policy_away(place, tmp_path):
    fit = ("fit", place / "log", "--out", tmp_path / "run", "--method", "random")
    run(*fit)
    run("evaluate", tmp_path / "run", place / "log")
    assert (tmp_path / "run" / "results.json").is_file()
    run(*fit, "--overwrite")
    assert "Run etips evaluate first" in refuse("report", tmp_path / "run")


@pytest.mark.parametrize(
    ("content", "words"),
    [("{", "is not valid JSON"), ("{}", "is not a results document"), (None, "is missing")],
)
def test_what_is_no_result_is_refused_and_nothing_is_written(content, words, tmp_path):
    if content is not None:
        (tmp_path / "results.json").write_text(content)
    before = sorted(tmp_path.iterdir())
    assert words in refuse("report", tmp_path)
    assert sorted(tmp_path.iterdir()) == before
    assert "must end in .html or .csv" in refuse("report", tmp_path, "--out", tmp_path / "x.pdf")


HOSTILE = (
    "<script>alert(1)</script>",
    '=HYPERLINK("http://evil")',
    "</table>\"'><img src=x onerror=alert(1)>",
    "[/red] long " + "x" * 3000,
)


def test_p5_a_study_with_hostile_names_gives_a_page_intact(table, tmp_path):
    """P5: columns, levels, actions and the run itself; from the table to the page and the sheet."""
    script, formula, image, long = HOSTILE
    named = table.rename({"hr": script, "lactate": long, "age": formula, "ward": image})
    named = named.with_columns(pl.col(image).replace({"a": script, "b": formula}))
    roles = {"stay": "patient", "step": "t", "action": "dose", "loss": "harm"}
    more = {"static": [formula, image], "categorical": [image], "actions": (script, formula, long)}
    etips.read_table(named.drop("chance"), **roles, **more).save(tmp_path / "data")
    place = tmp_path / "=run <b>[x]"
    run("fit", tmp_path / "data", "--out", place, *QUICK)
    run("evaluate", place, tmp_path / "data", "--allow-seen")
    run("report", place)
    run("report", place, "--out", tmp_path / "sheet.csv")
    page = (place / "report.html").read_text()
    for found in re.findall(r"<(\w+)", page):
        assert found not in ("script", "img")
    assert page.count("</html>") == 1
    assert "&lt;script&gt;" in page
    assert len(page) < 400_000
    assert (
        max(len(word) for word in re.sub(r"<[^>]*>", " ", page.split("</style>")[1]).split()) < 400
    )
    assert all(
        line.startswith("'=run") for line in (tmp_path / "sheet.csv").read_text().split("\n")[1:-1]
    )


def test_p1_no_value_of_a_patient_is_in_any_output(place, tmp_path, caplog):
    """P1: canaries in every column; commands that succeed and that fail, at DEBUG."""
    caplog.set_level(logging.DEBUG)
    seen = ["--allow-seen"]
    results = [
        call("fit", place / "log", "--out", tmp_path / "run", *QUICK),
        call("evaluate", tmp_path / "run", place / "log", *seen),
        call("evaluate", tmp_path / "run", place / "known", *seen, "--out", tmp_path / "k.json"),
        call("evaluate", tmp_path / "run", place / "log", *seen, "--json"),
        call("report", tmp_path / "run"),
        call("report", tmp_path / "run", "--out", tmp_path / "run.csv"),
        call("report", tmp_path / "k.json", "--out", tmp_path / "k.html"),
        call("report", place / "log.csv"),
        call("evaluate", tmp_path / "run", place / "log"),
        call("evaluate", tmp_path / "run", place / "log", *seen, "--estimators", "magic"),
        call("evaluate", tmp_path / "run", place / "log.csv", *COLUMNS[:-1], "ward"),
        call("fit", place / "log.csv", "--out", tmp_path / "no", *COLUMNS),
    ]
    assert [r.exit_code for r in results[:7]] == [0] * 7
    assert [r.exit_code for r in results[7:-1]] == [2] * 4
    assert results[-1].exit_code == 0  # wards are categories, and gaps are carried
    said = "".join(r.stdout + r.stderr for r in results) + caplog.text
    files = [
        *(tmp_path / "run" / name for name in ("results.json", "report.html", "path.json")),
        *(tmp_path / "run" / name for name in ("log.jsonl", "config.toml")),
        *(tmp_path / name for name in ("run.csv", "k.json", "k.html")),
    ]
    said += "".join(path.read_text() for path in files)
    for name, canary in CANARIES.items():
        words = str(canary).rstrip("0").rstrip(".") if isinstance(canary, float) else str(canary)
        assert not re.search(rf"(?<![\d.]){re.escape(words)}(?!\d)", said), name
