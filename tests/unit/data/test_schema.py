"""Schemas and recipes, to JSON and back."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etips.data import Roles
from etips.data.recipe import (
    ActionReading,
    ColumnKind,
    DoseClasses,
    Outcome,
    Recipe,
    StepRule,
)
from etips.data.schema import Schema
from etips.errors import SettingError

FULL = Schema(
    sequence=("hr", "ward=er", "ward=icu", "hr_missing", "ward_missing"),
    n_actions=2,
    static=("age",),
    lag=0,
    actions=("wait", "treat"),
    roles=Roles(stay="id", step="bloc"),
    categories={"ward": ("er", "icu")},
    indicators=("hr", "ward"),
    provenance={"world": "clinic"},
)

names = st.lists(st.text(min_size=1), unique=True, max_size=6).map(tuple)


@given(names, names, st.integers(1, 9), st.sampled_from([0, 1]), st.text())
def test_a_schema_survives_json_byte_for_byte(sequence, static, n_actions, lag, note):
    sequence = tuple(f"x{name}" for name in sequence)
    static = tuple(f"y{name}" for name in static)
    schema = Schema(sequence, n_actions, static=static, lag=lag, provenance={"note": note})
    assert Schema.from_json(json.loads(json.dumps(schema.to_json()))) == schema


def test_every_field_survives_json():
    assert Schema.from_json(json.loads(json.dumps(FULL.to_json()))) == FULL


def test_whole_numbers_of_numpy_are_taken_as_whole_numbers():
    schema = Schema(("x",), np.int64(3), lag=np.int8(0))
    assert (type(schema.n_actions), type(schema.lag)) == (int, int)
    json.dumps(schema.to_json())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lag": 2}, r"^lag: must be 0 or 1\.$"),
        ({"lag": True}, r"^lag: must be a whole number\.$"),
        ({"n_actions": 0}, r"^n_actions: must be in 1\.\.65536\.$"),
        ({"n_actions": 10**9}, r"^n_actions: must be in 1\.\.65536\.$"),
        ({"n_actions": 2.5}, r"^n_actions: must be a whole number\.$"),
        ({"actions": ("a",)}, r"^actions: must name all 2 actions or none\.$"),
        ({"sequence": ("x", "x")}, r"^column x: must play one part only\.$"),
        ({"static": ("x",)}, r"^column x: must play one part only\.$"),
        ({"sequence": ("loss",)}, r"^column loss: must play one part only\.$"),
        ({"roles": Roles(stay="a", step="a")}, r"^column a: must play one part only\.$"),
    ],
)
def test_a_schema_that_contradicts_itself_is_refused(changes, message):
    with pytest.raises(SettingError, match=message):
        Schema(**{"sequence": ("x",), "n_actions": 2, **changes})


def test_a_feature_may_be_missing_only_if_it_or_its_category_has_a_mark():
    may = {name: FULL.may_be_missing(name) for name in (*FULL.sequence, *FULL.static)}
    assert [name for name, yes in may.items() if yes] == ["hr", "ward=er", "ward=icu"]


def broken():
    good = FULL.to_json()
    yield "not an object", []
    yield "key missing", {key: value for key, value in good.items() if key != "lag"}
    yield "key too many", {**good, "extra": 1}
    for key in good:
        for value in (None, 7.5, "text", [1], {"a": 1}, True):
            yield f"{key} = {value!r}", {**good, key: value}
    yield "role missing", {**good, "roles": {"stay": "a"}}
    yield "role no text", {**good, "roles": {**good["roles"], "stay": 1}}
    yield "levels no list", {**good, "categories": {"ward": "er"}}
    yield "note no text", {**good, "provenance": {"a": 1}}


@pytest.mark.parametrize("case", dict(broken()))
def test_anything_unexpected_in_json_is_refused_in_one_line(case):
    with pytest.raises(SettingError) as caught:
        Schema.from_json(dict(broken())[case])
    assert len(str(caught.value).splitlines()) == 1


def labelled(*labels):
    reading = ActionReading(("drug",), tuple((label,) for label in labels))
    return Schema(sequence=("x",), n_actions=len(labels), recipe=Recipe(action=reading))


def test_actions_mean_the_same_if_their_labels_stand_in_the_same_places():
    log = labelled("a", "b", "c")
    assert labelled("a", "b").means_actions_of(log)
    assert not labelled("a", "c").means_actions_of(log)
    assert not labelled("c", "b", "a").means_actions_of(log)
    plain = Schema(sequence=("x",), n_actions=2)
    assert plain.means_actions_of(log)  # nobody said what its numbers mean
    named = replace(plain, actions=("low", "high"))
    assert not replace(plain, actions=("high", "low")).means_actions_of(named)


def test_an_action_is_called_by_its_name_or_its_number():
    plain = Schema(sequence=("x",), n_actions=2)
    assert plain.action_name(1) == "action 1"
    assert replace(plain, actions=("low", "high")).action_name(1) == "high"
    assert plain.components == ()


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
