"""Fields of the training data, stays asked about in JSON, and what is said of faults."""

import json
from typing import Literal

import numpy as np
import pytest
from pydantic import BaseModel, ConfigDict, ValidationError
from served_runs import desk, fitted, question, ward

import etips
from etips.serve.fields import Form
from etips.serve.schemas import Question, describe_faults


def ask(lag=0, earlier=False, **more):
    own = desk(lag, earlier)
    asked = Question(own.advisor.form, own.advisor.labels, earlier_actions=earlier)
    return own, *asked.read(json.dumps(question(**more)).encode())


def as_json(data, stay, steps, *, actions=False):
    """A stay of a log as a request holds it."""
    names = ("MeanBP", "Lactate")
    rows = data.sequence[data.offsets[stay] : data.offsets[stay] + steps]
    told = []
    for number, row in enumerate(rows):
        values = {name: float(row[k]) for k, name in enumerate(names)}
        values["Lactate"] = None if row[4] else values["Lactate"]
        values["shift"] = "night" if row[2] else "day"
        own = {"values": values}
        if actions and number < steps - (1 - data.lag):
            own["action"] = data.schema.actions[data.action[data.offsets[stay] + number]]
        told.append(own)
    return {"steps": told, "static": {"age": float(data.static[stay, 0])}}


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("earlier", [False, True])
def test_a_stay_in_json_gets_the_answer_that_the_log_gets(lag, earlier):
    own, data = desk(lag, earlier), ward(30, seed=1, lag=lag)
    logged = own.advisor.ask(data)
    stay_of, step_of = data.decisions()
    asked = Question(own.advisor.form, own.advisor.labels, earlier_actions=earlier)
    for stay in range(8):
        mine = np.flatnonzero(stay_of == stay)
        steps = int(step_of[mine[-1]]) + 1 - lag
        body = {"stays": [as_json(data, stay, steps, actions=earlier)]}
        stays, places = asked.read(json.dumps(body).encode())
        answer = own.advisor.ask(stays).at(places)
        assert stays.decisions().step[places].tolist() == [step_of[mine[-1]]]
        np.testing.assert_allclose(
            answer.probabilities[0], logged.probabilities[mine[-1]], atol=1e-6
        )


@pytest.mark.parametrize("earlier", [False, True])
def test_only_the_newest_step_is_answered_unless_all_are_asked_for(earlier):
    assert len(ask(earlier=earlier, n_steps=3)[2]) == 1
    _, stays, places = ask(earlier=earlier, n_steps=3, every_step=True)
    expected = [2] if earlier else [0, 1, 2]  # actions of the first two are not known
    assert stays.decisions().step[places].tolist() == expected


@pytest.mark.parametrize(
    "change",
    [
        {"MeanBP": "58"},
        {"MeanBP": True},
        {"MeanBP": None},
        {"MeanBP": 1e39},
        {"shift": "dusk"},
        {"pressure": 3},
    ],
)
def test_what_the_training_data_do_not_have_is_refused(change):
    own = desk()
    asked = Question(own.advisor.form, own.advisor.labels, earlier_actions=False)
    body = question()
    body["stays"][0]["steps"][0]["values"] |= change
    with pytest.raises(ValidationError):
        asked.read(json.dumps(body).encode())
    with pytest.raises(ValidationError):
        asked.read(b'{"stays":[{"static":{"age":NaN},"steps":[]}]}')


def form():
    policy = fitted()
    return Form.of(policy.schema, policy.scaler)


def test_a_category_and_a_value_that_may_miss_are_one_field_each():
    own = form()
    assert [field.name for field in own.sequence] == ["MeanBP", "Lactate", "shift"]
    pressure, lactate, shift = own.sequence
    assert (pressure.may_miss, lactate.may_miss, shift.may_miss) == (False, True, False)
    assert (shift.levels, shift.columns, lactate.mark) == (("night", "day"), (2, 3), 4)
    assert [field.name for field in own.static] == ["age"]


def test_what_is_missing_is_carried_forward_within_a_stay_and_marked():
    rows = [(60.0, 2.0, "night"), (61.0, None, "day"), (62.0, None, "day")]
    made = form().steps(rows, np.array([0, 0, 2]))
    assert made[1].tolist() == [61, 2, 0, 1, 1]
    assert np.isnan(made[2, 1])
    assert made[2, 4] == 1


def test_rows_are_read_as_a_table_of_the_same_cells_is(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 60
    table = pandas.DataFrame(
        {
            "stay": np.repeat(np.arange(20), 3),
            "step": np.tile(np.arange(3), 20),
            "pressure": rng.normal(70, 9, n),
            "lactate": np.where(rng.random(n) < 0.3, np.nan, rng.random(n)),
            "ward": np.where(rng.random(n) < 0.5, "icu", "floor"),
            "treat": rng.integers(0, 2, n),
            "harm": rng.integers(0, 2, n),
        }
    )
    log = etips.read_table(table, stay="stay", step="step", action="treat", loss="harm", lag=0)
    own = Form.of(log.schema, None)
    names = [field.name for field in own.sequence]
    cells = [
        tuple(None if value != value else value for value in row)
        for row in table[names].itertuples(index=False)
    ]
    made = own.steps(cells, np.repeat(np.arange(0, n, 3), 3))
    np.testing.assert_array_equal(made, log.sequence[:])


def test_a_field_is_read_and_written_in_a_row():
    row = ward().sequence[0].copy()
    pressure, lactate, shift = form().sequence
    for field, value in ((pressure, 55.0), (shift, "day"), (shift, "night"), (lactate, 3.5)):
        field.write(row, value)
        assert field.read(row) == value
        assert not field.missing(row)
    lactate.write(row, None)
    assert (lactate.read(row), lactate.missing(row), row[4]) == (None, True, 1)


def test_static_fields_are_a_row_a_stay():
    assert form().stays([(50.0,), (61.0,)]).tolist() == [[50], [61]]


class Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    values: dict[str, float]
    ward: Literal["a", "b"] | None = None


def refused(body):
    with pytest.raises(ValidationError) as caught:
        Asked.model_validate_json(body)
    return describe_faults(caught.value, {"values", "ward"})


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
