"""The search for settings: spaces, proposals, how trials are scored and compared, going on."""

import json
import math
import re
import sqlite3
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from small_worlds import CLINIC

from etips.data.splitting import assign_folds
from etips.errors import EtipsError, FileError, SettingError
from etips.files.lock import Lock
from etips.files.toml import parse_toml
from etips.learn.fitting.candidates import estimate_candidate
from etips.learn.fitting.stages import ENCODER, Training
from etips.learn.learners.catalogue import Choice, Range
from etips.learn.learners.recipes import Recipe, make_learner
from etips.studies.space import (
    check_space,
    first_trial,
    paper_space,
    read_space,
    usual_space,
)
from etips.studies.trials import REFITS, TrialRecord, score_trial
from etips.studies.tuning import Search, Trial, compare, finished, importance, propose, tune

TINY = {
    "hidden": Choice((4,)),
    "epochs": Choice((1,)),
    "n_folds": Choice((2,)),
    "translations": Choice(([0.3, 0.7],)),
    "learning_rate": Range(1e-3, 1e-1, log=True),
    "encoder": Choice(("gru", "lstm")),
}
QUICK = {"hidden": 4, "epochs": 1, "n_folds": 2}
"""Settings of a learner that is fitted in a blink."""


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
    return compare(settings, [TrialRecord(**{**usual, **own}) for own in found])


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


def test_the_seed_and_what_was_found_change_the_proposals():
    def done(sign):
        trials = compared(*({"risk": sign * float(n), "std_error": 0.0} for n in range(10)))
        settings = propose(search(batch=10), [], [])
        return [
            finished(replace(trial, settings=own), TINY)
            for trial, own in zip(trials, settings, strict=True)
        ]

    first = propose(search(batch=10), [], [])
    other = propose(search(batch=10, seed=1), [], [])
    assert first[0] == other[0] == first_trial(TINY, "etips")
    assert first[1:] != other[1:]
    assert len({json.dumps(settings) for settings in first}) == 10
    up, down = (propose(search(batch=2), first, done(sign)) for sign in (1, -1))
    assert up != down
    assert up == propose(search(batch=2), first, [*done(1), *done(-1)])  # of later batches


