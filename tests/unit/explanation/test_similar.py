"""Logged decisions that resemble one."""

from dataclasses import replace

import numpy as np
import pytest

from etips.errors import DataError
from etips.explanation.similar import (
    Neighbourhood,
    effective_people,
    nearness,
    similar_decisions,
)


@pytest.fixture(scope="module")
def neighbours(policy, log):
    return Neighbourhood.of(policy, log)


def test_a_usual_decision_has_some_who_resemble_it_and_shares_add_up(neighbours, longest):
    found = similar_decisions(neighbours, longest, int(longest.decisions().step[0]))
    assert found.people >= 11
    shares = [own.share for own in found.done]
    assert None in shares or sum(shares) == pytest.approx(1)
    assert 0 <= found.loss <= 1


def test_the_patients_own_decisions_do_not_count(neighbours, longest):
    weight = neighbours.resemblance(longest, int(longest.decisions().step[0]))
    own = neighbours.names[longest.stay[0]]
    assert (weight[neighbours.person == own] == 0).all()
    assert weight.max() > 0


def test_nothing_is_told_of_somebody_whom_nobody_resembles(neighbours, longest):
    odd = longest.with_features(longest.sequence + 50, longest.static + 50)
    found = similar_decisions(neighbours, odd, int(odd.decisions().step[0]))
    assert found.people is None
    assert found.done == ()
    assert found.loss is None


def test_nothing_is_told_where_all_are_fewer_than_eleven(policy, log, longest):
    neighbours = Neighbourhood.of(policy, log.subset(slice(0, 9)))
    found = similar_decisions(neighbours, longest, int(longest.decisions().step[0]))
    assert found.people is None
    assert found.done == ()


def test_an_action_of_a_few_people_has_no_share_and_cannot_be_worked_out(policy, log, longest):
    rare = np.where(log.action == 2, 0, log.action)
    rows = np.flatnonzero(log.action == 2)
    rare[rows[:6]] = 2
    neighbours = Neighbourhood.of(policy, replace(log, action=rare))
    wide = replace(neighbours, reach=100.0)
    found = similar_decisions(wide, longest, int(longest.decisions().step[0]))
    shares = {own.action: own.share for own in found.done}
    assert shares[2] is None
    assert sum(share is None for share in shares.values()) >= 2


def test_effective_people_are_people_where_all_count_alike():
    assert effective_people(np.ones(12), np.repeat(np.arange(6), 2)) == pytest.approx(6)
    assert effective_people(np.zeros(0), np.zeros(0, np.int64)) == 0


def test_nearness_falls_from_one_to_nothing():
    near = nearness(np.array([0.0, 0.5, 1.0, 2.0]), 1.0)
    assert near[0] == 1
    assert 0 < near[1] < 1
    assert not near[2:].any()
    assert nearness(np.array([0.0, 0.1]), 0.0).tolist() == [1.0, 0.0]


def test_questions_have_nothing_to_compare_with(policy, log):
    with pytest.raises(DataError, match="no logged decision"):
        Neighbourhood.of(policy, log.without_log())
