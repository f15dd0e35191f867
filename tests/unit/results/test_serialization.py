"""Dataclasses on their way into JSON."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from etips.results.serialization import to_json


@dataclass(frozen=True)
class Inner:
    share: float | None


@dataclass(frozen=True)
class Outer:
    inner: Inner
    rows: tuple[object, ...]
    named: dict


def test_fields_become_keys_and_what_json_lacks_becomes_null():
    rows = (np.float64(0.5), np.int64(3), np.bool_(True), float("nan"), float("inf"), "a", None)
    made = to_json(Outer(Inner(float("-inf")), rows, {1: (Inner(0.25),)}))
    assert made == {
        "inner": {"share": None},
        "rows": [0.5, 3, True, None, None, "a", None],
        "named": {"1": [{"share": 0.25}]},
    }
    assert [type(value) for value in made["rows"][:3]] == [float, int, bool]
    json.dumps(made, allow_nan=False)


def test_what_no_result_may_hold_is_an_error_and_not_its_text():
    with pytest.raises(TypeError, match="cannot hold ndarray"):
        to_json(Inner(np.zeros(3)))
