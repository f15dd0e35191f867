"""What the loss is, in a sentence."""

from dataclasses import replace

import numpy as np
import pytest

from etips.data.intake.recipe import Outcome, Recipe
from etips.data.schema import Roles, Schema
from etips.results.loss_words import tell_loss

SCHEMA = Schema(("x",), 2, roles=Roles(loss="survived"))
BINARY = np.array([0.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("as_it_is", "The loss is column survived as it stands; less is better."),
        ("one_minus", "The loss is 1 minus column survived, since more of it is better"),
        ("minus", "The loss is column survived with its sign turned"),
    ],
)
def test_the_column_and_what_was_done_to_it_are_told(rule, words):
    kind = "loss" if rule == "as_it_is" else "reward"
    schema = replace(SCHEMA, recipe=Recipe(outcome=Outcome(kind, rule)))
    assert tell_loss(schema, BINARY).startswith(words)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (
            Outcome(words=("Dead",)),
            "The loss is 1 where column survived says Dead; less is better.",
        ),
        (
            Outcome("reward", "one_minus", ("yes", "YES")),
            "The loss is 0 where column survived says yes or YES;",
        ),
    ],
)
def test_words_are_told_as_they_were_read(outcome, words):
    assert tell_loss(replace(SCHEMA, recipe=Recipe(outcome=outcome)), BINARY).startswith(words)


def test_a_risk_of_zeros_and_ones_is_a_share_and_any_other_a_mean():
    assert "the share of decisions followed by a loss of 1." in tell_loss(SCHEMA, BINARY)
    assert tell_loss(SCHEMA, np.array([0.5, 2.0])).endswith(
        "The risk is its mean after a decision."
    )


def test_the_words_of_the_data_come_first():
    schema = replace(SCHEMA, provenance={"loss": "dead after 90 days."})
    said = tell_loss(schema, BINARY)
    assert said.startswith("The loss, in the words of the data: dead after 90 days. It is 0 or 1")
