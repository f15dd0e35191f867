"""`POST /v1/recommend`, the model card and the description: what is asked, answered and refused."""

import json

import numpy as np
import pytest
from pydantic import ValidationError
from served_runs import client, desk, fitted, question, ward

import etips
from etips.serve import schemas
from etips.serve.fields import Form
from etips.serve.schemas import PolicyCard, Question, Recommendation
from etips.serve.service import answer as make_answer
from etips.serve.stays import Advice


def asked(lag=0, earlier=False):
    own = desk(lag, earlier).advisor
    return Question(own.form, own.labels, earlier_actions=earlier)


def as_json(data, stay, steps, *, actions=False):
    """A stay of a log as a request holds it."""
    rows = data.sequence[data.offsets[stay] : data.offsets[stay] + steps]
    listed = []
    for number, row in enumerate(rows):
        lactate = None if row[4] else float(row[1])
        values = {
            "MeanBP": float(row[0]),
            "Lactate": lactate,
            "shift": "night" if row[2] else "day",
        }
        listed.append({"values": values})
        if actions and number < steps - (1 - data.lag):
            action = data.action[data.offsets[stay] + number]
            listed[-1]["action"] = data.schema.actions[action]
    return {"steps": listed, "static": {"age": float(data.static[stay, 0])}}


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("earlier", [False, True])
def test_a_stay_in_json_gets_the_answer_that_the_log_gets(lag, earlier):
    advisor, data = desk(lag, earlier).advisor, ward(30, seed=1, lag=lag)
    logged = advisor.ask(data)
    stay_of, step_of = data.decisions()
    for stay in range(8):
        mine = np.flatnonzero(stay_of == stay)
        steps = int(step_of[mine[-1]]) + 1 - lag
        body = {"stays": [as_json(data, stay, steps, actions=earlier)]}
        stays, places = asked(lag, earlier).read(json.dumps(body).encode())
        advice = advisor.ask(stays).at(places)
        assert stays.decisions().step[places].tolist() == [step_of[mine[-1]]]
        expected = logged.probabilities[mine[-1]]
        np.testing.assert_allclose(advice.probabilities[0], expected, atol=1e-6)


@pytest.mark.parametrize("earlier", [False, True])
def test_only_the_newest_step_is_answered_unless_all_are_asked_for(earlier):
    for more, steps in (({}, [2]), ({"every_step": True}, [2] if earlier else [0, 1, 2])):
        body = json.dumps(question(n_steps=3, **more)).encode()
        stays, places = asked(earlier=earlier).read(body)
        assert stays.decisions().step[places].tolist() == steps  # earlier actions are not known


def test_a_recommendation_has_support_and_is_in_the_order_of_the_request():
    one = question()["stays"][0]
    other = {**one, "steps": [{"values": {"MeanBP": 90.0, "shift": "day"}}]}
    answer = client().post("/v1/recommend", json={"stays": [one, other, one]})
    assert answer.status_code == 200
    made = Recommendation.model_validate(answer.json())
    first, second, third = made.decisions
    assert [(own.stay, own.step, own.abstained) for own in made.decisions] == [
        (0, 1, False), (1, 0, False), (2, 1, False)
    ]  # fmt: skip
    assert made.actions[first.number] == first.recommended
    assert set(first.parts) == {"fluid", "vasopressor"}
    assert first.support == first.clinicians[first.number]
    assert sum(first.probabilities) == pytest.approx(1)
    assert first.probabilities == third.probabilities != second.probabilities


def test_where_it_abstains_nothing_is_recommended():
    chances = np.full((2, 6), 1 / 6)
    advice = Advice(chances, np.array([False, True]), None, 0.02)
    made = make_answer(desk().advisor, advice, np.array([0, 3]), np.array([1, 2]))
    first, second = made.decisions
    assert (first.recommended, first.support, first.clinicians) == (made.actions[0], None, None)
    assert (second.stay, second.step, second.abstained) == (3, 2, True)
    assert (second.recommended, second.number, second.parts, second.support) == (None,) * 4
    assert made.least_support == 0.02


def test_a_policy_that_reads_actions_takes_them():
    own, body = client(desk(0, True)), question()
    for action, status in ((ward().schema.actions[4], 200), ("something else", 422)):
        body["stays"][0]["steps"][0]["action"] = action
        assert own.post("/v1/recommend", json=body).status_code == status


VALUES = [
    ({"MeanBP": "CANARY"}, "values.MeanBP", "must be a number"),
    ({"MeanBP": True}, "values.MeanBP", "must be a number"),
    ({"MeanBP": None}, "values.MeanBP", "must be a number"),
    ({"MeanBP": 1e39}, "values.MeanBP", "is above what is possible"),
    ({"shift": "CANARY"}, "values.shift", "must be one of the levels"),
    ({"CANARY": 3}, "values.?", "is not a field"),
]


