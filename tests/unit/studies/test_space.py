"""What may be searched: read, refused, and the spaces that come with the package."""

import re
from pathlib import Path

import pytest

from etips.errors import SettingError
from etips.files.toml import parse_toml
from etips.learn.fitting.stages import ENCODER, Training
from etips.learn.learners.ranges import Choice, Range
from etips.learn.learners.recipes import make_learner
from etips.studies.space import (
    check_space,
    first_trial,
    paper_space,
    read_space,
    usual_space,
)


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


def test_the_first_trial_has_the_defaults_of_its_own_method():
    space = {"kl": Range(0.0, 1.0), "clip": Range(0.001, 0.5)}
    assert first_trial(space, "etips") == {"kl": 0.02, "clip": 0.01}
    assert first_trial(space, "doubly-robust") == {"kl": 0.01, "clip": 0.01}


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
