import numpy as np
import pytest

from etips.evaluation.sensitivity_benchmark import _fit, _standardise, benchmark_features


def world(n, n_actions, seed, *, width=6):
    """Actions hang on column 0 most, then on 1, which goes with it, then on 2; on no other."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, width))
    x[:, 1] = 0.3 * x[:, 0] + 0.95 * x[:, 1]
    slope = np.zeros((width, n_actions))
    slope[:3] = np.outer([1.0, -0.6, 0.3], np.linspace(-1, 1, n_actions))
    powers = np.exp(x @ slope)
    chance = powers / powers.sum(axis=1, keepdims=True)
    action = (chance.cumsum(axis=1) > generator.random((n, 1))).argmax(axis=1)
    return x, action


NAMES = {f"x{number}": [number] for number in range(6)}


def test_features_come_in_the_order_of_their_strength_then_the_strongest_together():
    x, action = world(4_000, 3, 0)
    found = benchmark_features(x, NAMES, action, 3)
    assert [strength.names for strength in found[:3]] == [("x0",), ("x1",), ("x2",)]
    assert [len(strength.names) for strength in found] == [1, 1, 1, 1, 1, 2, 3]
    alone = [strength.gamma for strength in found[:5]]
    assert alone == sorted(alone, reverse=True)
    assert alone[0] > 4
    assert 1 <= alone[4] < 1.15


def test_two_actions_by_the_formula():
    generator = np.random.default_rng(1)
    x = generator.normal(size=(4_000, 2))
    action = (generator.random(4_000) < 1 / (1 + np.exp(-1.2 * x[:, 0]))).astype(int)
    found = benchmark_features(x, {"dose": [0], "age": [1]}, action, 2)
    # without it the odds are about one, with it exp(1.2 x); 1.96 is the 95 % quantile of |x|
    assert found[0].names == ("dose",)
    assert found[0].gamma == pytest.approx(np.exp(1.2 * 1.96), rel=0.2)


@pytest.mark.parametrize("columns", [[0], [2], [0, 1]])
def test_leaving_features_out_is_the_fit_without_them(columns):
    x, action = world(2_000, 4, 2)
    scaled, _ = _standardise(x)
    full = _fit(scaled, action, 4)
    bare = _fit(np.delete(scaled, columns, axis=1), action, 4)
    shift = full._log_odds(full.table @ full.slopes) - bare._log_odds(bare.table @ bare.slopes)
    wanted = np.exp(np.quantile(np.abs(shift), 0.95))
    assert full.change(columns, refit=True) == pytest.approx(wanted, rel=0.03)


def test_what_the_others_tell_is_not_lost_with_a_feature():
    x, action = world(4_000, 3, 3)
    twice = np.column_stack([x, x[:, 0] + 0.01 * x[:, 5]])
    names = {**NAMES, "copy": [6]}
    found = {s.names: s.gamma for s in benchmark_features(twice, names, action, 3)}
    assert found.get(("x0",), 1.0) < 1.5


def test_without_a_feature_that_varies_there_is_nothing_to_compare_with():
    action = np.arange(100) % 2
    assert benchmark_features(np.ones((100, 2)), {"a": [0], "b": [1]}, action, 2) == ()
    assert benchmark_features(np.eye(100), {"a": [0]}, np.zeros(100, int), 2) == ()
