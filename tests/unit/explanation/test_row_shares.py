"""Shapley values by sampled orders, and models of rows explained and asked."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import ward

from etips.explanation.attribution import attribute
from etips.explanation.measure_next import what_to_measure
from etips.explanation.preference import Preference
from etips.explanation.row_shares import row_shares
from etips.explanation.similar import Neighbourhood
from etips.learn.learners.qlearning import QLearning


def test_shares_of_a_sum_are_its_terms():
    weight = np.array([1.0, -2.0, 0.5, 3.0])
    row, reference = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 2.0, 1.0, 5.0])
    shares = row_shares(lambda rows: rows @ weight, row, reference)
    np.testing.assert_allclose(shares, weight * (row - reference))


def test_shares_of_anything_add_up():
    rng = np.random.default_rng(0)
    row, reference = rng.normal(size=(2, 6))

    def say(rows):
        return np.sin(rows).prod(axis=1) + rows[:, 0] * rows[:, 1]

    shares = row_shares(say, row, reference)
    whole = say(row[None]) - say(reference[None])
    assert shares.sum() == pytest.approx(whole[0])
    assert row_shares(say, row, row).tolist() == [0] * 6


def test_a_model_of_summaries_is_explained_and_asked_alike():
    log = ward(200)
    policy = QLearning().fit(log).policy_
    preference = Preference(policy)
    said, wanted = preference.answer(preference.read(log)), policy.answer(log)
    np.testing.assert_allclose(said.probabilities, wanted.probabilities, atol=1e-9)
    number = int(np.flatnonzero(np.diff(log.offsets) == 6)[0])
    stay = log.subset([number])
    own = attribute(policy, stay, int(stay.decisions().step[-1]), 0, 1)
    assert own.complete
    assert own.by.startswith("Shapley values, by sampled orders")
    held = replace(stay, sequence=np.repeat(stay.sequence[:1], stay.n_steps, axis=0))
    found = what_to_measure(Neighbourhood.of(policy, log), held, int(held.decisions().step[-1]))
    assert {one.column for one in found} == {"hr", "map", "lactate", "flat"}
