"""Logged decisions that resemble one, and what to measure next."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import small, training
from stacks import linear, stacked

from etips.data.history_rows import summary_columns
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.errors import DataError
from etips.explanation.measure_next import wavers, what_to_measure
from etips.explanation.similar import (
    Neighbourhood,
    effective_people,
    nearness,
    similar_decisions,
)
from etips.learn import DirectMethod
from etips.learn.learners.lasso import QLearning
from etips.models.encoders.last_step import LastStep
from etips.models.stack import Part, Stack
from etips.policies.policy import Answer


@pytest.fixture(scope="module")
def neighbours(policy, log):
    return Neighbourhood.of(policy, log)


def first(stay):
    return int(stay.decisions().step[0])


def last(stay):
    return int(stay.decisions().step[-1])


def test_a_usual_decision_has_some_who_resemble_it_and_shares_add_up(neighbours, longest):
    found = similar_decisions(neighbours, longest, first(longest))
    assert found.people >= 11
    shares = [own.share for own in found.done]
    assert None in shares or sum(shares) == pytest.approx(1)
    assert 0 <= found.loss <= 1


def test_the_patients_own_decisions_do_not_count(neighbours, longest):
    weight = neighbours.resemblance(longest, first(longest))
    own = neighbours.names[longest.stay[0]]
    assert (weight[neighbours.person == own] == 0).all()
    assert weight.max() > 0


def test_nothing_is_shown_where_fewer_than_eleven_people_are_alike(
    neighbours, policy, log, longest
):
    odd = longest.with_features(longest.sequence + 50, longest.static + 50)
    few = Neighbourhood.of(policy, log.subset(slice(0, 9)))
    for near, stay in ((neighbours, odd), (few, longest)):
        found = similar_decisions(near, stay, first(stay))
        assert (found.people, found.done, found.loss) == (None, (), None)


def test_an_action_of_a_few_people_has_no_share_and_cannot_be_worked_out(policy, log, longest):
    rare = np.where(log.action == 2, 0, log.action)
    rare[np.flatnonzero(log.action == 2)[:6]] = 2
    wide = replace(Neighbourhood.of(policy, replace(log, action=rare)), reach=100.0)
    found = similar_decisions(wide, longest, first(longest))
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


# What to measure next


def two_tests(n=600, seed=0):
    """One decision a patient; the second of two tests, which half of them lack, tells what helps.

    The first has gaps too, and tells nothing.
    """
    rng = np.random.default_rng(seed)
    useless, telling = rng.normal(size=(2, n))
    gaps = rng.random((2, n)) < 0.4
    action = rng.integers(0, 2, n)
    chance = np.where(action == (telling > 0), 0.1, 0.9)
    columns = [
        np.where(gaps[0], np.nan, useless), np.where(gaps[1], np.nan, telling), gaps[0], gaps[1],
    ]  # fmt: skip
    names = ("useless", "telling", "useless_missing", "telling_missing")
    return Trajectories(
        sequence=np.column_stack(columns).astype(np.float32),
        offsets=np.arange(n + 1),
        schema=Schema(sequence=names, n_actions=2, lag=0, indicators=names[:2]),
        action=action,
        loss=(rng.random(n) < chance).astype(np.float64),
    )


@pytest.fixture(scope="module")
def tested():
    log = two_tests()
    learner = DirectMethod(**small(encoder=LastStep(16), training=training(epochs=20)))
    return log, Neighbourhood.of(learner.fit(log).policy_, log)


def stay_where(log, lacking):
    """A stay that lacks both tests, or neither."""
    missing = np.isnan(log.sequence[:, :2])
    chosen = missing.all(axis=1) if lacking else ~missing.any(axis=1)
    return log.subset([int(np.flatnonzero(chosen)[0])])


def test_the_test_that_tells_is_asked_for_before_the_useless_one(tested):
    log, neighbours = tested
    found = what_to_measure(neighbours, stay_where(log, lacking=True), 0)
    assert [own.column for own in found] == ["telling", "useless"]
    assert found[0].changes > 0.3 > found[1].changes
    assert found[0].age is None


def test_nothing_is_asked_for_that_was_just_measured_or_that_too_few_had(tested):
    log, neighbours = tested
    assert what_to_measure(neighbours, stay_where(log, lacking=False), 0) == []
    few = log.subset(slice(0, 15))
    learner = DirectMethod(**small(encoder=LastStep(4)))
    near = Neighbourhood.of(learner.fit(log).policy_, few)
    assert what_to_measure(near, stay_where(log, lacking=True), 0) == []


def test_a_value_that_stays_the_same_for_steps_is_old(neighbours, longest):
    sequence = np.array(longest.sequence)
    sequence[1:, 2] = sequence[0, 2]
    stay = replace(longest, sequence=sequence)
    found = what_to_measure(neighbours, stay, last(stay))
    assert [(own.column, own.age) for own in found] == [("lactate", 4)]
    assert 0 <= found[0].shift <= 1


def test_a_model_of_summaries_is_asked_with_likely_values(log, longest):
    policy = QLearning().fit(log).policy_
    still = np.repeat(longest.sequence[:1], longest.n_steps, axis=0)
    held = replace(longest, sequence=still)
    found = what_to_measure(Neighbourhood.of(policy, log), held, last(held))
    assert {one.column for one in found} == {"hr", "map", "lactate", "flat"}


def test_what_was_highest_so_far_follows_a_likely_value(gappy):
    """Lactate is measured next where the highest so far alone decides."""
    model = linear(gappy, "history")
    names = summary_columns(gappy.schema, extremes=True)
    weight = np.zeros_like(model.weight)
    weight[0, names.index("highest lactate")] = [50, -50, 0]
    decided = replace(model, weight=weight, base=np.array([[0.0, 5.0, 5.0]]))
    policy = stacked(gappy, lean=0.0, networks=Stack((Part(decided, 1.0, "amount"),), "losses"))
    stay = gappy.subset([int(np.argmax(np.diff(gappy.offsets)))])
    sequence = np.array(stay.sequence)
    sequence[:, [0, gappy.schema.sequence.index("lactate")]] = np.nan
    unknown = replace(stay, sequence=sequence)
    found = what_to_measure(Neighbourhood.of(policy, gappy), unknown, last(unknown))
    shift = {one.column: one.shift for one in found}
    assert shift["lactate"] > 0
    assert shift["hr"] == 0


def test_a_policy_wavers_where_it_abstains_or_two_actions_are_alike():
    said = Answer(np.array([[0.52, 0.48], [0.9, 0.1], [0.9, 0.1]]), np.array([False, False, True]))
    assert wavers(said).tolist() == [True, False, True]
