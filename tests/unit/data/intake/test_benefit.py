"""A loss that looks like a benefit draws a question."""

from dataclasses import replace

import numpy as np
import pytest

import etips
from etips.data.intake.benefit import ask_direction, is_benefit, is_harm
from etips.notes import collecting_notes


@pytest.mark.parametrize(
    "name",
    ["survived", "Alive30", "discharged_home", "recovered", "improvement", "ventilator_free_days",
     "survival_days", "HospitalSurvival", "treatment_success"],
)  # fmt: skip
def test_good_things_are_known_by_their_names(name):
    assert is_benefit(name)
    assert not is_harm(name)


@pytest.mark.parametrize(
    "name",
    ["died", "loss", "not_recovered", "time_to_recovery", "no_improvement", "y", "delta_sofa",
     "days_until_discharge", "mortality_90d"],
)  # fmt: skip
def test_bad_and_unknown_things_are_not_good(name):
    assert not is_benefit(name)


@pytest.mark.parametrize("name", ["died", "mortality_90d", "Death", "readmission", "cost"])
def test_bad_things_are_known_by_their_names(name):
    assert is_harm(name)


def log(direction, n=400, names=("sofa", "lactate", "x2"), seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, len(names)))
    loss = (direction * features[:, 0] + direction * features[:, 1] + rng.normal(size=n) > 0) * 1.0
    data = etips.from_arrays(features, action=rng.integers(0, 2, n), loss=loss)
    schema = etips.data.schema.Schema(sequence=names, n_actions=2, lag=0)
    return replace(data, schema=schema)


def asked(data, column, reward=False):
    with collecting_notes() as notes:
        ask_direction(data, column=column, reward=reward)
    return notes


def test_a_name_is_enough_for_a_question():
    data = log(0.0)
    assert asked(data, "survived") == [
        "survived looks like a benefit: should it be --reward survived, not a loss?"
    ]
    assert asked(data, "survived", reward=True) == []
    assert asked(data, "died", reward=True) == [
        "died looks like a harm: should it be --loss died, not a reward?"
    ]


def test_a_loss_that_falls_with_severity_is_asked_about():
    (question,) = asked(log(-1.0), "y")
    assert question.startswith("y is lower where sofa, lactate is worse")
    assert question.endswith("--reward y, not a loss?")


def test_a_loss_that_rises_with_severity_or_does_not_care_is_not():
    assert asked(log(1.0), "y") == []
    assert asked(log(0.0), "y") == []


def test_what_is_called_a_harm_is_believed():
    assert asked(log(-1.0), "died") == []


def test_signs_that_say_the_opposite_are_turned_round_and_contradiction_is_no_evidence():
    assert asked(log(1.0, names=("gcs", "albumin", "x")), "y")
    assert asked(log(-1.0, names=("gcs", "sofa", "x")), "y") == []
    assert asked(log(-1.0, names=("dosage", "usage", "x")), "y") == []