@pytest.mark.parametrize(
    ("body", "place", "rule"),
    [
        ({}, "stays", "must be given"),
        ({"stays": []}, "stays", "must not be empty"),
        ({"stays": 3}, "stays", "must be a list"),
        ({"stays": [{"static": {}, "steps": [{"values": {}}]}]}, "age", "must be given"),
        ({"CANARY": 1}, "?", "is not a field"),
        *VALUES,
    ],
)
def test_a_request_that_is_not_as_described_is_refused_with_place_and_rule_w5(body, place, rule):
    if (body, place, rule) in VALUES:
        changed, body = body, question()
        body["stays"][0]["steps"][0]["values"] |= changed
    answer = client().post("/v1/recommend", json=body)
    assert answer.status_code == 422
    assert "CANARY" not in answer.text
    faults = answer.json()["faults"]
    assert any(place in own["place"] and rule in own["rule"] for own in faults), faults


def test_of_many_faults_the_first_are_named():
    refused = client().post("/v1/recommend", json={f"k{n}": "x" for n in range(50)}).json()
    assert len(refused["faults"]) == 20
    assert "31 more" in refused["detail"]


def test_a_body_that_is_not_json_and_one_that_would_take_long_are_refused_w4(monkeypatch):
    assert client().post("/v1/recommend", content=b"x=1").status_code == 415
    with pytest.raises(ValidationError):
        asked().read(b'{"stays":[{"static":{"age":NaN},"steps":[]}]}')
    monkeypatch.setattr(schemas, "MAX_CELLS", 1000)
    steps = [{"values": {}}] * 100
    for body, status in ((question(), 200), ({"stays": [{"steps": steps}]}, 413)):
        assert client().post("/v1/recommend", json=body).status_code == status


def test_the_card_shows_data_features_actions_and_use():
    card = PolicyCard.model_validate(client().get("/v1/policy").json())
    assert card.data_fingerprint == "f" * 64
    assert [own.name for own in card.features] == ["MeanBP", "Lactate", "shift", "age"]
    assert [own.number for own in card.actions] == list(range(6))
    assert "not for" in card.intended_use
    assert (card.estimates, card.method, card.settings) == ([], "direct", {"seed": 0})


def test_the_description_holds_the_fields_of_the_training_data_and_no_page_from_elsewhere():
    own = client()
    described = own.get("/openapi.json").json()
    values = described["components"]["schemas"]["Values"]
    assert set(values["properties"]) == {"MeanBP", "Lactate", "shift"}
    assert values["required"] == ["MeanBP", "shift"]
    assert set(described["paths"]) == {"/v1/recommend", "/v1/policy", "/health"}
    assert own.get("/docs").status_code == own.get("/redoc").status_code == 404
    assert own.get("/health").json()["status"] == "ok"


def form():
    return Form.of(fitted().schema, fitted().scaler)


def test_a_category_and_a_value_that_may_miss_are_one_field_each():
    own = form()
    assert [field.name for field in (*own.sequence, *own.static)] == [
        "MeanBP",
        "Lactate",
        "shift",
        "age",
    ]
    pressure, lactate, shift = own.sequence
    assert (pressure.may_miss, lactate.may_miss, shift.may_miss) == (False, True, False)
    assert (shift.levels, shift.columns, lactate.mark) == (("night", "day"), (2, 3), 4)
    row = ward().sequence[0].copy()
    for field, value in ((pressure, 55.0), (shift, "day"), (shift, "night"), (lactate, 3.5)):
        field.write(row, value)
        assert field.read(row) == value
        assert not field.missing(row)
    lactate.write(row, None)
    assert (lactate.read(row), lactate.missing(row), row[4]) == (None, True, 1)


def test_what_is_missing_is_carried_forward_within_a_stay_and_marked():
    rows = [(60.0, 2.0, "night"), (61.0, None, "day"), (62.0, None, "day")]
    made = form().steps(rows, np.array([0, 0, 2]))
    assert made[1].tolist() == [61, 2, 0, 1, 1]
    assert np.isnan(made[2, 1])
    assert made[2, 4] == 1
    assert form().stays([(50.0,), (61.0,)]).tolist() == [[50], [61]]


def test_rows_are_read_as_a_table_of_the_same_cells_is():
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
    cells = table[[field.name for field in own.sequence]].itertuples(index=False)
    rows = [tuple(None if value != value else value for value in row) for row in cells]
    made = own.steps(rows, np.repeat(np.arange(0, n, 3), 3))
    np.testing.assert_array_equal(made, log.sequence[:])
