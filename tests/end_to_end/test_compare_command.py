"""`etips compare` and rules on the command line."""

import json

import numpy as np
import polars as pl
import pytest
from commands import call, refuse

from etips.worlds.clinic import Clinic


def run(*arguments):
    """A command that succeeds; what it remarks about the table stands apart."""
    result = call(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    assert "Traceback" not in result.stderr
    return result.stdout


ROLES = ("--action", "drug", "--loss", "died", "--propensity", "p")
SICK = "sick=case when severity > 0 then 'drug' else 'none' end"


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    """One row a patient: text treatment, two sites that nobody should learn from, a date."""
    rng = np.random.default_rng(0)
    n = 900
    severity = rng.normal(size=n).round(3)
    chance = 0.3 + 0.4 * (severity > 0)
    drug = rng.random(n) < chance
    risk = (
        0.2 + 0.3 * (severity > 0) - 0.25 * (drug & (severity > 0)) + 0.2 * (drug & (severity < 0))
    )
    frame = pl.DataFrame(
        {
            "severity": severity,
            "af": np.where(rng.random(n) < 0.3, "Y", "N"),
            "site": np.where(rng.random(n) < 0.5, "north", "south"),
            "admitted": [f"{2018 + i % 3}-0{1 + i % 9}-11" for i in range(n)],
            "drug": np.where(drug, "drug", "none"),
            "p": np.where(drug, chance, 1 - chance),
            "died": (rng.random(n) < risk).astype(int),
        }
    )
    place = tmp_path_factory.mktemp("trial") / "trial.csv"
    frame.write_csv(place)
    return place


def test_rules_are_evaluated_without_a_run_and_named_in_the_results(trial, tmp_path):
    out = tmp_path / "results.json"
    said = run("evaluate", trial, *ROLES, "--drop", "site", "--rule", SICK, "--rule", "all='drug'",
               "--out", out)  # fmt: skip
    assert "sick" in said
    document = json.loads(out.read_text())
    assert [method["name"] for method in document["methods"]] == ["sick", "all"]
    assert "severity > 0" in document["methods"][0]["sentence"]
    assert document["exhibits"]["settings"]["sick"]["rule"].startswith("case when severity")


def test_rules_are_compared_in_pairs_and_by_a_column_that_nobody_sees(trial, tmp_path):
    page = tmp_path / "page.html"
    said = run("compare", trial, *ROLES, "--drop", "site", "--rule", SICK, "--rule", "all='drug'",
               "--by", "site", "--out", page)  # fmt: skip
    assert "sick - all" in said
    assert "lower risk" in said
    assert "north to south, overlap" in said
    plot = [line for line in said.splitlines() if "o" in line and ":" in line]
    assert plot
    assert page.read_text().startswith("<!doctype html>")


def test_figures_that_were_kept_become_a_page_later(trial, tmp_path):
    run("compare", trial, *ROLES, "--by", "site", "--out", tmp_path / "c.json")
    run("report", tmp_path / "c.json", "--out", tmp_path / "c.html")
    assert "Practice by site" in (tmp_path / "c.html").read_text()


def test_years_are_compared_without_any_policy_and_as_json(trial):
    said = json.loads(run("compare", trial, *ROLES, "--by", "admitted", "--json"))
    assert [own["level"] for own in said["places"]["places"]] == ["2018", "2019", "2020"]
    assert said["pairs"] == []


def test_a_run_and_a_rule_stand_side_by_side(tmp_path):
    for seed, name in enumerate(("learn", "held")):
        Clinic(n_actions=3).log(80, seed=seed).save(tmp_path / name)
    run("fit", tmp_path / "learn", "--out", tmp_path / "even", "--method", "random")
    (tmp_path / "rules.toml").write_text('[rules]\nfirst = "0"\n')
    said = run("compare", tmp_path / "even", tmp_path / "held", "--rules", tmp_path / "rules.toml",
               "--reference", "clinicians")  # fmt: skip
    assert "even - clinicians" in said
    assert "first - clinicians" in said
    assert "even - first" not in said


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ["--rule", "a=severty > 0"],
            "column severty: is not among what a decision sees. There is",
        ),
        (["--rule", "a='drgu'"], "Did you mean 'drug'?"),
        (["--rule", "a=died > 0"], "column died: is not among"),
        (["--rule", "severity > 0"], "must be NAME=EXPRESSION"),
        (["--rule", "a=1", "--rule", "a=0"], "must be given once"),
        (["--rule", "clinicians=1"], "must not be called clinicians"),
        (["--rule", "a=1", "--by", "hospital"], "hospital"),
        (["--rule", "a=1", "--reference", "b"], "reference: must be one of a, clinicians"),
        (["--rule", "a=1", "--target", "x"], "target: is a place"),
        (["--rule", "a=1", "--out", "x.pdf"], "must end in .html or .json"),
        ([], "must be RUN [RUN ...] DATA, or DATA with --rule"),
    ],
)
def test_what_is_refused_is_refused_in_one_line(trial, options, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert told in refuse("compare", trial, *ROLES, *options)
    assert list(tmp_path.iterdir()) == []


def test_stays_that_were_kept_apart_are_compared_by_a_column_that_nobody_sees(trial, tmp_path):
    options = (*ROLES, "--drop", "site,admitted", "--method", "most-frequent", "--hold-out", "0.5")
    run("fit", trial, *options, "--out", tmp_path / "usual")
    said = json.loads(run("compare", tmp_path / "usual", trial, "--by", "site", "--json"))
    places = said["places"]["places"]
    assert [own["level"] for own in places] == ["north", "south"]
    assert 380 <= said["data"]["n_decisions"] <= 520
    assert sum(own["n_decisions"] for own in places) == said["data"]["n_decisions"]
