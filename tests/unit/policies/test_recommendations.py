"""Recommendations as a table."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import small, ward

from etips.data.intake.dose_classes import DoseClasses, dose_names
from etips.data.recipe import ActionReading, Recipe
from etips.errors import DataError
from etips.learn import DoublyRobust
from etips.policies.policy import Answer, FittedPolicy
from etips.policies.recommendations import Recommendations, chance_names

DATA = ward()


@pytest.fixture(scope="module")
def policy():
    return DoublyRobust(**small(support=0.2)).fit(DATA).policy_


def test_a_row_a_decision_with_what_was_done_and_what_is_advised(policy):
    advice = Recommendations.of(policy, DATA)
    table, answer = advice.table(), policy.answer(DATA)
    names = ["stay", "step", "logged_action", "recommended_action", "p_0", "p_1", "p_2"]
    assert table.column_names == [*names, "abstained"]
    assert table.num_rows == DATA.n_decisions
    assert table["stay"].to_pylist() == DATA.stay[DATA.decisions().stay].tolist()
    assert table["step"].to_pylist() == DATA.step[DATA.decision_rows].tolist()
    assert table["logged_action"].to_pylist() == DATA.logged_action.tolist()
    assert table["recommended_action"].to_pylist() == policy.predict(DATA).tolist()
    assert table["abstained"].to_pylist() == answer.abstained.tolist()
    chances = np.stack([table[f"p_{k}"].to_numpy() for k in range(3)], axis=1)
    assert (chances == answer.probabilities).all()


def test_abstentions_are_counted_and_agreement_is_with_the_log():
    policy = FittedPolicy("constant", DATA.schema, constant=1)
    advice = Recommendations.of(policy, DATA)
    assert advice.agreement == pytest.approx((DATA.logged_action == 1).mean())
    abstained = np.arange(DATA.n_decisions) < 4
    other = Recommendations(DATA, Answer(advice.answer.probabilities, abstained), advice.advised)
    assert (advice.n_abstained, other.n_abstained) == (0, 4)


def test_questions_have_no_logged_action_and_may_lie_one_step_past_the_end(policy):
    asked = DATA.without_log()
    advice = Recommendations.of(policy, asked)
    table = advice.table()
    assert advice.agreement is None
    assert table["logged_action"].null_count == table.num_rows == asked.n_decisions
    last = dict(zip(table["stay"].to_pylist(), table["step"].to_pylist(), strict=True))
    ends = asked.step[asked.offsets[1:] - 1] + 1
    assert last == dict(zip(asked.stay.tolist(), ends.tolist(), strict=True))


def doses_of_ward():
    doses = DoseClasses("fluid_ml", (250.0,), (0.0, 100.0, 400.0), unit="ml")
    recipe = Recipe(doses=(doses,))
    schema = replace(DATA.schema, actions=dose_names([doses]), recipe=recipe)
    return replace(DATA, schema=schema)


def test_named_actions_are_told_by_name_and_number():
    data = replace(DATA, schema=replace(DATA.schema, actions=("rest", "walk", "run")))
    table = Recommendations.of(FittedPolicy("constant", data.schema, constant=1), data).table()
    names = ["logged_action", "recommended_action", "logged_number", "recommended_number"]
    assert table.column_names == ["stay", "step", *names, "p_rest", "p_walk", "p_run", "abstained"]
    assert set(table["recommended_action"].to_pylist()) == {"walk"}
    assert set(table["recommended_number"].to_pylist()) == {1}
    logged = [data.schema.actions[a] for a in data.logged_action]
    assert table["logged_action"].to_pylist() == logged
    asked = Recommendations.of(
        FittedPolicy("constant", data.schema, constant=1), data.without_log()
    )
    assert asked.table()["logged_action"].null_count == asked.table().num_rows


def test_names_that_are_not_distinct_leave_the_probabilities_their_numbers():
    schema = replace(DATA.schema, actions=("rest", "rest", "run"))
    assert chance_names(schema) == ["p_0", "p_1", "p_2"]


@pytest.mark.parametrize(
    ("action", "limits"),
    [(0, (0.0, 0.0, 0.0)), (1, (0.0, 250.0, 100.0)), (2, (250.0, None, 400.0))],
)
def test_a_dose_is_told_by_its_limits_and_median(action, limits):
    data = doses_of_ward()
    table = Recommendations.of(FittedPolicy("constant", data.schema, constant=action), data).table()
    found = [table[f"fluid_{what}"][0].as_py() for what in ("low", "high", "median")]
    assert tuple(found) == limits


def test_shares_are_told_at_length_and_not_of_a_few_people():
    data = doses_of_ward()
    advice = Recommendations.of(FittedPolicy("constant", data.schema, constant=2), data)
    assert advice.shares() == [("fluid over 250 (median 400 ml)", 1.0)]
    advised = np.where(data.cluster < 3, 1, 2)
    few = replace(advice, advised=advised).shares()
    assert [share for _, share in few] == [None, None]


def test_questions_without_names_get_those_of_the_policy():
    schema = replace(DATA.schema, actions=("rest", "walk", "run"))
    policy = FittedPolicy("constant", schema, constant=2)
    table = Recommendations.of(policy, DATA.without_log()).table()
    assert set(table["recommended_action"].to_pylist()) == {"run"}


def test_a_log_whose_actions_mean_something_else_is_refused():
    data = doses_of_ward()
    policy = FittedPolicy("constant", data.schema, constant=1)
    other = DoseClasses("fluid_ml", (300.0,), (0.0, 100.0, 400.0), unit="ml")
    moved = replace(data, schema=replace(data.schema, recipe=Recipe(doses=(other,))))
    with pytest.raises(
        DataError, match=r"^data, actions: are not those .* like=policy\.schema, .* etips\.align"
    ):
        Recommendations.of(policy, moved)
    Recommendations.of(policy, moved.without_log())
    reading = Recipe(action=ActionReading(("drug",), (("a",), ("b",), ("c",))))
    turned = Recipe(action=ActionReading(("drug",), (("c",), ("b",), ("a",))))
    named = replace(DATA.schema, recipe=reading)
    with pytest.raises(DataError, match=r"^data, actions: "):
        FittedPolicy("constant", named, constant=1).answer(
            replace(DATA, schema=replace(DATA.schema, recipe=turned))
        )
    FittedPolicy("constant", named, constant=1).answer(DATA)  # numbers that nobody explained
