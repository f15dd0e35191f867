"""What to measure next."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import small, training

from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.explanation.measure_next import wavers, what_to_measure
from etips.explanation.similar import Neighbourhood
from etips.learn import DirectMethod
from etips.models.encoders.last_step import LastStep
from etips.policies.policy import Answer


def gappy(n=600, seed=0):
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
def gaps():
    log = gappy()
    learner = DirectMethod(**small(encoder=LastStep(16), training=training(epochs=20)))
    return log, Neighbourhood.of(learner.fit(log).policy_, log)


def test_the_test_that_tells_is_asked_for_and_the_useless_one_is_not(gaps):
    log, neighbours = gaps
    lacking = np.flatnonzero(np.isnan(log.sequence[:, :2]).all(axis=1))[0]
    found = what_to_measure(neighbours, log.subset([int(lacking)]), 0)
    assert [own.column for own in found] == ["telling", "useless"]
    assert found[0].changes > 0.3 > found[1].changes
    assert found[0].age is None


def test_nothing_is_asked_for_that_was_just_measured(gaps):
    log, neighbours = gaps
    known = np.flatnonzero(~np.isnan(log.sequence[:, :2]).any(axis=1))[0]
    assert what_to_measure(neighbours, log.subset([int(known)]), 0) == []


def test_a_value_that_stays_the_same_for_steps_is_old(policy, log, longest):
    sequence = np.array(longest.sequence)
    sequence[1:, 2] = sequence[0, 2]
    stay = replace(longest, sequence=sequence)
    found = what_to_measure(Neighbourhood.of(policy, log), stay, int(stay.decisions().step[-1]))
    assert [(own.column, own.age) for own in found] == [("lactate", 4)]
    assert 0 <= found[0].shift <= 1


def test_likely_values_come_from_twenty_two_people_or_more(gaps):
    log, _ = gaps
    few = log.subset(slice(0, 15))
    learner = DirectMethod(**small(encoder=LastStep(4)))
    neighbours = Neighbourhood.of(learner.fit(log).policy_, few)
    lacking = np.flatnonzero(np.isnan(log.sequence[:, :2]).all(axis=1))[0]
    assert what_to_measure(neighbours, log.subset([int(lacking)]), 0) == []


def test_a_policy_wavers_where_it_abstains_or_two_actions_are_alike():
    said = Answer(np.array([[0.52, 0.48], [0.9, 0.1], [0.9, 0.1]]), np.array([False, False, True]))
    assert wavers(said).tolist() == [True, False, True]
