"""Dataclasses as JSON."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pytest

from etips.data.intake.recipe_json import from_document, to_document
from etips.errors import SettingError


@dataclass(frozen=True)
class Part:
    name: str
    edges: tuple[float, ...] = ()


@dataclass(frozen=True)
class Whole:
    parts: Mapping[str, Part]
    word: Literal["a", "b"] = "a"
    more: Part | None = None
    exact: bool = False


def there_and_back(whole):
    return from_document(Whole, json.loads(json.dumps(to_document(whole))), where="whole")


def test_what_is_written_comes_back():
    whole = Whole({"x": Part("x", (0.5, 2.0))}, "b", Part("y"), exact=True)
    assert there_and_back(whole) == whole


def test_a_number_that_is_none_comes_back_as_none():
    edges = there_and_back(Whole({"x": Part("x", (math.nan, 1.0))})).parts["x"].edges
    assert math.isnan(edges[0])
    assert edges[1] == 1.0


def test_a_field_that_an_older_file_lacks_has_its_default():
    assert from_document(Whole, {"parts": {}}, where="whole") == Whole({})


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"parts": []},
        {"parts": {"x": 3}},
        {"parts": {"x": {"name": 3}}},
        {"parts": {"x": {"name": "x", "edges": [True]}}},
        {"parts": {}, "word": "c"},
        {"parts": {}, "word": []},
        {"parts": {}, "exact": 1},
        {"parts": {}, "unknown": 1},
    ],
)
def test_anything_else_is_refused(document):
    with pytest.raises(SettingError, match=r"^whole.*: is not as it was saved\.$"):
        from_document(Whole, document, where="whole")
