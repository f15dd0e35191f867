import numpy as np
import pytest
from confounded_worlds import confounded, marginal

from etips.evaluation.inference.checks import code_clusters
from etips.evaluation.reweighting.imbalance import less_by, measure_imbalance


def measured(table, action, functions):
    return measure_imbalance([table], action, functions)[0]


def test_a_case_by_hand():
    table = np.array([[0.5, 0.5], [0.5, 0.5], [0.25, 0.75], [0.25, 0.75]])
    functions = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    imbalance = measured(table, np.array([0, 0, 0, 1]), functions)
    # action 0 weighs 2, 2, 4: (2 - 2 + 4) / 8; action 1 only has the last decision
    assert imbalance.gap[:, 0] == pytest.approx([0.5, -1.0])
    assert imbalance.share == pytest.approx([0.75, 0.25])
    assert imbalance.size == pytest.approx(0.75 * 0.25 + 0.25)
    assert imbalance.prognosis == pytest.approx(np.sqrt(0.75 * 0.25 + 0.25))


def test_right_propensities_balance_what_frequencies_leave_apart():
    world = confounded("linear", n_stays=2000, seed=0)
    functions = np.column_stack([world.risk, world.x])
    right = measured(world.right, world.action, functions)
    plain = measured(marginal(world), world.action, functions)
    assert right.prognosis < 0.1 < plain.prognosis
    assert right.size < plain.size / 10


def test_an_action_never_taken_and_a_constant_function_count_nothing():
    table = np.tile([0.4, 0.6, 0.0], (10, 1))
    functions = np.column_stack([np.arange(10.0), np.full(10, 3.0)])
    imbalance = measured(table, np.arange(10) % 2, functions)
    assert np.isfinite(imbalance.gap).all()
    assert imbalance.gap[2].tolist() == [0, 0]
    assert imbalance.gap[:, 1].tolist() == [0, 0, 0]


def test_how_much_less_is_held_against_the_noise_of_stays():
    world = confounded("linear", n_stays=600, seed=1)
    functions = np.column_stack([world.risk, world.x])
    clusters = code_clusters(world.cluster, n=len(world.x))
    plain, right = (
        measured(table, world.action, functions) for table in (marginal(world), world.right)
    )
    assert less_by(plain, right, clusters) > 3
    assert less_by(right, plain, clusters) < -3
    assert less_by(plain, plain, clusters) == 0


def test_the_influence_is_what_leaving_a_decision_out_would_do():
    world = confounded("linear", n_stays=100, seed=2)
    functions, table = np.column_stack([world.risk, world.x]), marginal(world)
    whole = measured(table, world.action, functions)
    scale, n = functions.std(axis=0), len(world.x)
    for left_out in (0, 5):
        keep = np.arange(n) != left_out
        part = functions[keep]
        units = part.std(axis=0) / scale  # the influence takes the spread as given
        gap = measured(table[keep], world.action[keep], part).gap * units
        moved = gap - whole.gap
        assert np.abs(moved).max() < 0.1
    assert whole.influence.sum() == pytest.approx(0, abs=1e-9)


def test_tables_are_measured_side_by_side_whatever_the_order_of_decisions():
    rng = np.random.default_rng(3)
    tables, action = rng.dirichlet(np.ones(4), (2, 200)), rng.integers(0, 3, 200)  # one never taken
    functions, order = rng.normal(size=(200, 3)), rng.permutation(200)
    both = measure_imbalance(tables, action, functions)
    shuffled = measure_imbalance(tables[:, order], action[order], functions[order])
    for own, other in zip(both, shuffled, strict=True):
        assert own.gap == pytest.approx(other.gap, abs=1e-12)
        assert own.influence[order] == pytest.approx(other.influence, abs=1e-15)
    assert both[1].size == pytest.approx(measured(tables[1], action, functions).size)
    assert not both[0].gap[3].any()
