"""How a table was read, kept in its schema."""

import json

import pytest

from etips.data.intake.recipe import (
    ActionReading,
    ColumnKind,
    DoseClasses,
    Outcome,
    Recipe,
    StepRule,
)
from etips.data.schema import Schema
from etips.errors import SettingError

RECIPE = Recipe(
    kinds={"ward": ColumnKind("category", ("er", "icu")), "urine": ColumnKind()},
    numbered=("stay", "step"),
    missing="refuse",
    elapsed="hours_since_last",
    action=ActionReading(("drug", "route"), (("a", "iv"), ("b", "po"))),
    doses=(DoseClasses("fluid", (1.0,), (0.0, None, 2.0), unit="ml"),),
    outcome=Outcome("reward", "one_minus"),
    every=StepRule("4h", 14400.0, combine={"urine": "sum"}),
)


def test_a_recipe_comes_back_from_the_schema_it_is_kept_in():
    schema = Schema(sequence=("x",), n_actions=2, recipe=RECIPE)
    again = Schema.from_json(json.loads(json.dumps(schema.to_json())))
    assert again.recipe == RECIPE
    assert again == schema


def test_a_schema_of_before_has_none():
    document = Schema(sequence=("x",), n_actions=2).to_json()
    assert "recipe" not in document
    assert Schema.from_json(document).recipe is None


def test_a_recipe_that_was_changed_is_refused():
    document = {**Schema(sequence=("x",), n_actions=2).to_json(), "recipe": {"kinds": {"x": 1}}}
    with pytest.raises(SettingError, match=r"^schema, recipe, kinds: is not as it was saved\.$"):
        Schema.from_json(document)
