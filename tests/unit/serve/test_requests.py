from dataclasses import replace

import numpy as np
import pytest
from served_runs import client, desk, question, ward

from etips.serve.schemas import EstimateCard, PolicyCard, Recommendation
from etips.serve.service import answer as make_answer
from etips.serve.stays import Advice


def test_a_recommendation_has_support_and_abstention():
    answer = client().post("/v1/recommend", json=question())
    assert answer.status_code == 200
    told = Recommendation.model_validate(answer.json())
    (decision,) = told.decisions
    assert (decision.stay, decision.step, decision.abstained) == (0, 1, False)
    assert told.actions[decision.number] == decision.recommended
    assert set(decision.parts) == {"fluid", "vasopressor"}
    assert decision.support == decision.clinicians[decision.number]
    assert sum(decision.probabilities) == pytest.approx(1)


def test_where_it_abstains_nothing_is_recommended(monkeypatch):
    advisor = desk().advisor
    ask = advisor.ask

    def silent(stays):
        advice = ask(stays)
        return replace(advice, abstained=np.ones_like(advice.abstained))

    monkeypatch.setattr(advisor, "ask", silent)
    (decision,) = client().post("/v1/recommend", json=question()).json()["decisions"]
    assert decision["abstained"]
    assert [decision[name] for name in ("recommended", "number", "parts", "support")] == [None] * 4


def test_many_stays_are_answered_in_their_order():
    one = question()["stays"][0]
    other = {**one, "steps": [{"values": {"MeanBP": 90.0, "shift": "day"}}]}
    told = client().post("/v1/recommend", json={"stays": [one, other, one]}).json()["decisions"]
    assert [own["stay"] for own in told] == [0, 1, 2]
    assert told[0]["probabilities"] == told[2]["probabilities"] != told[1]["probabilities"]


@pytest.mark.parametrize(
    ("body", "place", "rule"),
    [
        ({}, "stays", "must be given"),
        ({"stays": []}, "stays", "must not be empty"),
        ({"stays": 3}, "stays", "must be a list"),
        ({"stays": [{"static": {}, "steps": [{"values": {}}]}]}, "age", "must be given"),
        ({"secret": 1}, "?", "is not a field"),
    ],
)
def test_a_request_that_is_not_as_described_is_refused_with_place_and_rule(body, place, rule):
    answer = client().post("/v1/recommend", json=body)
    assert answer.status_code == 422
    faults = answer.json()["faults"]
    assert any(place in own["place"] and rule in own["rule"] for own in faults), faults


def test_a_body_that_is_not_json_is_refused():
    answer = client().post("/v1/recommend", content=b"x=1")
    assert answer.status_code == 415


def test_the_card_tells_data_features_actions_and_use():
    card = PolicyCard.model_validate(client().get("/v1/policy").json())
    assert card.data_fingerprint == "f" * 64
    assert [own.name for own in card.features] == ["MeanBP", "Lactate", "shift", "age"]
    assert [own.number for own in card.actions] == list(range(6))
    assert "not for" in card.intended_use
    assert (card.estimates, card.method, card.settings) == ([], "direct", {"seed": 0})
    assert {"verdict", "finding"} <= set(EstimateCard.model_fields)


def test_the_description_holds_the_fields_of_the_training_data_and_no_page_from_elsewhere():
    own = client()
    described = own.get("/openapi.json").json()
    values = described["components"]["schemas"]["Values"]
    assert set(values["properties"]) == {"MeanBP", "Lactate", "shift"}
    assert values["required"] == ["MeanBP", "shift"]
    assert set(described["paths"]) == {"/v1/recommend", "/v1/policy", "/health"}
    assert own.get("/docs").status_code == own.get("/redoc").status_code == 404


def test_health_says_so():
    assert client().get("/health").json()["status"] == "ok"


def test_a_policy_that_reads_actions_is_told_them():
    own = client(desk(0, True))
    body = question()
    body["stays"][0]["steps"][0]["action"] = ward().schema.actions[4]
    with_action = own.post("/v1/recommend", json=body)
    assert with_action.status_code == 200
    body["stays"][0]["steps"][0]["action"] = "something else"
    assert own.post("/v1/recommend", json=body).status_code == 422


def test_answers_are_as_the_description_says():
    chances = np.full((2, 6), 1 / 6)
    advice = Advice(chances, np.array([False, True]), None, 0.02)
    made = make_answer(desk().advisor, advice, np.array([0, 3]), np.array([1, 2]))
    first, second = made.decisions
    assert (first.recommended, first.support, first.clinicians) == (made.actions[0], None, None)
    assert (second.stay, second.step, second.recommended) == (3, 2, None)
    assert made.least_support == 0.02
