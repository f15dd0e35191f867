"""A run as it is served: advice, stays under other names, one decision, the model card."""

from dataclasses import replace

import numpy as np
import pytest
from served_runs import client, desk, fitted, make_desk, question, ward
from stacks import stacked

from etips.data.schema import Schema
from etips.errors import FileError
from etips.policies.policy_files import save_policy
from etips.serve.service import mark_policy, open_run
from etips.serve.stays import Advice, StayList, name_stays, parts_of


def view(at=0, lag=0):
    own = desk(lag)
    return own.stays.view(own.stays.rows[0].code, at)


def test_advice_is_what_the_policy_answers_with_what_clinicians_do():
    own, data = desk().advisor, ward(20, seed=3)
    advice = own.ask(data)
    np.testing.assert_array_equal(advice.probabilities, fitted().answer(data).probabilities)
    np.testing.assert_allclose(advice.clinicians, fitted().propensities(data))
    np.testing.assert_array_equal(advice.supported, advice.clinicians >= fitted().support)


def test_doubt_is_how_close_the_second_choice_comes():
    chances = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.5, 0.3, 0.2]])
    advice = Advice(chances, np.zeros(3, bool), None, 0.01)
    np.testing.assert_allclose(advice.doubt, [1.0, 0.0, 0.8])
    assert advice.supported.all()


def test_actions_are_made_of_parts_where_their_names_say_so():
    fluid, vasopressor = desk().advisor.parts
    assert (fluid.name, vasopressor.name) == ("fluid", "vasopressor")
    assert vasopressor.levels == ("none", "class 1", "class 2")
    assert (fluid.of_action, vasopressor.of_action) == ((0, 0, 0, 1, 1, 1), (0, 1, 2, 0, 1, 2))
    assert parts_of(Schema(("x",), 3, actions=("a", "b", "c"))) == ()


def test_names_tell_nothing_and_stay_the_same_for_the_same_key():
    data = ward(30)
    names = name_stays(data, b"key")
    assert len(set(names)) == 30
    assert names == name_stays(data, b"key") != name_stays(data, b"other")
    assert "CANARY" not in "".join(names)


def test_rows_count_disagreement_by_hand():
    own = desk().stays
    stay = own.data.decisions().stay
    other = own.advice.advised != own.data.logged_action
    for row in own.rows:
        mine = stay == own.place[row.code]
        assert row.n_decisions == mine.sum()
        assert row.disagreement == (other & ~own.advice.abstained)[mine].mean()
        assert len(own.view(row.code, 0).steps) == mine.sum()
    unlogged = StayList(desk().advisor, ward(5).without_log(), b"key")
    assert {row.disagreement for row in unlogged.rows} == {None}


def test_what_is_most_worth_a_look_comes_first_and_filters_hold():
    own = desk().stays
    rows = own.select("disagreement", "all")
    shares = [row.disagreement for row in rows]
    assert shares == sorted(shares, reverse=True)
    assert all(row.disagreement for row in own.select("doubt", "disagrees"))
    agreed = own.select("abstention", "agrees")
    assert all(not row.disagreement and not row.abstention for row in agreed)
    assert [row.code for row in own.select("doubt", "all", rows[0].code.lower())] == [rows[0].code]


def test_a_view_is_of_one_decision_with_what_it_sees_last():
    for lag in (0, 1):
        own = view(at=1, lag=lag)
        stays, form = desk(lag).stays, own.advisor.form
        number = stays.place[own.code]
        rows = stays.data.sequence[stays.data.offsets[number] : stays.data.offsets[number + 1]]
        assert own.row == own.step - lag
        assert own.value(form.sequence[0]) == rows[own.row, 0]
        assert own.logged == stays.data.action[stays.data.offsets[number] + own.step]
        assert own.value(form.static[0]) == stays.data.static[number, 0]
    assert view(at=999).at == len(view().steps) - 1


def test_other_values_are_asked_about_and_the_stay_is_left_alone():
    own = view()
    pressure, (age,) = own.advisor.form.sequence[0], own.advisor.form.static
    before = own.features.copy()
    low, high = own.changed({pressure: 40.0}), own.changed({pressure: 110.0})
    assert low.value(pressure) == 40
    assert "vasopressor 2" in own.advisor.labels[low.advised]
    assert "vasopressor 0" in own.advisor.labels[high.advised]
    assert own.changed({age: 95.0}).value(age) == 95
    np.testing.assert_array_equal(own.features, before)
    later = view(at=1)
    changed = later.changed({pressure: 30.0})
    np.testing.assert_array_equal(changed.advice.probabilities[0], later.advice.probabilities[0])


def test_a_run_is_opened_from_a_folder_with_or_without_stays(tmp_path):
    save_policy(fitted(), tmp_path / "run")
    own = open_run(tmp_path / "run", None, key=b"key")
    assert (own.stays, own.results, own.name) == (None, None, "run")
    assert (own.card.settings, own.card.data_fingerprint, own.card.estimates) == ({}, None, [])
    assert len(open_run(tmp_path / "run", ward(5), key=b"key").stays.rows) == 5
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(FileError):
            open_run(place, None, key=b"key")


def test_the_mark_of_a_policy_changes_with_its_weights_and_its_lean():
    assert mark_policy(fitted()) == mark_policy(fitted())
    assert mark_policy(fitted()) != mark_policy(fitted(1))
    policy = stacked(ward(120))
    own = make_desk(policy, ward(5, seed=1))
    (decision,) = client(own).post("/v1/recommend", json=question()).json()["decisions"]
    assert not decision["abstained"]
    assert decision["support"] == decision["clinicians"][decision["number"]]
    first, *others = policy.networks.members
    heavier = replace(policy.networks, members=(replace(first, weight=0.5 + 1e-8), *others))
    marks = [
        mark_policy(replace(policy, **more)) for more in ({}, {"lean": 0.1}, {"networks": heavier})
    ]
    assert len(set(marks)) == 3
    assert own.card.fingerprint == marks[0]
