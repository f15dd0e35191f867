"""`etips evaluate`: what it says of runs, and what it must not say."""

import json
import re
from dataclasses import replace

import numpy as np
from commands import refuse, run
from hospital_log import SIMPLE
from small_worlds import ward

from etips.worlds.clinic import Clinic


def test_runs_are_judged_side_by_side(tmp_path):
    Clinic(n_actions=3).log(60, seed=0).save(tmp_path / "data")
    for method in SIMPLE:
        run("fit", tmp_path / "data", "--out", tmp_path / method, "--method", method)
    runs = [tmp_path / method for method in SIMPLE]
    results = json.loads(run("evaluate", *runs, tmp_path / "data", "--json"))
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


def said_of(loss_of, folder):
    """What is said of two policies on a small log with a loss at every step."""
    log = ward(n_stays=30)
    log = replace(log, loss=np.zeros(log.n_steps))
    replace(log, loss=loss_of(log).astype(float)).save(folder / "data")
    for method in SIMPLE:
        run("fit", folder / "data", "--out", folder / method, "--method", method)
    return run("evaluate", *(folder / method for method in SIMPLE), folder / "data")


def worse_unless_usual(log):
    """Only the most frequent action does no harm."""
    return log.action != np.bincount(log.logged_action).argmax()


def test_h2_better_is_not_said_of_a_policy_that_is_not_reliable(tmp_path):
    """H2: the verdict stands in the line that compares with the clinicians."""
    said = said_of(worse_unless_usual, tmp_path)
    (line,) = re.findall(r"^most-frequent \(.*", said, re.MULTILINE)
    assert "against the clinicians -0." in line
    assert re.search(r"\((doubtful|unusable)\).*, better only were it not \1$", line)
    assert not re.search(r", better$", said, re.MULTILINE)


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
