"""Experiments small enough to run in a blink: tiny networks, one epoch, two folds."""

from etips.studies.experiment import read_experiment

SETTINGS = {
    "hidden": 4,
    "n_folds": 2,
    "batch_size": 64,
    "propensity": {"epochs": 1},
    "outcome": {"epochs": 1},
    "policy": {"epochs": 1},
}
EVALUATION = {"hidden": 4, "n_folds": 2, "epochs": 1}
GRID = {"translations": [0.3, 0.7]}


def clinic_document(**changes):
    """Table II on sixty stays of the clinic."""
    presets = {
        "etips": {"lead": "small.", "method": {"etips": GRID}},
        "paper": {
            "lead": "in-sample.",
            "clip": 0.2,
            "settings": {"n_folds": 1, "clip": 0.2},
            "method": {"etips": {**GRID, "init": "random", "selection": "paper"}},
        },
    }
    return {
        "title": "Small Table II",
        "table": "table2",
        "world": "clinic",
        "n": 60,
        "lag": 0,
        "folds": 2,
        "methods": ["predictive", "direct", "most-frequent", "random", "etips", "doubly-robust"],
        "settings": SETTINGS,
        "evaluation": {"clip": 0.05, "settings": EVALUATION},
        "presets": presets,
        "quick": {"n": 40},
        **changes,
    }


def zeros_document(**changes):
    """Table I on a hundred sequences, with a logging policy that is stopped at once."""
    presets = {
        "etips": {"lead": "small.", "method": {"etips": GRID}},
        "authors": {
            "lead": "as published.",
            "logging": "argmax",
            "turned": ["direct"],
            "method": {"etips": GRID, "direct": {"interaction": False, "support": 0.0}},
        },
    }
    return {
        "title": "Small Table I",
        "table": "table1",
        "world": "digits-zeros",
        "n": 100,
        "lag": 0,
        "folds": 2,
        "methods": [
            "full-supervision",
            "logging",
            "direct",
            "random",
            "ips",
            "etips",
            "predictive",
        ],
        "logging_policy": {"tolerance": 0.6, "hidden": 4},
        "settings": {**SETTINGS, "encoder": "lstm"},
        "evaluation": {"settings": {**EVALUATION, "encoder": "lstm"}},
        "presets": presets,
        "quick": {"n": 60},
        **changes,
    }


def small_experiment(document, preset="etips", **more):
    """The experiment a document describes."""
    return read_experiment(document, name=document["table"], preset=preset, **more)
