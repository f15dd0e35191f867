import json

import numpy as np
import pytest
from pydantic import ValidationError
from served_runs import desk, question, ward

from etips.serve.questions import Question


def ask(lag=0, earlier=False, **more):
    own = desk(lag, earlier)
    asked = Question(own.form, own.advisor.labels, earlier_actions=earlier)
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
    asked = Question(own.form, own.advisor.labels, earlier_actions=earlier)
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
    asked = Question(own.form, own.advisor.labels, earlier_actions=False)
    body = question()
    body["stays"][0]["steps"][0]["values"] |= change
    with pytest.raises(ValidationError):
        asked.read(json.dumps(body).encode())
    with pytest.raises(ValidationError):
        asked.read(b'{"stays":[{"static":{"age":NaN},"steps":[]}]}')
