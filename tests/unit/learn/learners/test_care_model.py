"""A counted model of care, and its best policy."""

import numpy as np
import pytest

from etips.learn.learners.ai_clinician import CareModel


def by_hand(**more):
    """Two stays: 0 -a0-> 1 -a1-> end at cost 1; 0 -a0-> 0 -a1-> end at cost 0."""
    state, action = np.array([0, 1, 0, 0]), np.array([0, 1, 0, 1])
    cost, stay = np.array([0.0, 1.0, 0.0, 0.0]), np.array([0, 0, 1, 1])
    return CareModel.count(state, action, cost, stay, n_states=2, n_actions=2, **more)


def test_counts_of_two_stays_worked_by_hand():
    model = by_hand()
    assert model.taken.tolist() == [[2, 1], [0, 1]]
    assert model.cost.tolist() == [[0, 0], [0, 1]]
    moves = dict(zip(zip(model.origin, model.target, strict=True), model.chance, strict=True))
    assert moves == {(0, 0): 0.5, (0, 1): 0.5}


def test_the_value_of_a_policy_is_solved_exactly():
    """Always a0 in state 0, a1 in state 1: V0 = 0.9 (V0 / 2 + 1 / 2), V1 = 1."""
    found = by_hand().value_of(np.array([0, 1]), 0.9)
    assert found == pytest.approx([0.45 / 0.55, 1.0])


def test_rare_actions_are_left_out_unless_nothing_else_was_done():
    assert by_hand().open_actions(1).tolist() == [[True, False], [False, True]]
    assert by_hand().open_actions(0).tolist() == [[True, True], [False, True]]


def test_a_prior_draws_an_action_to_its_state():
    own, drawn = by_hand(), by_hand(prior=2.0)
    value = np.array([0.0, 1.0])
    plain = own.look_ahead(value, 1.0)
    assert plain[0].tolist() == [0.5, 0.0]
    state = (2 * 0.5 + 1 * 0.0) / 3
    expected = [(2 * 0.5 + 2 * state) / 4, (1 * 0.0 + 2 * state) / 3]
    assert drawn.look_ahead(value, 1.0)[0] == pytest.approx(expected)


@pytest.mark.parametrize("prior", [0.0, 5.0])
def test_the_policy_is_the_best_of_all(prior):
    rng = np.random.default_rng(0)
    n_states, n_actions, n = 4, 3, 3000
    stay = np.repeat(np.arange(n // 5), 5)
    state, action = rng.integers(0, n_states, n), rng.integers(0, n_actions, n)
    cost = rng.normal(size=(n_states, n_actions))[state, action]
    model = CareModel.count(
        state, action, cost, stay, n_states=n_states, n_actions=n_actions, prior=prior
    )
    allowed = np.ones((n_states, n_actions), bool)
    allowed[0, 0] = False
    policy, costs = model.iterate_policy(allowed, 0.9)
    assert policy[0] != 0
    every = np.stack(np.meshgrid(*[range(n_actions)] * n_states), -1).reshape(-1, n_states)
    values = [model.value_of(own, 0.9) for own in every if own[0] != 0]
    best = np.min(values, axis=0)
    assert model.value_of(policy, 0.9) == pytest.approx(best)
    assert np.where(allowed, costs, np.inf).min(axis=1) == pytest.approx(best)
