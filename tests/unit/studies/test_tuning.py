"""The search for settings: how trials are compared, and what makes it resumable."""

import math
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from small_searches import TINY
from small_worlds import CLINIC

from etips.errors import EtipsError, FileError, SettingError
from etips.files.lock import Lock
from etips.learn.learners.ranges import Choice, Range
from etips.learn.learners.recipes import Recipe
from etips.studies.trials import TrialRecord, score_trial
from etips.studies.tuning import Search, _compare, tune


def search(**more):
    return Search(
        **{"method": "etips", "space": TINY, "n_trials": 3, "batch": 2, "device": "cpu", **more}
    )


@pytest.fixture(scope="module")
def log():
    return CLINIC.log(60, seed=0)


def test_methods_without_settings_are_refused():
    for method in ("random", "most-frequent"):
        with pytest.raises(SettingError, match=r"^method: .* has no settings to search"):
            Search(method)
    with pytest.raises(SettingError, match=r"^method: must be one of"):
        Search("magic")


def compared(*found):
    usual = {"risk": 0.5, "std_error": 0.1, "sound": True, "log_loss": 1.0}
    settings = [{"hidden": number} for number in range(len(found))]
    return _compare(settings, [TrialRecord(**{**usual, **own}) for own in found])


def test_trials_are_compared_by_risk_plus_error_unless_in_doubt():
    trials = compared(
        {},
        {"risk": 0.1, "sound": False},
        {"risk": 0.2, "log_loss": 1.2},
        {"risk": 0.45, "std_error": 0.2, "log_loss": 1.04},
        {"risk": None, "std_error": None, "sound": False, "log_loss": 1.0},
    )
    reach = math.sqrt(2 * math.log(5))
    assert [trial.value for trial in trials] == pytest.approx(
        [0.5 + reach * 0.1, math.inf, math.inf, 0.45 + reach * 0.2, math.inf]
    )
    assert [t.doubt for t in trials] == ["", "weights", "propensities", "", "weights"]


def test_known_propensities_are_not_compared_by_their_fit():
    assert [t.doubt for t in compared({"log_loss": None}, {"log_loss": None})] == ["", ""]


def test_a_search_goes_on_from_there_with_more_trials_as_if_in_one_go(log, tmp_path):
    tune(log, tmp_path / "pieces", search(n_trials=1))
    tune(log, tmp_path / "pieces", search(n_trials=3))
    made = (tmp_path / "pieces" / "trials" / "trial-0000" / "done.json").stat().st_mtime_ns
    pieces = tune(log, tmp_path / "pieces", search(n_trials=5))
    whole = tune(log, tmp_path / "whole", search(n_trials=5))
    assert pieces == whole
    for name in ("best.toml", "trials.json"):
        assert (tmp_path / "pieces" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    again = (tmp_path / "pieces" / "trials" / "trial-0000" / "done.json").stat().st_mtime_ns
    assert again == made
    assert Recipe.from_toml((tmp_path / "whole" / "best.toml").read_text()) == whole.recipe
    assert [t.value for t in whole.trials] == sorted(t.value for t in whole.trials)
    with closing(sqlite3.connect(tmp_path / "pieces" / "search.db")) as database:
        told = database.execute("SELECT number FROM trials WHERE state = 'COMPLETE'").fetchall()
    assert sorted(told) == [(0,), (1,), (2,), (3,)]  # the fifth waits for the rest of its batch
    assert not (tmp_path / "pieces" / "trials" / "trial-0005").exists()
    assert sorted(t.number for t in whole.trials) == [0, 1, 2, 3, 4]


def test_one_process_and_two_find_the_same(log, tmp_path):
    here = tune(log, tmp_path / "here", search())
    there = tune(log, tmp_path / "there", search(), jobs=2)
    assert there == here
    for name in ("best.toml", "trials.json"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


BUNDLED = {**TINY, "weight_decay": Range(1e-4, 1e-1, log=True)}


def test_trials_of_a_bundle_share_a_shape_and_find_what_each_finds_alone(log, tmp_path):
    found = tune(log, tmp_path / "s", search(space=BUNDLED, n_trials=4, batch=4, bundle=2))
    assert sorted(p.name for p in (tmp_path / "s" / "trials").glob("trial*")) == [
        "trial-0000",
        "trial-0002",
    ]
    trials = sorted(found.trials, key=lambda trial: trial.number)
    free = ("learning_rate", "weight_decay")
    for first, second in (trials[:2], trials[2:]):
        assert all(first.settings[key] != second.settings[key] for key in free)
        shapes = [{k: v for k, v in t.settings.items() if k not in free} for t in (first, second)]
        assert shapes[0] == shapes[1]
    for trial in trials:
        recipe = Recipe("etips", trial.settings, 0)
        alone = score_trial(recipe, recipe.make(device="cpu").fit(log), log)
        assert trial.record.risk == pytest.approx(alone.risk, rel=1e-4)
        assert trial.record.log_loss == pytest.approx(alone.log_loss, rel=1e-4)


def test_bundles_are_proposed_the_same_in_one_go_and_in_pieces(log, tmp_path):
    small = search(space=BUNDLED, n_trials=2, batch=4, bundle=2)
    tune(log, tmp_path / "pieces", small)
    pieces = tune(log, tmp_path / "pieces", replace(small, n_trials=6))
    whole = tune(log, tmp_path / "whole", replace(small, n_trials=6), jobs=2)
    assert pieces == whole


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"bundle": 0}, "bundle: must be at least 1"),
        ({"n_trials": 6, "batch": 3, "bundle": 2}, "batch: must be a multiple of bundle, 2"),
        ({"n_trials": 3, "batch": 2, "bundle": 2}, "n_trials: must be a multiple of bundle, 2"),
        (
            {"n_trials": 4, "bundle": 2, "space": {"hidden": Choice((2, 4))}},
            "bundle: must be 1 where",
        ),
    ],
)
def test_a_bundle_that_does_not_come_out_even_is_refused(more, line):
    with pytest.raises(SettingError, match=f"^{line}"):
        search(**more)


def test_another_search_in_the_folder_is_refused(log, tmp_path):
    out = tmp_path / "out"
    tune(log, out, search(n_trials=1))
    for other in (search(seed=1), search(batch=3), search(space={**TINY, "epochs": Choice((2,))})):
        with pytest.raises(FileError, match="holds a search with other data, method, space"):
            tune(log, out, other)
    with pytest.raises(FileError, match="holds a search with other data, method, space"):
        tune(CLINIC.log(60, seed=1), out, search())


def test_a_place_that_is_taken_is_refused_and_left_alone(log, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FileError, match="holds something else than a search"):
        tune(log, tmp_path, search())
    with pytest.raises(FileError, match="must be a folder"):
        tune(log, tmp_path / "mine.txt", search())
    with pytest.raises(FileError, match="must be a folder that exists"):
        tune(log, tmp_path / "no" / "where", search())
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    (tmp_path / "out").mkdir()
    with Lock(tmp_path / "out"), pytest.raises(FileError, match="is in use by another process"):
        tune(log, tmp_path / "out", search())


def test_where_no_trial_can_be_believed_that_is_said_and_nothing_written(tmp_path):
    few = CLINIC.log(8, seed=0)  # 24 decisions cannot weigh 30
    with pytest.raises(EtipsError) as refusal:
        tune(few, tmp_path / "out", search(n_trials=2))
    line = "trials: none of 2 can be believed: "
    assert str(refusal.value).startswith(line)
    assert "by their matching factor or effective size" in str(refusal.value)
    assert not (tmp_path / "out" / "best.toml").exists()
