"""What the propensities of all actions lead to expect of the weights."""

import numpy as np
import pytest

from etips.evaluation import weigh
from etips.evaluation.expected_weights import N_HEAVY, expect_weights
from etips.evaluation.inference.checks import code_clusters, totals


def test_moments_are_those_of_weights_drawn_again_and_again():
    generator = np.random.default_rng(0)
    table, policy = generator.dirichlet((2, 2, 2), 60), generator.dirichlet((1, 1, 1), 60)
    clusters = code_clusters(np.arange(60) // 3, n=60)
    found = expect_weights(policy, table, clusters)
    means, squares = [], []
    for _ in range(4000):
        action = (generator.random(60)[:, None] > table.cumsum(axis=1)).sum(axis=1).clip(max=2)
        weight = weigh(policy, action, table[np.arange(60), action])
        means.append(weight.mean())
        squares.append((totals(clusters.code, weight, 20) ** 2).sum())
    assert found.mean == pytest.approx(1)
    assert found.std_error == pytest.approx(np.std(means), rel=0.1)
    assert found.clusters == pytest.approx(60**2 / np.mean(squares), rel=0.1)


def test_a_floor_takes_weight_from_rare_choices():
    table = np.tile([0.005, 0.995], (100, 1))
    clusters = code_clusters(np.arange(100), n=100)
    always = np.tile([1.0, 0.0], (100, 1))
    assert expect_weights(always, table, clusters).mean == pytest.approx(1)
    assert expect_weights(always, table, clusters, floor=0.01).mean == pytest.approx(0.5)


def test_where_the_policy_abstains_nothing_is_left_to_chance():
    table, clusters = np.tile([0.001, 0.999], (50, 1)), code_clusters(np.arange(50), n=50)
    always = np.tile([1.0, 0.0], (50, 1))
    found = expect_weights(always, table, clusters, abstains=np.ones(50, dtype=bool))
    assert (found.mean, found.std_error, found.tail) == (1, 0, 0)
    assert found.clusters == pytest.approx(50)


def test_the_tail_is_the_share_of_choices_that_five_decisions_stand_for():
    clusters = code_clusters(np.arange(1000), n=1000)
    even, always = np.full((1000, 10), 0.1), np.tile(np.eye(10)[3], (1000, 1))
    found = expect_weights(always, even, clusters)  # 100 decisions match: five are a twentieth
    assert found.tail == pytest.approx(N_HEAVY / 100, rel=0.05)
    mixed = even.copy()
    mixed[:100, 3] = 0.01  # a tenth of the choices, and one decision expected there
    mixed[:100, 4] = 0.19
    assert 0.1 < expect_weights(always, mixed, clusters).tail < 0.16
    mixed[:100, 3], mixed[:100, 4] = 0.0, 0.2
    found = expect_weights(always, mixed, clusters)
    assert found.clusters == 0
    assert found.mean == pytest.approx(0.9)
    assert found.tail > 0.1
