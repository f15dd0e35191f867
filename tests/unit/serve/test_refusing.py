from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from etips.serve.refusing import refuse_request


class Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    values: dict[str, float]
    ward: Literal["a", "b"] | None = None


def refused(body):
    with pytest.raises(ValidationError) as caught:
        Asked.model_validate_json(body)
    return refuse_request(caught.value, {"values", "ward"})


def test_places_are_named_but_for_keys_that_nobody_knows_w5():
    told = refused('{"values": {"SECRET": "SECRET"}, "ward": "SECRET", "SECRET": 1}')
    assert "SECRET" not in told.model_dump_json()
    assert [(own.place, own.rule) for own in told.faults] == [
        ("values.?", "must be a number"),
        ("ward", "must be one of the levels that the training data have"),
        ("?", "is not a field of the training data"),
    ]


def test_of_many_faults_the_first_are_told():
    told = refused('{"values": {' + ",".join(f'"k{n}": "x"' for n in range(50)) + "}}")
    assert len(told.faults) == 20
    assert "30 more" in told.detail