def test_a_file_that_is_no_search_is_refused(log, tmp_path):
    (tmp_path / "search.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(FileError, match=r"search\.db: cannot be used as a search's file"):
        tune(log, tmp_path, search())


def test_f9_a_search_is_for_its_owners_eyes_whatever_its_name(log, tmp_path):
    """F9: files 0600; and a name that would mean something in an address means nothing here."""
    out = tmp_path / "what? 100%#"
    tune(log, out, search(n_trials=1))
    assert [p.name for p in tmp_path.iterdir()] == [out.name]
    assert (out / "search.db").stat().st_mode & 0o777 == 0o600


def test_importance_finds_what_matters_and_says_nothing_of_few_trials():
    record = TrialRecord(0.5, 0.1, sound=True, log_loss=None)
    settings = [
        {"learning_rate": rate, "encoder": kind}
        for rate in (1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2)
        for kind in ("gru", "lstm")
    ]
    trials = [
        Trial(number, own, record, abs(math.log(own["learning_rate"] / 0.01)))
        for number, own in enumerate(settings)
    ]
    shares = importance(trials, TINY)
    assert list(shares) == ["learning_rate", "encoder"]
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["learning_rate"] > 0.7
    assert importance(trials[:7], TINY) == {}


@pytest.mark.parametrize("corrected", [None, 0.2])
def test_a_learner_with_candidates_is_judged_by_what_its_choosing_comes_to(log, corrected):
    recipe = Recipe("etips", {**QUICK, "translations": [0.3, 0.7]})
    learner = recipe.make(device="cpu").fit(log)
    *others, last = (replace(candidate, chosen=False) for candidate in learner.path_)
    error = None if corrected is None else 0.05
    own = replace(
        last, chosen=True, risk=0.123, std_error=0.01, corrected=corrected, corrected_error=error
    )
    learner.path_ = (*others, own)
    found = score_trial(recipe, learner, log)
    risks = (0.123, 0.01, None) if corrected is None else (0.2, 0.05, 0.123)
    assert (found.risk, found.std_error, found.naive) == risks
    assert found.sound == own.sound
    assert found.log_loss == learner.quality_.log_loss
    json.dumps(asdict(found), allow_nan=False)


def test_any_other_is_judged_by_networks_that_did_not_learn_from_the_stay(log):
    """As the policy is followed; stays of a patient count as one."""
    patients = np.array([f"p{number // 3}" for number in range(log.n_stays)])
    data = replace(log, propensity=None, group=patients)
    recipe = Recipe("direct", {**QUICK, "support": 0.0})
    learner = recipe.make(device="cpu").fit(data)
    found = score_trial(recipe, learner, data)
    assert found.log_loss == pytest.approx(learner.quality_.log_loss, rel=1e-5)
    policy = learner.policy_  # once more by hand
    fold = assign_folds(data, n_folds=2, seed=0)
    chosen, chance = np.empty(data.n_decisions), np.empty(data.n_decisions)
    for k in range(2):
        part = data.subset(fold == k)
        inside = fold[data.decisions().stay] == k
        own = replace(
            policy, networks=policy.networks.select([k]), propensity=policy.propensity.select([k])
        )
        row = np.arange(part.n_decisions)
        chosen[inside] = own.predict(part) == part.logged_action
        chance[inside] = own.propensities(part)[row, part.logged_action]
    expected = estimate_candidate(chosen, np.maximum(chance, 0.01), data.logged_loss, data.cluster)
    assert found.std_error == pytest.approx(expected.std_error)
    assert found.risk == pytest.approx(expected.risk)
    assert found.matching_factor == pytest.approx(expected.matching_factor)


def test_an_imitation_is_judged_by_how_well_it_imitates(log):
    recipe = Recipe("predictive", QUICK)
    learner = recipe.make(device="cpu").fit(log)
    found = score_trial(recipe, learner, log)
    assert found.risk == pytest.approx(learner.quality_.log_loss, rel=1e-5)
    assert found.sound


def test_a_learner_without_folds_of_its_own_is_fitted_anew_without_each_fold(log):
    data = replace(log, propensity=None)
    recipe = Recipe("q-learning", {"support": 0.0})
    found = score_trial(recipe, recipe.make().fit(data), data)
    fold = assign_folds(data, n_folds=REFITS, seed=0)
    taken, chance = np.empty(data.n_decisions), np.empty(data.n_decisions)
    for k in range(REFITS):
        own = recipe.make().fit(data.subset(fold != k))
        part, inside = data.subset(fold == k), fold[data.decisions().stay] == k
        row = np.arange(part.n_decisions)
        taken[inside] = own.deployed(part).probabilities[row, part.logged_action]
        chance[inside] = own.policy_.propensities(part)[row, part.logged_action]
    by_hand = estimate_candidate(taken, chance, data.logged_loss, data.cluster)
    assert found.risk == pytest.approx(by_hand.risk)
    assert found.log_loss == pytest.approx(-np.log(chance).mean())


def test_a_space_is_values_lists_and_ranges():
    found = read_space(
        {
            "hidden": [8, 16],
            "epochs": 3,
            "translations": [0.5, 0.9],
            "learning_rate": {"low": 1e-5, "high": 0.1, "log": True},
            "policy": {"dropout": {"low": 0, "high": 0.5}, "batch_size": {"low": 8, "high": 64}},
        },
        "etips",
    )
    assert found == {
        "hidden": Choice((8, 16)),
        "epochs": Choice((3,)),
        "translations": Choice(([0.5, 0.9],)),
        "learning_rate": Range(1e-5, 0.1, log=True),
        "policy.dropout": Range(0, 0.5),
        "policy.batch_size": Range(8, 64, whole=True),
    }
    several = read_space({"translations": [[0.5], [0.1, 0.9]]}, "etips")
    assert several["translations"] == Choice(([0.5], [0.1, 0.9]))


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ({"widht": [8, 16]}, "widht: is not a setting of etips."),
        ({"policy": {"hue": 1}}, "policy.hue: is not a setting of etips."),
        ({"interaction": [True, False]}, "interaction: is not a setting of etips."),
        ({"hidden": [8, "wide"]}, "hidden: must be a whole number."),
        ({"hidden": []}, "hidden: must have values to choose from, each once."),
        ({"hidden": [8, 8]}, "hidden: must have values to choose from, each once."),
        ({"hidden": {"low": 8}}, "hidden: takes a range as {low = "),
        ({"hidden": {"low": 8, "high": 16, "step": 2}}, "hidden: takes a range as {low = "),
        ({"hidden": {"low": 8.5, "high": 16}}, "hidden: must have ends of the kind"),
        ({"hidden": {"low": 16, "high": 8}}, "hidden: must have ends in order"),
        ({"dropout": {"low": 0.0, "high": 0.5, "log": True}}, "dropout: must have ends in order"),
        ({"dropout": {"low": 0.0, "high": float("nan")}}, "dropout: must have ends in order"),
        ({"encoder": {"low": 1, "high": 2}}, "encoder: takes values, not a range."),
    ],
)
def test_a_slip_in_a_space_is_refused_in_one_line(document, line):
    with pytest.raises(SettingError) as refusal:
        read_space(document, "etips")
    assert str(refusal.value).startswith(line)


