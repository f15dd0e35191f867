"""`etips tune` as a user runs it: what it prints and writes, how it refuses, how it goes on."""

import json
import signal
import subprocess
import sys
import time

import pytest
from commands import refuse, run
from small_worlds import CLINIC
from typer.testing import CliRunner

from etips.cli.main import app
from etips.learn.learners.recipes import Recipe

SPACE = """
hidden = 4
epochs = 1
n_folds = 2
translations = [[0.3, 0.7], [0.5]]
learning_rate = {low = 1e-3, high = 1e-1, log = true}

[policy]
dropout = {low = 0.0, high = 0.5}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with logged stays and a space."""
    folder = tmp_path_factory.mktemp("work")
    CLINIC.log(60, seed=0).save(folder / "log")
    (folder / "space.toml").write_text(SPACE)
    return folder


def command(place, out, *more):
    given = ("tune", place / "log", "--out", place / out, "--space", place / "space.toml")
    return [*given, "--method", "etips", "--device", "cpu", "--batch", 2, *more]


@pytest.fixture(scope="module")
def searched(place):
    """A search of three trials, and what it printed."""
    return place / "whole", run(*command(place, "whole", "--trials", 3))


def test_the_best_trials_are_shown_and_the_best_settings_written(searched):
    out, printed = searched
    assert "3 trials, the best first" in printed
    assert "best.toml" in printed
    recipe = Recipe.from_toml((out / "best.toml").read_text())
    assert recipe.method == "etips"
    assert recipe.settings["hidden"] == 4
    document = json.loads((out / "trials.json").read_bytes())
    best = document["trials"][0]
    assert document["best"] == recipe.to_document()
    assert best["settings"] == dict(recipe.settings)
    values = [trial["value"] for trial in document["trials"] if trial["value"] is not None]
    assert best["value"] == min(values)


def test_fit_takes_the_best_settings(place, searched):
    out, _ = searched
    fit = ("fit", place / "log", "--config", out / "best.toml", "--device", "cpu")
    rows = json.loads(run(*fit, "--out", place / "run", "--json"))
    (kept,) = [row for row in rows if row["chosen"]]
    best = json.loads((out / "trials.json").read_bytes())["trials"][0]
    assert kept["held-out SNIPS"] == pytest.approx(best["naive"])  # "risk" is after selection


def test_json_is_what_the_file_holds_and_a_finished_search_is_not_done_again(place, searched):
    out, _ = searched
    made = (out / "trials" / "trial-0002" / "done.json").stat().st_mtime_ns
    printed = run(*command(place, "whole", "--trials", 3, "--json"))
    assert printed.encode() == (out / "trials.json").read_bytes()
    assert (out / "trials" / "trial-0002" / "done.json").stat().st_mtime_ns == made


def test_f2_killed_again_and_again_it_ends_with_the_same_bytes(place, searched):
    """F2: while it proposes, while a trial trains, between two trials; with two processes too."""
    whole, _ = searched
    out = place / "killed"
    moments = [
        (("--jobs", 1), lambda: (out / "search.db").exists()),
        (("--jobs", 1), lambda: (out / "trials" / "trial-0000" / "run-0").exists()),
        (("--jobs", 2), lambda: (out / "trials" / "trial-0001" / "done.json").exists()),
    ]
    start = [sys.executable, "-c", "from etips.cli.main import main; main()"]
    for jobs, reached in moments:
        arguments = [str(a) for a in command(place, "killed", "--trials", 3, *jobs)]
        process = subprocess.Popen(
            [*start, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        while not reached() and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -9, "it was over before it could be killed"
    run(*command(place, "killed", "--trials", 3))
    for name in ("best.toml", "trials.json"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()


def test_the_papers_space_is_searched_by_its_name(place):
    given = ("tune", place / "log", "--out", place / "paper", "--method", "predictive")
    run(*given, "--space", "paper", "--trials", 1, "--device", "cpu")
    recipe = Recipe.from_toml((place / "paper" / "best.toml").read_text())
    assert (recipe.settings["encoder"], recipe.settings["batch_size"]) == ("lstm", 128)


def test_refusals_are_one_line_and_leave_nothing_behind(place):
    (place / "odd.toml").write_text("widht = [8, 16]\n")
    (place / "torn.toml").write_text("hidden = [8,\n")
    log, out = place / "log", place / "none"
    given = ("tune", log, "--out", out, "--method", "etips")
    odd = refuse(*given, "--space", place / "odd.toml")
    assert odd.startswith(f"etips tune: {place}/odd.toml: widht is not a setting of etips.")
    assert "torn.toml: TOML is not valid" in refuse(*given, "--space", place / "torn.toml")
    assert "cannot be read" in refuse(*given, "--space", place / "absent.toml")
    assert refuse(*given, "--method", "random") == (
        "etips tune: method: random has no settings to search."
    )
    assert not out.exists()
    slip = CliRunner().invoke(app, [str(a) for a in (*given, "--method", "magic")])
    assert slip.exit_code == 2


def test_the_patient_column_and_the_cluster_are_two_options():
    told = " ".join(run("tune", "--help").replace("│", " ").split())  # however the lines break
    assert "--group" in told
    assert "Ray cluster" in told


def test_without_optuna_the_remedy_is_named(place, monkeypatch):
    monkeypatch.setattr("etips.cli.console.find_spec", lambda name: None)
    assert refuse("tune", place / "log", "--out", place / "none") == (
        "etips tune: tune: needs optuna. Install it with: pip install 'etips[tune]'."
    )


def test_trials_of_one_shape_train_as_a_bundle(place):
    printed = run(*command(place, "bundled", "--trials", 2, "--bundle", 2))
    assert "2 trials, the best first" in printed
    first, second = json.loads((place / "bundled" / "trials.json").read_bytes())["trials"]
    assert first["settings"]["translations"] == second["settings"]["translations"]
    assert first["settings"]["learning_rate"] != second["settings"]["learning_rate"]


def test_trials_that_do_not_fill_their_bundles_are_refused(place):
    line = refuse(*command(place, "uneven", "--trials", 3, "--bundle", 2))
    assert "n_trials: must be a multiple of bundle, 2" in line
    assert not (place / "uneven").exists()
