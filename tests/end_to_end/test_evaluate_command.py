"""`etips evaluate`: what it says of runs, and what it must not say."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from commands import refuse, run
from hospital_log import SIMPLE
from small_worlds import ward

from etips.worlds.clinic import Clinic


def test_runs_are_judged_side_by_side(tmp_path):
    for seed, name in enumerate(("learn", "held")):
        Clinic(n_actions=3).log(60, seed=seed).save(tmp_path / name)
    for method in SIMPLE:
        run("fit", tmp_path / "learn", "--out", tmp_path / method, "--method", method)
    runs = [tmp_path / method for method in SIMPLE]
    results = json.loads(run("evaluate", *runs, tmp_path / "held", "--json"))
    assert [m["name"] for m in results["methods"]] == list(SIMPLE)
    for method in results["methods"]:
        assert method["verdict"]
        assert {"matching_factor", "effective_sample_size", "n_matched"} <= set(
            method["diagnostics"]
        )
        for estimate in method["estimates"]:
            assert {"estimator", "risk", "std_error", "low", "high"} <= set(estimate)


def test_too_few_arguments_and_missing_runs_are_refused(place):
    assert "must be RUN [RUN ...] DATA" in refuse("evaluate", place / "log")
    assert "must be a folder" in refuse("evaluate", place / "nowhere", place / "log")


def test_names_in_brackets_are_printed_as_they_are(tmp_path):
    """Brackets are markup to what draws the tables, and a closing one alone would stop it."""
    Clinic(n_actions=3).log(60, seed=0).save(tmp_path / "data")
    (tmp_path / "a[").mkdir()
    place = tmp_path / "a[" / "b][red]"
    fit = run("fit", tmp_path / "data", "--out", place, "--method", "random")
    assert "a[/b][red]" in fit.replace("\n", "")
    assert "b][red]" in run("evaluate", place, tmp_path / "data").split("against")[0]


def said_of(loss_of, folder, *options):
    """What is said of two policies on a small log with a loss at every step."""
    log = ward(n_stays=30)
    log = replace(log, loss=np.zeros(log.n_steps))
    log = replace(log, loss=loss_of(log).astype(float))
    log.save(folder / "held")
    names = np.array([f"earlier {i}" for i in range(log.n_stays)])
    replace(log, sequence=log.sequence + np.float32(1), stay=names).save(folder / "learn")
    for method in SIMPLE:
        run("fit", folder / "learn", "--out", folder / method, "--method", method)
    runs = [folder / method for method in SIMPLE]
    return run("evaluate", *runs, folder / "held", *options)


def worse_unless_usual(log):
    """Only the most frequent action does no harm."""
    return log.action != np.bincount(log.logged_action).argmax()


def test_h2_better_is_not_said_of_a_policy_that_is_not_reliable(tmp_path):
    """H2: the verdict stands in the line that compares with the clinicians."""
    said = said_of(worse_unless_usual, tmp_path)
    (line,) = re.findall(r"^most-frequent \(.*", said, re.MULTILINE)
    assert "against the clinicians -0." in line
    word = "better at one decision only were it not"
    assert re.search(rf"\((doubtful|unusable)\).*, {word} \1$", line)
    assert not re.search(r", better$", said, re.MULTILINE)
    assert "One decision changed, the rest as logged." in said


def test_p2_what_would_count_a_few_bad_outcomes_is_not_printed(tmp_path):
    """P2: a gain and a risk give the mean loss, and that times the decisions is a count."""
    said = said_of(lambda log: np.arange(log.n_steps) < 9, tmp_path)
    assert "mean logged loss hidden" in said
    assert said.count("against the clinicians hidden or not known") == 2
    assert "Hidden confounding" not in said
    assert "worth only about" not in said
    assert "fewer than 11 stays with the rarer outcome" in said


def test_a_gain_that_no_confounding_undoes_is_said_in_words(tmp_path):
    said = said_of(worse_unless_usual, tmp_path)
    assert "inf" not in said
    assert "Even very strong hidden confounding would not undo the gain." in said


def test_stays_that_were_learned_from_are_refused_in_one_line_or_marked(tmp_path):
    Clinic(n_actions=3).log(60, seed=0).save(tmp_path / "data")
    run("fit", tmp_path / "data", "--out", tmp_path / "usual", "--method", "most-frequent")
    said = refuse("evaluate", tmp_path / "usual", tmp_path / "data")
    assert "data: must be unseen; the policy usual learned from all of the stays" in said
    assert "--allow-seen" in said
    told = run("evaluate", tmp_path / "usual", tmp_path / "data", "--allow-seen")
    assert re.search(r"^usual\b[^(]*\(\w+, in\s+sample\)", told, re.MULTILINE), told
    document = json.loads((tmp_path / "usual" / "results.json").read_bytes())
    assert document["methods"][0]["in_sample"] is True
    run("report", tmp_path / "usual", "--out", tmp_path / "page.html")
    assert "In sample:" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("outcome", ["sum", "last"])
def test_the_whole_stay_is_looked_at_where_it_is_asked_for(tmp_path, outcome):
    for seed, name in enumerate(("learn", "held")):
        Clinic(n_actions=2, n_contexts=5).log(60, seed=seed).save(tmp_path / name)
    run("fit", tmp_path / "learn", "--out", tmp_path / "usual", "--method", "most-frequent")
    options = ("--whole-stay", "--outcome", outcome, "--json")
    found = json.loads(run("evaluate", tmp_path / "usual", tmp_path / "held", *options))
    assert found["methods"][0]["whole_stay"]["outcome"] == outcome


def test_what_was_held_out_is_judged_without_being_asked_for(tmp_path):
    Clinic(n_actions=3).log(200, seed=0).save(tmp_path / "data")
    Clinic(n_actions=3).log(50, seed=1).save(tmp_path / "later")
    for name, share in (("usual", "0.3"), ("even", "0.5")):
        options = ("--method", "most-frequent", "--hold-out", share)
        run("fit", tmp_path / "data", "--out", tmp_path / name, *options)
    n_of = {}
    for names in (("usual",), ("even",), ("usual", "even")):
        runs = [tmp_path / name for name in names]
        found = json.loads(run("evaluate", *runs, tmp_path / "data", "--json"))
        n_of[names] = found["data"]["n_stays"]
        assert not any(method["in_sample"] for method in found["methods"])
    assert 40 <= n_of[("usual",)] <= 80
    assert 80 <= n_of[("even",)] <= 120
    assert n_of[("usual", "even")] == n_of[("usual",)]  # the smaller share lies in the larger
    found = json.loads(run("evaluate", tmp_path / "usual", tmp_path / "later", "--json"))
    assert found["data"]["n_stays"] == 50
    found = json.loads(run("evaluate", tmp_path / "usual", tmp_path / "data", "--allow-seen",
                           "--json"))  # fmt: skip
    assert found["data"]["n_stays"] == 200


@pytest.mark.parametrize("share", ["0", "1", "-1", "nan"])
def test_a_share_that_leaves_nobody_is_refused(share, tmp_path):
    Clinic(n_actions=3).log(20, seed=0).save(tmp_path / "data")
    said = refuse("fit", tmp_path / "data", "--out", tmp_path / "run", "--hold-out", share)
    assert "--hold-out: must be a share between 0 and 1" in said
    assert not (tmp_path / "run").exists()