@pytest.mark.parametrize(
    ("space", "line"),
    [
        ({"hidden": Choice((8,))}, "space: must leave something to search."),
        ({}, "space: must leave something to search."),
        ({"hidden": Choice((8, 0))}, "hidden: must be at least 1."),
        ({"dropout": Range(0.1, 1.0)}, "dropout: must be in [0, 1)."),
        ({"encoder": Choice(("gru", "tree"))}, "encoder: must be gru or lstm or "),
        ({"n_folds": Choice((1, 2))}, "n_folds: must be at least 2: a search needs"),
    ],
)
def test_settings_no_learner_can_have_are_refused_before_any_is_trained(space, line):
    with pytest.raises(SettingError) as refusal:
        check_space("etips", space)
    assert str(refusal.value).startswith(line)


@pytest.mark.parametrize("method", ["etips", "tips", "direct", "doubly-robust", "predictive"])
def test_the_usual_space_suits_its_method_and_holds_the_defaults(method):
    space = usual_space(method)
    check_space(method, space)
    learner = make_learner(method, first_trial(space, method), device="auto")
    assert learner.encoder == ENCODER
    assert learner.training.policy == Training().policy
    assert getattr(learner, "translations", None) is None


def test_the_first_trial_stays_within_a_space_without_the_defaults():
    space = {"hidden": Choice((8, 16)), "learning_rate": Range(0.01, 0.1), "kl": Range(0.5, 1.0)}
    assert first_trial(space, "etips") == {"hidden": 16, "learning_rate": 0.01, "kl": 0.5}
    assert first_trial({"encoder": Choice(("lstm", "mlp"))}, "etips") == {"encoder": "lstm"}
    assert first_trial({"propensity.epochs": Range(2, 90, whole=True)}, "etips") == {
        "propensity.epochs": 25
    }


def test_the_document_shows_the_usual_space_and_spaces_that_can_be_read():
    text = (Path(__file__).parents[3] / "docs" / "study" / "tuning.md").read_text()
    blocks = re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    usual, own, paper = (read_space(parse_toml(block), "etips") for block in blocks)
    assert usual == usual_space("etips")
    assert paper == paper_space("etips")
    check_space("etips", own)


@pytest.mark.parametrize("method", ["etips", "direct", "predictive"])
def test_the_papers_space_can_be_searched_with_rates_that_can_train(method):
    space = paper_space(method)
    check_space(method, space)
    assert space["hidden"].values == (16, 32, 48, 64, 80, 96, 112, 128)
    assert space["batch_size"].values == (16, 32, 64, 128)
    assert (space["learning_rate"].low, space["learning_rate"].high) == (1e-5, 1e-1)
    assert first_trial(space, "etips")["batch_size"] == 128  # nearest to our own
    assert ("translations" in space) == (method == "etips")
