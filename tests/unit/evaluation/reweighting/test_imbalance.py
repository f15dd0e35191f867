import numpy as np
import pytest
from confounded_worlds import confounded, marginal

from etips.evaluation.reweighting.imbalance import measure_imbalance


def test_a_case_by_hand():
    table = np.array([[0.5, 0.5], [0.5, 0.5], [0.25, 0.75], [0.25, 0.75]])
    functions = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    imbalance = measure_imbalance(table, np.array([0, 0, 0, 1]), functions)
    # action 0 weighs 2, 2, 4: (2 - 2 + 4) / 8; action 1 only has the last decision
    assert imbalance.gap[:, 0] == pytest.approx([0.5, -1.0])
    assert imbalance.share == pytest.approx([0.75, 0.25])
    assert imbalance.size == pytest.approx(0.75 * 0.25 + 0.25)
    assert imbalance.prognosis == pytest.approx(np.sqrt(0.75 * 0.25 + 0.25))


def test_right_propensities_balance_what_frequencies_leave_apart():
    world = confounded("linear", n_stays=2000, seed=0)
    functions = np.column_stack([world.risk, world.x])
    right = measure_imbalance(world.right, world.action, functions)
    plain = measure_imbalance(marginal(world), world.action, functions)
    assert right.prognosis < 0.1 < plain.prognosis
    assert right.size < plain.size / 10


def test_an_action_never_taken_and_a_constant_function_count_nothing():
    table = np.tile([0.4, 0.6, 0.0], (10, 1))
    functions = np.column_stack([np.arange(10.0), np.full(10, 3.0)])
    imbalance = measure_imbalance(table, np.arange(10) % 2, functions)
    assert np.isfinite(imbalance.gap).all()
    assert imbalance.gap[2].tolist() == [0, 0]
    assert imbalance.gap[:, 1].tolist() == [0, 0, 0]
