"""Recommendations as a table."""

import numpy as np
import pytest
from small_worlds import small, ward

from etips.learn import DoublyRobust
from etips.policies.policy import Answer, FittedPolicy
from etips.policies.recommendations import Recommendations

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
